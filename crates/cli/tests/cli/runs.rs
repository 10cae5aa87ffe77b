//! Runs: worked on, watched, interrupted, resumed, continued, listed.

use archon_testkit::{MockResponse, MockServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::setup::{Place, Ran, answer, asks_for, text};

const CALCULATE: &str = r#"{"expression": "15% of 200"}"#;

// spec: A-01, CL-14
#[tokio::test]
async fn a_task_is_worked_on_with_a_tool_and_the_answer_alone_is_on_standard_output() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("15% of 200 is 30.")]).await;
    let ran = Place::with_server(&server).archon("run", &["What is 15% of 200?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "15% of 200 is 30.\n"), "{ran:?}");
    assert!(ran.err.contains("calculator") && ran.err.contains("15% of 200"), "{ran:?}");
    assert!(!ran.err.contains('\u{1b}') && !ran.err.contains('\r'), "colour without a terminal: {ran:?}");
    server.assert_paired();
}

// spec: ER-09
#[tokio::test]
async fn run_falls_back_to_another_model_and_reports_it() {
    let broken = MockServer::start([MockResponse::json(404, &serde_json::json!({"error": "gone"}))]).await;
    let other = MockServer::start([answer("It is 30.")]).await;
    let model = format!("openai-compatible@{}/v1:small", other.url());
    let place = Place::with_server(&broken);
    let ran = place.archon("run", &["--fallback", &model, "What is 15% of 200?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30.\n"), "{ran:?}");
    assert!(ran.err.contains("gone") && ran.err.contains("going on with openai-compatible"), "{ran:?}");
    assert_eq!(other.requests()[0].body["model"], "small");
}

#[tokio::test]
async fn json_lines_are_valid_against_the_schema_that_the_program_prints() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("30")]).await;
    let place = Place::with_server(&server);
    let schema: Value =
        serde_json::from_str(&place.archon("schema events", &[]).await.out).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let ran = place.archon("run --json", &["What is 15% of 200?"]).await;
    let lines = ran.json();
    assert!(lines.len() > 8, "{ran:?}");
    for line in &lines {
        assert!(validator.is_valid(line), "{line}");
        assert!(line["run_id"].is_string(), "{line}");
    }
    assert_eq!(lines.first().map(|l| &l["type"]), Some(&"run_started".into()));
    assert_eq!(lines.last().map(|l| &l["type"]), Some(&"run_finished".into()));
    assert!(!validator.is_valid(&serde_json::json!({"type": "nonsense"})));
}

#[tokio::test]
async fn each_token_is_printed_before_the_next_one_is_sent() {
    let gate = archon_testkit::Gate::new();
    let response = MockResponse::sse("")
        .event(&text("one "))
        .wait(&gate)
        .event(&text("two "))
        .wait(&gate)
        .event(&text("three"));
    let done = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let server = MockServer::start([response.event(done).event("[DONE]")]).await;
    let place = Place::with_server(&server);
    let mut child = place.command("run --json", &["count"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for token in ["one ", "two "] {
        // The server waits: were the stream held back anywhere, this line would never come.
        assert_eq!(next_text(&mut lines).await, token);
        gate.open();
    }
    assert_eq!(next_text(&mut lines).await, "three");
}

type Lines = tokio::io::Lines<BufReader<tokio::process::ChildStdout>>;

/// The text of the next text delta.
async fn next_text(lines: &mut Lines) -> String {
    loop {
        let line = lines.next_line().await.expect("a line").expect("the run goes on");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        if line["delta"] == "text" {
            return line["text"].as_str().expect("text").to_owned();
        }
    }
}

/// The id in the line that says how to go on.
fn resume_id(err: &str) -> String {
    let (_, rest) = err.split_once("archon resume ").unwrap_or_else(|| panic!("no id in {err:?}"));
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
}

// spec: CL-06
#[tokio::test]
async fn an_interrupted_run_ends_with_130_and_can_be_resumed() {
    let server = MockServer::start([MockResponse::sse("").event(&text("half ")).hang()]).await;
    let place = Place::with_server(&server);
    let mut child = place.command("run --json", &["speak"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(next_text(&mut lines).await, "half ");
    let pid = i32::try_from(child.id().expect("it runs")).expect("a pid");
    kill_process(Pid::from_raw(pid).expect("a process id"), Signal::INT).expect("the signal is sent");
    let ran = Ran::from(child.wait_with_output().await.expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    server.until_gone(1).await;

    server.push(answer("whole"));
    let resumed = place.archon("resume", &[&resume_id(&ran.err)]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "whole\n"), "{resumed:?}");
}

#[tokio::test]
async fn a_killed_run_is_resumed_and_asks_the_model_again() {
    let server = MockServer::start([MockResponse::sse("").event(&text("half ")).hang()]).await;
    let place = Place::with_server(&server);
    let mut child = place.command("run --json", &["speak"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first: Value =
        serde_json::from_str(&lines.next_line().await.expect("a line").expect("a line")).expect("JSON");
    while !lines.next_line().await.expect("a line").expect("a line").contains("half") {}
    child.kill().await.expect("it is killed");

    let run = first["run_id"].as_str().expect("an id");
    server.push(answer("whole"));
    let resumed = place.archon("resume --json", &[run]).await;
    let kinds: Vec<_> = resumed.json().iter().map(|l| l["type"].clone()).collect();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(kinds.contains(&"resumed".into()) && kinds.contains(&"model_call_lost".into()), "{kinds:?}");
    assert_eq!(server.requests()[0].body, server.requests()[1].body);
}

#[tokio::test]
async fn a_session_goes_on_with_the_next_prompt() {
    let server = MockServer::start([answer("Paris"), answer("2 million"), answer("The Seine")]).await;
    let place = Place::with_server(&server);
    assert_eq!(place.archon("run", &["Capital of France?"]).await.out, "Paris\n");
    assert_eq!(place.archon("run --continue", &["Its population?"]).await.out, "2 million\n");
    let listed = place.archon("runs list --json", &[]).await.json();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|r| r["run_id"].is_string() && r["status"] == "finished"), "{listed:?}");
    assert_eq!(listed[0]["session"], listed[1]["session"]);

    let session = listed[0]["session"].as_str().expect("a session");
    assert_eq!(place.archon("run", &["--session", session, "Its river?"]).await.out, "The Seine\n");
    let said = server.requests()[2].body["messages"].clone();
    let texts: Vec<_> = said.as_array().expect("messages").iter().filter(|m| m["role"] != "system").collect();
    assert_eq!(texts.len(), 5, "{said}");

    let shown = place.archon("runs show", &[listed[0]["run_id"].as_str().expect("an id")]).await;
    assert!(shown.err.contains("> Its population?") && shown.out.contains("2 million"), "{shown:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn data_directory_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let server = MockServer::start([answer("kept")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["remember this"]).await;
    let mode = std::fs::metadata(place.data()).expect("the data directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

// spec: ER-04
#[tokio::test]
async fn runs_show_ends_with_the_errors_that_the_run_could_not_mend() {
    let refused = || MockResponse::json(401, &serde_json::json!({"error": {"message": "no such key"}}));
    let server = MockServer::start([refused(), answer("4")]).await;
    let place = Place::with_server(&server);
    assert_ne!(place.archon("run", &["What is 2 + 2?"]).await.code, Some(0));
    let shown = place.archon("runs show last", &[]).await;
    assert!(shown.err.contains("errors: model auth x2 (critical)"), "{shown:?}");
    assert_eq!(place.archon("run", &["What is 2 + 2?"]).await.code, Some(0));
    let shown = place.archon("runs show last", &[]).await;
    assert!(!shown.err.contains("errors:"), "{shown:?}");
}
