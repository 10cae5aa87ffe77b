//! Commands in the background: what is read of them, what is sent to them, and that nothing of them is left.

use std::fs;

use archon_tools::{
    Ask, EngineOptions, Permissions, ToolEngine, Workspace,
    builtin::{BackgroundCommands, BashOptions, background_tools},
    sandbox::{self, Isolation},
};
use archon_types::{
    Context, Executed, Json, Prepared, SessionId, ToolCall, ToolContext, ToolResult, ToolResultStatus,
    Toolbox,
};
use expect_test::expect;
use futures_util::future::join_all;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fixture::{call_id, engine, run_call},
    sandbox::{processes_with, run},
    users::{User, as_user},
};

struct Fixture {
    engine: ToolEngine,
    commands: BackgroundCommands,
    workspace: TempDir,
}

/// The tools in a workspace of their own; a kernel without a sandbox does not matter here.
fn fixture_with(options: EngineOptions) -> Fixture {
    isolated(Isolation::WithoutKernel, options)
}

fn isolated(isolation: Isolation, options: EngineOptions) -> Fixture {
    let folder = TempDir::new().unwrap();
    let mut bash = BashOptions::default();
    bash.sandbox.isolation = isolation;
    let commands = BackgroundCommands::default();
    let tools = background_tools(&Workspace::new(folder.path()).unwrap(), bash, &commands);
    let engine = engine(tools).with_options(options.granting(["shell_exec"]));
    Fixture { engine, commands, workspace: folder }
}

fn fixture() -> Fixture {
    fixture_with(EngineOptions::default().asking(Ask::WhereRequired))
}

impl Fixture {
    async fn call(&self, tool: &str, arguments: Json) -> ToolResult {
        self.call_in(&run(), tool, arguments).await
    }

    async fn call_in(&self, run: &Context, tool: &str, arguments: Json) -> ToolResult {
        run_call(&self.engine, &ToolCall::new("c", tool, arguments), run).await
    }

    async fn say(&self, tool: &str, arguments: Json) -> String {
        self.call(tool, arguments).await.text()
    }

    async fn start(&self, command: &str) -> String {
        self.say("start_command", json!({ "command": command })).await
    }

    /// Reads the output of the first command until a result has this text, and returns all that was read.
    async fn read_until(&self, mut all: String, text: &str) -> String {
        while !all.contains(text) {
            all += &self.say("read_output", json!({ "id": "cmd_1", "wait_ms": 60_000 })).await;
        }
        all
    }
}

#[tokio::test]
async fn read_output_returns_only_what_is_new_and_then_the_exit_code() {
    let fixture = fixture();
    let started = fixture.start("echo one; read -r word; echo \"got $word\" >&2; exit 3").await;
    let first = fixture.read_until(started, "one").await;
    assert!(first.ends_with("[cmd_1: running]") && first.matches("one").count() == 1, "{first}");
    let read = json!({ "id": "cmd_1" });
    assert_eq!(fixture.say("read_output", read.clone()).await, "(no new output)\n[cmd_1: running]");
    let sent = fixture.say("send_input", json!({ "id": "cmd_1", "text": "two" })).await;
    assert_eq!(sent, "Sent 4 bytes to cmd_1. Read its answer with read_output.");
    let rest = fixture.read_until(String::new(), "ended").await;
    assert!(rest.contains("got two\n") && !rest.contains("one"), "{rest}");
    let last = fixture.call("read_output", read).await;
    assert_eq!(last.text(), "(no new output)\n[cmd_1: ended, exit code 3]");
    assert_eq!((&last.metadata["exit_code"], &last.metadata["running"]), (&json!(3), &json!(false)));
    let late = fixture.call("send_input", json!({ "id": "cmd_1", "text": "x" })).await;
    assert!(late.is_error() && late.text().contains("cmd_1 has ended, so nothing was sent"), "{late:?}");
}

#[tokio::test]
async fn read_output_with_a_maximum_leaves_the_rest_for_the_next_read() {
    let fixture = fixture();
    fixture.start("read -r _; printf abcdefgh; read -r _").await;
    fixture.call("send_input", json!({ "id": "cmd_1", "text": "", "enter": true })).await;
    let read = json!({ "id": "cmd_1", "wait_ms": 60_000, "max": 4 });
    let first = fixture.say("read_output", read.clone()).await;
    assert_eq!(first, "abcd\n[4 more bytes: read again]\n[cmd_1: running]");
    assert_eq!(fixture.say("read_output", read).await, "efgh\n[cmd_1: running]");
}

#[tokio::test]
async fn send_input_with_an_end_closes_the_input() {
    let fixture = fixture();
    fixture.start("cat").await;
    fixture.call("send_input", json!({ "id": "cmd_1", "text": "a", "enter": false })).await;
    fixture.call("send_input", json!({ "id": "cmd_1", "text": "b", "end": true })).await;
    let all = fixture.read_until(String::new(), "ended, exit code 0").await;
    assert!(all.replace("[cmd_1: running]", "").replace('\n', "").starts_with("ab"), "{all}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn stop_command_ends_processes_that_the_command_started_and_that_ignore_signals() {
    let fixture = fixture();
    let started = fixture.start("trap '' TERM; (sleep 78.5 &); sleep 78.5 & echo begun; wait").await;
    fixture.read_until(started, "begun").await;
    assert!(processes_with("sleep 78.5") > 0);
    let stopped = fixture.say("stop_command", json!({ "id": "cmd_1" })).await;
    assert!(stopped.ends_with("[cmd_1: ended, stopped]"), "{stopped}");
    assert_eq!(processes_with("sleep 78.5"), 0);
    let again = fixture.say("stop_command", json!({ "id": "cmd_1" })).await;
    assert_eq!(again, "(no new output)\n[cmd_1: ended, stopped]");
}

#[tokio::test]
async fn start_command_that_floods_keeps_the_newest_output() {
    let fixture = fixture();
    fixture.start("exec yes flooded").await;
    let all = fixture.read_until(String::new(), "older bytes were dropped").await;
    assert!(all.contains("at most 1048576 unread ones are kept]\n") && all.contains("flooded\n"));
    assert!(all.contains(" more bytes: read again]\n[cmd_1: running]"));
    fixture.say("stop_command", json!({ "id": "cmd_1" })).await;
}

#[tokio::test]
async fn list_commands_has_the_state_of_each() {
    let fixture = fixture();
    assert_eq!(fixture.say("list_commands", json!({})).await, "No command was started in this conversation.");
    fixture.say("start_command", json!({ "command": "sleep 77.5", "name": "web" })).await;
    let ended = fixture.start("exit 127").await;
    if !ended.contains("ended") {
        fixture.say("stop_command", json!({ "id": "cmd_2" })).await;
    }
    let list = fixture.say("list_commands", json!({})).await;
    let (first, second) = list.split_once('\n').unwrap();
    assert_eq!(first, "cmd_1 (web): running, 0 bytes to read: `sleep 77.5`");
    assert!(second.starts_with("cmd_2: ended, ") && second.ends_with(": `exit 127`"), "{second}");
}

#[tokio::test]
async fn start_command_is_refused_after_eight_that_run() {
    let fixture = fixture();
    let started = join_all((0..8).map(|_| fixture.start("exec sleep 76.25"))).await;
    assert!(started.iter().all(|started| started.contains(": running]")), "{started:?}");
    expect!["Error: No more commands may run in the background: at most 8 of a conversation and 64 in all. The command was not started. Stop one of yours with stop_command first: cmd_1, cmd_2, cmd_3, cmd_4, cmd_5, cmd_6, cmd_7, cmd_8."]
        .assert_eq(&fixture.start("exec sleep 76.25").await);
    let mut other = run();
    other.session = SessionId::new("other");
    let started = fixture.call_in(&other, "start_command", json!({ "command": "exec sleep 76.25" })).await;
    assert!(started.text().contains("[cmd_9: running]"), "another session has its own eight: {started:?}");
}

#[tokio::test]
async fn background_command_follows_the_rules_and_the_deny_list_of_bash() {
    let permissions = Permissions::parse(["bash(rm:*)"], [], ["bash(cat)"]).unwrap();
    let fixture = fixture_with(EngineOptions::default().with_permissions(permissions));
    for (command, reason) in [
        ("rm x", "the rule bash(rm:*) denies it"),
        ("mkfs /dev/x", "Commands with 'mkfs' are not run here"),
        ("sleep 9", "there is nobody to ask"),
    ] {
        let refused = fixture.start(command).await;
        assert!(refused.contains(reason), "{command}: {refused}");
    }
    let started = fixture.start("cat").await;
    assert!(started.contains("[cmd_1: running]"), "{started}");
    for (text, reason) in [
        ("rm x", "the rule bash(rm:*) denies it"),
        ("mkfs /dev/x", "Commands with 'mkfs' are not run here"),
        ("cat", "there is nobody to ask"),
    ] {
        let refused = fixture.say("send_input", json!({ "id": "cmd_1", "text": text })).await;
        assert!(refused.contains(reason), "{text}: {refused}");
    }
    let read = fixture.call("read_output", json!({ "id": "cmd_1" })).await;
    assert_eq!(
        (read.status, read.text().as_str()),
        (ToolResultStatus::Success, "(no new output)\n[cmd_1: running]")
    );
}

#[tokio::test]
async fn stop_command_reports_control_files_of_the_person_and_leaves_them() {
    let fixture = fixture();
    let file = |name: &str| fixture.workspace.path().join(name);
    fs::write(file(".envrc"), "one").unwrap();
    fixture.start("exec sleep 73.25").await;
    fs::write(file(".envrc"), "two").unwrap();
    fs::write(file("AGENTS.md"), "be nice").unwrap();
    let stopped = fixture.say("stop_command", json!({ "id": "cmd_1" })).await;
    let note = "a command ran in the background, and 'AGENTS.md' is new since then";
    assert!(stopped.contains(note) && stopped.contains("It was left as it is"), "{stopped}");
    let read = |name: &str| fs::read_to_string(file(name)).unwrap();
    assert_eq!((read(".envrc").as_str(), read("AGENTS.md").as_str()), ("two", "be nice"));
    assert_eq!(fs::read_dir(fixture.workspace.path()).unwrap().count(), 2, "nothing was set aside");
}

#[tokio::test]
async fn start_command_without_mounts_is_refused_before_a_person_is_asked() {
    if sandbox::missing().is_some() || sandbox::gaps().is_none() {
        return;
    }
    let fixture = isolated(Isolation::Required, EngineOptions::default());
    let refused = fixture.start("echo begun").await;
    assert!(refused.contains("No mounts can be made for commands on this system"), "{refused}");
}

#[test]
fn start_command_of_a_user_without_mounts_is_refused() {
    if sandbox::missing().is_none() {
        as_user(
            User::WithoutNamespaces,
            &["background::start_command_without_mounts_is_refused_before_a_person_is_asked"],
        );
    }
}

// spec: AP-11
#[tokio::test]
async fn send_input_of_a_line_in_pieces_follows_the_rules_and_the_deny_list() {
    let permissions = Permissions::parse(["bash(git push:*)"], [], ["bash", "send_input"]).unwrap();
    let fixture = fixture_with(EngineOptions::default().with_permissions(permissions));
    fixture.start("cat").await;
    let send = async |text: &str, enter: bool| {
        fixture.say("send_input", json!({ "id": "cmd_1", "text": text, "enter": enter })).await
    };
    for (piece, rest, reason) in [
        ("git pu", "sh origin", "the rule bash(git push:*) denies it"),
        ("mk", "fs /dev/x", "Commands with 'mkfs' are not run here"),
    ] {
        let sent = send(piece, false).await;
        assert!(sent.starts_with("Sent "), "{piece}: {sent}");
        let refused = send(rest, true).await;
        assert!(refused.contains(reason), "{piece} {rest}: {refused}");
        assert!(send("x", true).await.starts_with("Sent "), "the refused text was not sent");
        assert!(send(rest, true).await.starts_with("Sent "), "the line has ended");
    }
}

#[tokio::test]
async fn send_input_after_other_input_that_came_since_it_was_allowed_sends_nothing() {
    let permissions = Permissions::parse(["bash(git push:*)"], [], ["bash", "send_input"]).unwrap();
    let fixture = fixture_with(EngineOptions::default().with_permissions(permissions));
    fixture.start("cat").await;
    let send =
        |text: &str| ToolCall::new("c", "send_input", json!({ "id": "cmd_1", "text": text, "enter": false }));
    let run = run();
    let Prepared::Ready(second) = fixture.engine.prepare(call_id(), &send("sh origin"), &run).await else {
        panic!("it is refused")
    };
    run_call(&fixture.engine, &send("git pu"), &run).await;
    let Executed::Done(late) = fixture.engine.execute(second, &run).await else { panic!("it waits") };
    assert!(late.text().contains("Other text was sent to cmd_1"), "{late:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropped_handle_leaves_no_process() {
    let fixture = fixture();
    let started = fixture.start("trap '' TERM; echo begun; sleep 79.5").await;
    fixture.read_until(started, "begun").await;
    drop(fixture);
    while processes_with("sleep 79.5") > 0 {
        tokio::task::yield_now().await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn end_session_ends_the_commands_of_this_session_only() {
    let fixture = fixture();
    fixture.start("echo begun; exec sleep 74.25").await;
    let mut other = run();
    other.session = SessionId::new("other");
    let unknown = fixture.call_in(&other, "read_output", json!({ "id": "cmd_1" })).await;
    expect!["Error: There is no command 'cmd_1' in this conversation. Commands: none was started."]
        .assert_eq(&unknown.text());
    fixture.commands.end_session(&other.tenant, &other.session);
    fixture.read_until(String::new(), "running").await;
    fixture.commands.end_session(&run().tenant, &run().session);
    while processes_with("sleep 74.25") > 0 {
        tokio::task::yield_now().await;
    }
    assert!(fixture.call("read_output", json!({ "id": "cmd_1" })).await.is_error());
}

#[tokio::test]
async fn command_of_a_child_run_belongs_to_the_session_at_the_top() {
    let before = fixture();
    let child = ToolContext::new(run(), "call".into(), "agent").child();
    let grandchild = ToolContext::new(child.clone(), "call".into(), "agent").child();
    let mut results = Vec::new();
    for child in [&child, &grandchild] {
        let cat = json!({ "command": "cat" });
        results.push((child.session.clone(), before.call_in(child, "start_command", cat).await));
    }
    let list = before.say("list_commands", json!({})).await;
    assert!(list.contains("cmd_1: running") && list.contains("cmd_2: running"), "{list}");
    before.commands.end_session(&run().tenant, &run().session);
    let list = before.call_in(&child, "list_commands", json!({})).await;
    assert_eq!(list.text(), "No command was started in this conversation.");
    let after = fixture();
    for (session, result) in results {
        after.engine.recall(&session, "start_command", &result);
    }
    let list = after.say("list_commands", json!({})).await;
    assert_eq!(list.matches("ended with the process that ran it").count(), 2, "{list}");
}

#[tokio::test]
async fn recalled_command_has_ended_with_its_last_known_output() {
    let before = fixture();
    let mut result = before.call("start_command", json!({ "command": "echo begun; cat" })).await;
    if !result.text().contains("begun") {
        result = before.call("read_output", json!({ "id": "cmd_1", "wait_ms": 60_000 })).await;
    }
    // The log of a session keeps no content for this.
    result.content.clear();
    drop(before);
    let after = fixture();
    after.engine.recall(&run().session, "read_output", &result);
    assert_eq!(
        after.say("read_output", json!({ "id": "cmd_1" })).await,
        "begun\n[cmd_1: ended with the process that ran it; this is its last known output]"
    );
    let list = after.say("list_commands", json!({})).await;
    assert_eq!(list, "cmd_1: ended with the process that ran it: `echo begun; cat`");
    let sent = after.call("send_input", json!({ "id": "cmd_1", "text": "x" })).await;
    assert!(sent.is_error(), "{sent:?}");
    let started = after.start("cat").await;
    assert!(started.contains("[cmd_2: running]"), "{started}");
}
