//! Tools of the features, and agents that are tools: chosen, asked about and refused as all others.

use archon_testkit::MockServer;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    setup::{Place, answer, asks_for},
    terminal::Terminal,
};

/// Settings of the user's own.
fn settle(place: &Place, text: &str) {
    let folder = place.path(".config/archon");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("archon.toml"), text).expect("it is written");
}

const REVIEWER: &str = "[agents.reviewer]\ndescription = \"Reads what others wrote.\"\nsystem = \"You review.\"\nmax_turns = 3\n";

// spec: MA-28
#[tokio::test]
async fn run_delegates_to_a_configured_agent() {
    let server = MockServer::start([
        asks_for("reviewer", r#"{"task": "Look."}"#),
        answer("All well."),
        answer("Done."),
    ])
    .await;
    let place = Place::with_server(&server);
    settle(&place, REVIEWER);
    let listed = place.archon("tools list", &[]).await;
    assert!(listed.out.contains("reviewer      Reads what others wrote."), "{listed:?}");
    let ran = place.archon("run", &["Let it be reviewed."]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let asked: Vec<_> = server.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(asked[0].contains("Reads what others wrote."), "{}", asked[0]);
    assert!(asked[1].contains("You review.") && asked[1].contains("Look."), "{}", asked[1]);
    assert!(!asked[1].contains("Reads what others wrote."), "an agent has no agents: {}", asked[1]);
    assert!(asked[2].contains("All well."), "{}", asked[2]);
    let refused = place.archon("tools call", &["reviewer", "task=x"]).await;
    refused.check_refused(2, "reviewer is an agent", "archon run --tools reviewer");
}

#[tokio::test]
async fn agents_of_a_project_hold_after_an_agreement_only() {
    let place = Place::new();
    std::fs::write(place.path("archon.toml"), REVIEWER).expect("it is written");
    let listed = place.archon("tools list", &[]).await;
    assert!(!listed.out.contains("reviewer"), "{listed:?}");
    assert_eq!(place.archon("trust", &["--yes"]).await.code, Some(0));
    let listed = place.archon("tools list", &[]).await;
    assert!(listed.out.contains("reviewer"), "{listed:?}");
}

// spec: MA-28
#[tokio::test]
async fn question_of_an_agent_is_answered_later_and_its_caller_goes_on() {
    let write = asks_for("write_file", r#"{"path": "note.txt", "content": "tea"}"#);
    let server = MockServer::start([asks_for("scribe", r#"{"task": "Note."}"#), write]).await;
    let place = Place::with_server(&server);
    settle(&place, "[agents.scribe]\ndescription = \"Writes.\"\ntools = [\"write_file\"]\n");
    let ran = place.archon("run --ask-later", &["Note it."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let open = place.archon("approvals list --json", &[]).await.json();
    let id = open[0]["request_id"].as_str().unwrap_or_else(|| panic!("{open:?}")).to_owned();
    server.push(answer("Noted."));
    server.push(answer("Done."));
    let ran = place.archon("approvals approve", &[&id]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.path("note.txt")).unwrap(), "tea");
}

// spec: TE-46
#[cfg(feature = "web")]
#[tokio::test]
async fn web_search_asks_the_service_of_the_settings_with_the_key_of_the_environment() {
    let found = serde_json::json!({"web": {"results": [{"title": "Tea", "url": "https://tea.example/", "description": "Leaves."}]}});
    let search = MockServer::start([archon_testkit::MockResponse::json(200, &found)]).await;
    let server = MockServer::start([asks_for("web_search", r#"{"query": "tea"}"#), answer("Leaves.")]).await;
    let place = Place::with_server(&server);
    settle(&place, &format!("search_url = \"{}/search\"\n", search.url()));
    let mut command = place.command("run --tools web_search", &["What is tea?"]);
    let ran: crate::setup::Ran = command.env("BRAVE_API_KEY", "bk-1").output().await.unwrap().into();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Leaves.\n"), "{ran:?}");
    assert_eq!(search.requests()[0].header("x-subscription-token"), Some("bk-1"));
    assert!(server.requests()[1].body.to_string().contains("https://tea.example/"));
    let ran = place.archon("run --tools web_search", &["What is tea?"]).await;
    ran.check_refused(2, "web_search needs a key", "export BRAVE_API_KEY=");
}

// spec: TE-48
#[cfg(feature = "web")]
#[tokio::test]
async fn web_fetch_is_asked_about_unless_a_rule_allows_it_and_reaches_no_own_address() {
    let call = || asks_for("web_fetch", r#"{"url": "http://127.0.0.1:9/page"}"#);
    let server = MockServer::start([call(), answer("No."), call(), answer("No.")]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --tools web_fetch", &["Read it."]).await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = place
        .archon("run --tools web_fetch", &["--allow", "web_fetch(http://127.0.0.1:9/*)", "Read it."])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = server.requests()[3].body.to_string();
    assert!(said.contains("is not a public address"), "{said}");
}

#[tokio::test]
async fn cleanup_tool_call_needs_no_consent() {
    let clean = asks_for("cleanup_tool_call", r#"{"tool_call_ids": ["call_1"]}"#);
    let sum = asks_for("calculator", r#"{"expression": "1 + 1"}"#);
    let server = MockServer::start([sum, clean, answer("2")]).await;
    let ran =
        Place::with_server(&server).archon("run --tools calculator,cleanup_tool_call", &["1 + 1?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "2\n"), "{ran:?}");
    assert!(!ran.err.contains("a rule allows every call"), "{ran:?}");
}

#[tokio::test]
async fn tools_call_with_effects_follows_the_rules_of_a_run() {
    let place = Place::new();
    let note = place.path("note.txt");
    let write = ["write_file", "path=note.txt", "content=tea"];
    let refused = place.archon("tools call", &write).await;
    refused.check_refused(5, "write_file needs an approval", "--allow 'write_file(note.txt)'");
    assert!(!note.exists(), "nothing was written");
    let allowed = [&["--allow", "write_file(note.txt)"][..], &write].concat();
    let ran = place.archon("tools call", &allowed).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "tea");
    // The person knows the file, so the session need not have read it before.
    let edit = ["--allow", "edit_file", "edit_file", "path=note.txt", "old_text=tea", "new_text=milk"];
    let ran = place.archon("tools call", &edit).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("a rule allows every call of edit_file"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "milk");
    settle(&place, "[permissions]\ndeny = [\"write_file\"]\n");
    let denied = place.archon("tools call", &allowed).await;
    assert!(denied.code == Some(1) && denied.out.contains("the rule write_file denies it"), "{denied:?}");
    let refused = place.archon("tools call --json", &["human_approval", "operation_description=Sell?"]).await;
    assert_eq!((refused.code, refused.json().len()), (Some(5), 1), "{refused:?}");
    assert!(refused.err.contains("call it at a terminal, without --json"), "{refused:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn tools_call_bash_runs_an_allowed_command() {
    let place = Place::new();
    let ran = place.archon("tools call", &["bash", "command=echo tea", "--allow", "bash(echo:*)"]).await;
    assert!(ran.code == Some(0) && ran.out.contains("tea"), "{ran:?}");
    let refused = place.archon("tools call", &["bash", "command=echo tea"]).await;
    refused.check_refused(5, "bash needs an approval", "--allow 'bash(echo tea)'");
}

#[tokio::test]
async fn tools_call_asks_the_person_at_the_terminal() {
    let place = Place::new();
    let write = &["write_file", "path=note.txt", "content=tea"][..];
    let (code, shown) = at_terminal(&place, write, "[y]es  [n]o  [a]lways write_file(note.txt)", "y").await;
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(std::fs::read_to_string(place.path("note.txt")).unwrap(), "tea");
    let other = &["write_file", "path=other.txt", "content=tea"][..];
    let (code, shown) = at_terminal(&place, other, "[y]es  [n]o", "n not now").await;
    let declined = "A person declined this call of 'write_file': not now.";
    assert!(code == Some(1) && shown.contains(declined), "{shown}");
    let guidance = &["human_guidance", "question=Which colour?"][..];
    let (code, shown) = at_terminal(&place, guidance, "[n]o  [r]eply TEXT", "r green as tea").await;
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown.matches("green as tea").count(), 2, "typed, and as the result: {shown}");
    let approval = &["human_approval", "operation_description=Sell it"][..];
    let (code, shown) = at_terminal(&place, approval, "[y]es  [n]o", "y").await;
    assert!(code == Some(0) && shown.contains("A person approved it."), "{shown}");
}

#[tokio::test]
async fn tools_call_interrupted_at_its_question_ends_and_does_nothing() {
    let place = Place::new();
    let mut terminal = Terminal::open();
    let mut command = place.command("tools call", &["write_file", "path=note.txt", "content=tea"]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    terminal.read_until("[y]es  [n]o").await;
    let id = Pid::from_raw(child.id().expect("it runs").cast_signed()).expect("an id");
    kill_process(id, Signal::INT).expect("the signal is sent");
    assert_eq!(child.wait().await.expect("it ends").code(), Some(130));
    assert!(!place.path("note.txt").exists(), "nothing was written");
}

/// Calls a tool at a terminal, answers its question, and returns the exit code and all that was shown.
async fn at_terminal(place: &Place, words: &[&str], keys: &str, answer: &str) -> (Option<i32>, String) {
    let mut terminal = Terminal::open();
    let mut command = place.command("tools call", words);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let mut shown = terminal.read_until(keys).await;
    shown += &terminal.read_until("> ").await;
    assert!(!shown.contains("[l]ater") && !shown.contains("[s]ession"), "{shown}");
    terminal.say(&format!("{answer}\n"));
    let status = child.wait().await.expect("it ends");
    shown += &terminal.rest().await;
    (status.code(), shown)
}

#[cfg(all(target_os = "linux", feature = "git"))]
#[tokio::test]
async fn git_status_and_bash_readonly_are_tools() {
    let place = Place::new();
    let mut git = std::process::Command::new("git");
    git.args(["init", "-q", "-b", "main"]).current_dir(place.dir.path());
    assert!(git.status().unwrap().success());
    std::fs::write(place.path("note.txt"), "tea").unwrap();
    let ran = place.archon("tools call", &["git_status"]).await;
    assert!(ran.code == Some(0) && ran.out.contains("?? note.txt"), "{ran:?}");
    let listed = place.archon("tools list --tools all", &[]).await.out;
    for name in ["bash_readonly", "git_diff", "git_log", "git_status", "cleanup_tool_call"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name}: {listed}");
    }
}
