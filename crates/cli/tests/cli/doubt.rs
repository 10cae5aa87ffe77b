//! A command that was cut off, and nobody knows whether it did its work: the question shows it, and the run is not lost.

use archon_testkit::{MockResponse, MockServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::setup::{Place, answer, asks_for};

/// A command that takes longer than any test.
fn slow() -> Value {
    json!({"command": "echo paid >> ledger; sleep 600"})
}

/// A plan of that command, and of one that follows it.
fn plan() -> MockResponse {
    let pay = json!({"id": "pay", "description": "Pay", "tool_name": "bash", "tool_args": slow(), "dependencies": []});
    let end = json!({"id": "end", "description": "Add", "tool_name": "calculator",
                     "tool_args": {"expression": "1 + 1"}, "dependencies": ["pay"]});
    answer(&json!({"subtasks": [pay, end]}).to_string())
}

/// A place whose user lets every command run.
fn place(server: &MockServer) -> Place {
    let place = Place::with_server(server);
    let settings = place.path(".config/archon/archon.toml");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    std::fs::write(&settings, "[permissions]\nallow = ['bash']\n").expect("the settings");
    place
}

/// Starts a run and sends it `signal` while its command is at work; its id.
async fn cut_off(place: &Place, line: &str, signal: Signal) -> String {
    let mut child = place.command(line, &["Pay Ann."]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a line").expect("it goes on").contains("process_started") {}
    let pid = i32::try_from(child.id().expect("it runs")).expect("a pid");
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("the signal is sent");
    let ended = child.wait_with_output().await.expect("it ends");
    if signal != Signal::KILL {
        assert_eq!(ended.status.code(), Some(130), "{signal:?} ends the run in order: {ended:?}");
    }
    let runs = place.archon("runs list --json", &[]).await.json();
    runs[0]["run_id"].as_str().expect("a run").to_owned()
}

/// The question that waits, after what `approvals list` says of it was looked at.
async fn question(place: &Place) -> String {
    question_with(place, "echo paid >> ledger; sleep 600").await
}

async fn question_with(place: &Place, call: &str) -> String {
    let listed = place.archon("approvals list", &[]).await;
    for part in [call, "check first whether it happened"] {
        assert!(listed.out.contains(part), "{part}: {listed:?}");
    }
    listed.out.split_whitespace().next().expect("an id").to_owned()
}

// spec: PL-25
#[tokio::test]
async fn resume_of_a_killed_plan_asks_about_the_command_that_was_cut_off_and_goes_on_by_the_reply() {
    for signal in [Signal::KILL, Signal::INT, Signal::TERM, Signal::HUP] {
        let server = MockServer::start([plan(), answer("It is paid.")]).await;
        let place = place(&server);
        let run = cut_off(&place, "run --plan --json --tools bash,calculator", signal).await;
        let resumed = place.archon("resume --ask-later", &[&run]).await;
        assert_eq!(resumed.code, Some(3), "{signal:?}: {resumed:?}");
        let id = question(&place).await;
        assert!(resumed.err.contains(&format!("archon approvals reply {id} TEXT")), "{resumed:?}");
        let replied = place.archon("approvals reply", &[&id, "The bank has it."]).await;
        assert_eq!(replied.code, Some(0), "{signal:?}: {replied:?}");
        assert!(replied.out.starts_with("It is paid.\n"), "{signal:?}: {replied:?}");
    }
}

// spec: AP-06
#[tokio::test]
async fn approvals_list_shows_the_whole_command_that_was_cut_off() {
    let server = MockServer::start([asks_for("bash", &slow().to_string()), answer("It is paid.")]).await;
    let place = place(&server);
    let run = cut_off(&place, "run --json --tools bash", Signal::KILL).await;
    let resumed = place.archon("resume --ask-later", &[&run]).await;
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    let id = question(&place).await;
    let replied = place.archon("approvals reply", &[&id, "The bank has it."]).await;
    assert_eq!((replied.code, replied.out.as_str()), (Some(0), "It is paid.\n"), "{replied:?}");
    assert!(server.requests()[1].body.to_string().contains("The bank has it."));
}

/// Calls of a tool of an MCP server that were cut off.
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod server {
    use std::{
        path::Path,
        time::{Duration, Instant},
    };

    use archon_testkit::{McpScript, MockServer};
    use serde_json::json;

    use super::question_with;
    use crate::{
        mcp::processes_with,
        setup::{Place, answer, asks_for},
    };

    /// Returns a server that writes each call to the file of its first argument, and does not answer the first one.
    fn notes() -> McpScript {
        let schema = json!({ "type": "object" });
        let add = json!({ "name": "add", "description": "Adds a note.", "inputSchema": schema });
        McpScript::new([add])
            .on_call(r#"echo called >> "$1"; if [ "$(wc -l < "$1")" -lt 2 ]; then sleep 600; fi; say added"#)
    }

    fn calls(file: &Path) -> usize {
        std::fs::read_to_string(file).unwrap_or_default().lines().count()
    }

    /// A place whose user has the server, and has pinned its tool.
    async fn place(model: &MockServer, mark: &str, more: &str) -> Place {
        let place = Place::with_server(model);
        let (script, file) = (place.path("notes.sh"), place.path("calls"));
        std::fs::write(&script, notes().to_string()).expect("the script");
        let settings = format!(
            "[mcp.notes]\ncommand = 'sh'\nargs = ['{}', '{}']\nenv = {{ MARK = '{mark}' }}\n\
             timeouts = {{ close = '1s' }}\n{more}\n",
            script.display(),
            file.display()
        );
        let folder = place.path(".config/archon");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("archon.toml"), settings).expect("the settings");
        let tested = place.archon("mcp test", &["notes"]).await;
        assert_eq!(tested.code, Some(0), "{tested:?}");
        place
    }

    /// Starts a run and kills it while its call is at the server; its id.
    async fn killed(place: &Place) -> String {
        let mut child = place.command("run --allow notes__add", &["Add a note."]).spawn().expect("it starts");
        let end = Instant::now() + Duration::from_secs(600);
        while calls(&place.path("calls")) == 0 {
            assert!(Instant::now() < end, "no call came: {:?}", child.try_wait());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        child.kill().await.expect("SIGKILL");
        let runs = place.archon("runs list --json", &[]).await.json();
        runs[0]["run_id"].as_str().expect("a run").to_owned()
    }

    // spec: MC-07
    #[tokio::test]
    async fn resume_of_a_run_killed_in_a_servers_call_repeats_the_call_only_if_it_reads() {
        for (name, more, times) in [("changes", "", 1), ("reads", "read_only = ['add']", 2)] {
            let model = MockServer::start([asks_for("notes__add", "{}"), answer("It is noted.")]).await;
            let mark = format!("doubt-{name}-{}", std::process::id());
            let place = place(&model, &mark, more).await;
            let run = killed(&place).await;
            let mut ended = place.archon("resume --ask-later", &[&run]).await;
            if times == 1 {
                assert_eq!(ended.code, Some(3), "{ended:?}");
                let id = question_with(&place, "notes__add").await;
                ended = place.archon("approvals reply", &[&id, "It is there."]).await;
            }
            assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
            assert!(ended.out.contains("It is noted."), "{name}: {ended:?}");
            assert_eq!(calls(&place.path("calls")), times, "{name}");
            assert_eq!(processes_with(&mark), 0, "{name}: the server of the killed run is left");
        }
    }
}
