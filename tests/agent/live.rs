//! Streams are live, cancels cancel, truncated arguments never run: through a real HTTP server,
//! the provider, the loop and the facade.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, Event, OutcomeStatus, RunHandle, RunOptions, tool,
    types::{DeltaKind, Message, RecordBody, StopReason},
};
use archon_testkit::{Ended, Gate, MockResponse, MockServer};
use futures_util::StreamExt;
use serde_json::json;

use crate::shared::wire::{call, text, with_model};

/// The next text delta of a run, joined ones whole.
async fn next_text(run: &mut RunHandle) -> String {
    while let Some(event) = run.next().await {
        if let Event::Delta(delta) = event
            && let DeltaKind::Text { text } = delta.kind
        {
            return text;
        }
    }
    panic!("the run ended before the next token");
}

// spec: R-03, T-09
#[tokio::test]
async fn each_token_is_seen_before_the_next_one_is_sent() {
    let gate = Gate::new();
    let tokens = ["one ", "two ", "three ", "four"];
    let mut response = MockResponse::sse("");
    for token in tokens {
        response = response.event(&text(token)).wait(&gate);
    }
    let response = response.event(&crate::shared::wire::finish("stop")).event("[DONE]");
    let server = MockServer::start([response]).await;
    let agent = with_model(&server).build().expect("an agent");
    let mut run = agent.start("count", RunOptions::default()).await.expect("a run");
    for token in tokens {
        // The server waits at the gate: were the stream not live, this would never return.
        let seen = tokio::time::timeout(Duration::from_secs(20), next_text(&mut run)).await;
        assert_eq!(seen.expect("the token arrives while the server waits"), token);
        gate.open();
    }
    assert_eq!(run.reply().await.ended().last_text(), Some("one two three four"));
}

// spec: P-41, R-13
#[tokio::test]
async fn cancel_ends_the_stream_and_keeps_the_partial_text() {
    let server = MockServer::start([MockResponse::sse("").event(&text("half an ans")).hang()]).await;
    let agent = with_model(&server).build().expect("an agent");
    let mut run = agent.start("speak", RunOptions::default()).await.expect("a run");
    assert_eq!(next_text(&mut run).await, "half an ans");
    let id = run.run_id().clone();
    run.cancel();
    let outcome = run.reply().await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Cancelled, "half an ans")
    );
    server.until_gone(1).await;
    let records = agent.journal().read(&id).await.expect("a log");
    let aborted = records.iter().any(|r| {
        matches!(&r.body, RecordBody::ModelCallFinished { message, .. } if message.stop_reason == StopReason::Aborted)
    });
    assert!(aborted, "{records:#?}");

    // The history is valid and the run goes on.
    server.push(crate::shared::wire::answer("a whole answer"));
    let outcome = agent.resume(id).await.expect("a run").reply().await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "a whole answer")
    );
    server.assert_paired();
}

#[tokio::test]
async fn dropping_the_handle_ends_the_stream() {
    let server = MockServer::start([MockResponse::sse("").event(&text("a")).hang()]).await;
    let agent = with_model(&server).build().expect("an agent");
    let mut run = agent.start("speak", RunOptions::default()).await.expect("a run");
    next_text(&mut run).await;
    drop(run);
    server.until_gone(1).await;
}

static DELETED: AtomicUsize = AtomicUsize::new(0);

/// Deletes the files under a path, for good.
#[tool]
async fn delete_files(path: Option<String>) -> String {
    DELETED.fetch_add(1, Ordering::Relaxed);
    format!("deleted {path:?}")
}

// spec: P-11, TE-04
#[tokio::test]
async fn truncated_arguments_are_refused_with_the_reason() {
    // Without any arguments the call would be a valid one, and delete more than was meant.
    check_cut_off("", &["cut off by its token limit"]).await;
    check_cut_off(r#"{"path": "/tmp/x"#, &["cut off by its token limit", "JSON", "/tmp/x"]).await;
}

async fn check_cut_off(arguments: &str, parts: &[&str]) {
    let cut_off = MockResponse::sse("")
        .event(&call(0, "call_1", "delete_files", arguments))
        .event(&crate::shared::wire::finish("length"))
        .event("[DONE]");
    let server = MockServer::start([cut_off, crate::shared::wire::answer("I stopped.")]).await;
    let agent = with_model(&server).tool(delete_files).build().expect("an agent");
    let run = agent.start("clean up", RunOptions::default()).await.expect("a run");
    let id = run.run_id().clone();
    assert_eq!(run.reply().await.ended().last_text(), Some("I stopped."));
    assert_eq!(DELETED.load(Ordering::Relaxed), 0);

    let records = agent.journal().read(&id).await.expect("a log");
    let stopped = records.iter().find_map(|r| match &r.body {
        RecordBody::ModelCallFinished { message, .. } => Some(message.stop_reason),
        _ => None,
    });
    assert_eq!(stopped, Some(StopReason::Length), "the stop reason is kept");
    let requests = server.requests();
    let last = requests[1].body["messages"].as_array().and_then(|m| m.last()).expect("a message").clone();
    let said = last["content"].as_str().expect("text");
    assert_eq!(last["role"], "tool");
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    server.assert_paired();
}

// spec: P-31, P-32
#[tokio::test]
async fn a_rate_limit_is_waited_out_and_the_request_is_sent_again() {
    let limited =
        MockResponse::json(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "0");
    let server = MockServer::start([limited, crate::shared::wire::answer("here")]).await;
    let agent = with_model(&server).build().expect("an agent");
    let outcome = agent.run("hello").await.ended();
    assert_eq!((outcome.last_text().unwrap_or_default(), outcome.turns), ("here", 1));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
}

// spec: A-01, TE-45
#[tokio::test]
async fn a_tool_call_goes_over_the_wire_and_its_result_comes_back() {
    let asks = crate::shared::wire::asks_for("call_1", "calculator", r#"{"expression": "15% of 200"}"#);
    let server = MockServer::start([asks, crate::shared::wire::answer("It is 30.")]).await;
    let agent =
        with_model(&server).tool(archon::tools::builtin::Calculator::new()).build().expect("an agent");
    assert_eq!(agent.run("What is 15% of 200?").await.ended().last_text(), Some("It is 30."));
    let requests = server.requests();
    let result = requests[1].body["messages"].as_array().and_then(|m| m.last()).expect("a message").clone();
    assert_eq!(result, json!({"role": "tool", "tool_call_id": "call_1", "content": "30"}));
    assert_eq!(requests[0].connection, requests[1].connection, "one connection for both");
    server.assert_paired();
}

#[tokio::test]
async fn a_session_goes_on_where_it_was() {
    let server =
        MockServer::start([crate::shared::wire::answer("Paris"), crate::shared::wire::answer("2 million")])
            .await;
    let agent = with_model(&server).build().expect("an agent");
    let first = agent.start("Capital of France?", RunOptions::default()).await.expect("a run");
    let session = first.session_id().clone();
    first.reply().await.ended();
    let options = RunOptions::in_session(session);
    assert_eq!(agent.run_with("Its population?", options).await.ended().last_text(), Some("2 million"));
    let requests = server.requests();
    let said: Vec<_> = requests[1].body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(said, ["Capital of France?", "Paris", "Its population?"]);
}

#[tokio::test]
async fn the_conversation_can_be_read_back_from_the_log() {
    let server = MockServer::start([crate::shared::wire::answer("Paris")]).await;
    let agent = with_model(&server).build().expect("an agent");
    let run = agent.start("Capital of France?", RunOptions::default()).await.expect("a run");
    let id = run.run_id().clone();
    run.reply().await.ended();
    let messages = archon::react_loop::conversation(&**agent.journal(), &id).await.expect("a conversation");
    let texts: Vec<_> = messages.iter().map(|m| Message::text(m)).collect();
    assert_eq!(texts, ["Capital of France?", "Paris"]);
}

// Agents are handed to other tasks and threads.
#[test]
fn an_agent_can_be_shared() {
    fn check<T: Send + Sync + Clone>() {}
    check::<Archon>();
    check::<Arc<Archon>>();
}
