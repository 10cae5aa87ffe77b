//! Commands in the background in a session: the next message reads them, and another process says that they ended.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use archon::{
    Archon, Journal, RunId, RunOptions, SessionId,
    store::InMemoryJournal,
    tools::{
        Ask, EngineOptions, Workspace,
        builtin::{BackgroundCommands, BashOptions, background_tools},
        sandbox::Isolation,
    },
    types::{Message, RecordBody, Request, ToolCall},
};
use archon_testkit::{Ended, FnProvider};
use serde_json::{Value, json};

/// A model that calls the tools of the message, `TOOL ARGUMENTS` on each line, and answers with the last result.
fn model() -> FnProvider {
    FnProvider::new(|_, request| match calls_to_make(request).pop() {
        Some(call) => FnProvider::calls(vec![call]),
        None => FnProvider::text(&request.messages.iter().last().map(|last| last.text()).unwrap_or_default()),
    })
}

/// The calls of the last message that have no result yet, the next one last.
fn calls_to_make(request: &Request) -> Vec<ToolCall> {
    let messages: Vec<&Message> = request.messages.iter().map(|message| &**message).collect();
    let last = messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap();
    let done = messages[last..].iter().filter(|message| matches!(message, Message::ToolResult(_))).count();
    let text = messages[last].text();
    let calls = text.lines().skip(done).map(|line| {
        let (tool, arguments) = line.split_once(' ').unwrap();
        ToolCall::new("c", tool, serde_json::from_str::<Value>(arguments).unwrap())
    });
    let mut calls: Vec<_> = calls.collect();
    calls.reverse();
    calls
}

/// An agent as a process makes it.
fn agent(journal: &InMemoryJournal, folder: &std::path::Path) -> Archon {
    let mut options = BashOptions::default();
    options.sandbox.isolation = Isolation::WithoutKernel;
    let commands = BackgroundCommands::default();
    Archon::builder()
        .provider(Arc::new(model()), "scripted")
        .tools(background_tools(&Workspace::new(folder).unwrap(), options, &commands))
        .engine_options(EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired))
        .journal(Arc::new(journal.clone()))
        .build()
        .unwrap()
}

/// Sends a message to the session; returns the run and its answer.
async fn say(agent: &Archon, message: &str) -> (RunId, String) {
    let options = RunOptions::in_session(SessionId::new("anna"));
    let outcome = agent.run_with(message, options).await.ended();
    (outcome.run.clone(), outcome.last_text().unwrap_or_default().to_owned())
}

fn call(tool: &str, arguments: Value) -> String {
    format!("{tool} {arguments}")
}

#[tokio::test]
async fn next_message_of_a_session_reads_a_command_that_the_first_started() {
    let (journal, folder) = (InMemoryJournal::new(), tempfile::tempdir().unwrap());
    let first = agent(&journal, folder.path());
    let start = call("start_command", json!({ "command": "read -r word; echo \"got $word\"; exec cat" }));
    let (run, started) = say(&first, &start).await;
    assert_eq!(started, "(no new output)\n[cmd_1: running]");
    let records = journal.read(&run).await.unwrap();
    let at = |is: fn(&RecordBody) -> bool| records.iter().position(|record| is(&record.body)).unwrap();
    let named = at(|body| matches!(body, RecordBody::ProcessStarted { .. }));
    assert!(named < at(|body| matches!(body, RecordBody::ToolCallFinished { .. })), "{records:?}");
    let type_it = call("send_input", json!({ "id": "cmd_1", "text": "tea" }));
    let read = call("read_output", json!({ "id": "cmd_1", "wait_ms": 60_000 }));
    let (_, answer) = say(&first, &format!("{type_it}\n{read}")).await;
    assert_eq!(answer, "got tea\n[cmd_1: running]");
    // The end of the process, as far as the commands and the next process see it.
    drop(first);
    let second = agent(&journal, folder.path());
    let (_, answer) = say(&second, &call("read_output", json!({ "id": "cmd_1" }))).await;
    assert_eq!(answer, "got tea\n[cmd_1: ended with the process that ran it; this is its last known output]");
    let (_, answer) = say(&second, &call("start_command", json!({ "command": "exit 3" }))).await;
    assert!(answer.contains("[cmd_2: "), "{answer}");
}
