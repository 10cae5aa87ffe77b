//! Texts of models, tools, servers, files and logs that would steer a terminal or hide something from who reads it:
//! no command lets one of them through, to a terminal or to a pipe, and programs still read them as they were.

use std::process::Stdio;

use archon_testkit::{MockResponse, MockServer};
use serde_json::{Value, json};

use crate::{
    setup::{Place, Ran, answer, asks_for},
    terminal::Terminal,
};

/// Clears the screen, fills the clipboard, and then the same in other ways: a control sequence in one character, marks
/// that turn the direction of writing, and characters that show nothing.
const HOSTILE: &str =
    "\u{1b}[2J\u{1b}]52;c;YQ==\u{7}\u{7f}\u{85}\u{9b}31m\u{202e}\u{2066}\u{200b}\u{200f}\u{2028}\u{feff}end";

fn is_hostile(c: char) -> bool {
    c != '\n' && HOSTILE.contains(c) && !c.is_ascii_graphic()
}

/// Nothing of it is on any stream.
fn check_clean(line: &str, ran: &Ran) {
    for shown in [&ran.out, &ran.err] {
        assert!(!shown.contains(is_hostile), "{line}: {shown:?}");
    }
}

/// Runs a command for people and for programs. It prints the text for both, and programs read it as it was.
async fn check(place: &Place, line: &str, more: &[&str]) {
    let ran = place.archon(line, more).await;
    check_clean(line, &ran);
    let shown = format!("{}{}", ran.out, ran.err);
    assert!(shown.contains("\\u{1b}[2J"), "{line}: {ran:?}");
    let ran = place.archon(&format!("{line} --json"), more).await;
    check_clean(line, &ran);
    assert!(ran.json().iter().any(|item| holds(item, HOSTILE)), "{line}: {ran:?}");
}

/// Whether a text of these holds this one.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => own.contains(text),
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(entries) => entries.iter().any(|(name, item)| name.contains(text) || holds(item, text)),
        _ => false,
    }
}

fn models() -> MockResponse {
    MockResponse::json(200, &json!({"object": "list", "data": [{"id": format!("m\n{HOSTILE}")}]}))
}

// spec: CL-14
#[tokio::test]
async fn tool_results_are_printed_with_escaped_control_characters() {
    let place = Place::new();
    let name = format!("{HOSTILE}.txt").replace('/', "");
    std::fs::write(place.path("note.txt"), HOSTILE).unwrap();
    std::fs::write(place.path(&name), "").unwrap();
    check(&place, "tools call read_file", &["path=note.txt"]).await;
    check(&place, "tools call list_files", &["path=."]).await;
    let ran = place.archon("tools call read_file", &[&format!("path={HOSTILE}")]).await;
    check_clean("a file that is not there", &ran);
    let ran = place.archon("tools call", &[HOSTILE]).await;
    check_clean("a tool that is not there", &ran);
}

// spec: CL-14
#[tokio::test]
async fn model_names_of_a_server_are_printed_escaped_on_one_line() {
    for line in ["models list", "doctor"] {
        let server = MockServer::start((0..4).map(|_| models())).await;
        let place = Place::new();
        let address = format!("vllm@{}/v1", server.url());
        for form in ["", " --json"] {
            let mut command = place.command(&format!("{line}{form}"), &[]);
            let ran = Ran::from(command.env("ARCHON_LOCAL_SERVERS", &address).output().await.unwrap());
            check_clean(line, &ran);
            match form {
                "" => assert!(ran.out.contains("m \\u{1b}[2J"), "{line}: {ran:?}"),
                _ => assert!(ran.json().iter().any(|item| holds(item, HOSTILE)), "{line}: {ran:?}"),
            }
        }
    }
}

// spec: CL-14
#[tokio::test]
async fn stored_runs_are_printed_with_escaped_control_characters() {
    let call = json!({ "path": "note.txt" }).to_string();
    let hostile_call = json!({ "path": HOSTILE }).to_string();
    let script =
        || [asks_for("read_file", &call), asks_for("read_file", &hostile_call), answer(HOSTILE)].into_iter();
    let server = MockServer::start(script().chain(script())).await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("note.txt"), HOSTILE).unwrap();
    check(&place, "run --tools read_file", &[HOSTILE]).await;
    let listed = place.archon("runs list --json", &[]).await.json();
    let (run, session) = (listed[0]["run_id"].as_str().unwrap(), listed[0]["session"].as_str().unwrap());
    for (line, id) in
        [("runs show", run), ("runs events", run), ("runs events --cycles", run), ("sessions show", session)]
    {
        check(&place, line, &[id]).await;
    }
    check(&place, "runs list", &[]).await;
    check(&place, "sessions list", &[]).await;
    // The document is JSON for everybody.
    let exported = place.archon("sessions export", &[session]).await;
    check_clean("sessions export", &exported);
    assert!(holds(&serde_json::from_str(&exported.out).unwrap(), HOSTILE), "{exported:?}");
    let file = place.path("session.json");
    place.archon("sessions export", &[session, "--out", file.to_str().unwrap()]).await;
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(!written.contains(is_hostile) && written.trim_end() == exported.out.trim_end(), "{written}");
}

#[tokio::test]
async fn streamed_answer_on_a_terminal_is_escaped() {
    let server = MockServer::start([answer(HOSTILE)]).await;
    let place = Place::with_server(&server);
    let terminal = Terminal::open();
    let mut command = place.command("run", &["Say something."]);
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let status = child.wait().await.expect("it ends");
    let shown = terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("\\u{1b}[2J\\u{1b}]52;c;YQ==\\u{7}"), "{shown:?}");
    // The spinner and the colours are ours, and begin with the same character.
    assert!(!shown.contains(|c| c != '\u{1b}' && is_hostile(c)), "{shown:?}");
    assert!(!shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}]"), "{shown:?}");
}

// spec: CL-14, AP-05
#[tokio::test]
async fn questions_and_refusals_are_printed_with_escaped_control_characters() {
    let write = json!({ "path": "a.txt", "content": HOSTILE }).to_string();
    let refused = json!({"error": {"message": HOSTILE, "code": HOSTILE}});
    let server = MockServer::start([asks_for("write_file", &write), MockResponse::json(400, &refused)]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --ask-later --tools write_file", &["Write."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    check_clean("run --ask-later", &ran);
    let listed = place.archon("approvals list --json", &[]).await;
    check_clean("approvals list", &listed);
    let question = listed.json()[0]["request_id"].as_str().unwrap().to_owned();
    check(&place, "approvals show", &[&question]).await;
    let ran = place.archon("run", &["Speak."]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("\\u{1b}[2J"), "{ran:?}");
    check_clean("a refusal", &ran);
    for line in
        ["resume", "replay", "runs show", "sessions show", "approvals show", "plan show", "run --model"]
    {
        let more: &[&str] = if line == "run --model" { &[HOSTILE, "x"] } else { &[HOSTILE] };
        let ran = place.archon(line, more).await;
        assert_ne!(ran.code, Some(0), "{line}: {ran:?}");
        check_clean(line, &ran);
    }
}

// spec: CL-14, M-27
#[tokio::test]
async fn memories_are_printed_with_escaped_control_characters() {
    let place = Place::new();
    let text = format!("Anna prefers tea. {HOSTILE}");
    assert_eq!(place.archon("memory add", &[&text]).await.code, Some(0));
    check(&place, "memory list", &[]).await;
    check(&place, "memory search", &["What does Anna prefer?"]).await;
    let exported = place.archon("memory export", &[]).await;
    check_clean("memory export", &exported);
    let file = place.path("memories.jsonl");
    assert_eq!(place.archon("memory export --out", &[file.to_str().unwrap()]).await.code, Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), exported.out);
    let other = Place::new();
    let ran = other.archon("memory import", &[file.to_str().unwrap()]).await;
    assert_eq!(ran.out, "1 imported, 0 refused\n", "{ran:?}");
    let listed = other.archon("memory list --json", &[]).await.json();
    assert_eq!(listed[0]["content"], text);
}
