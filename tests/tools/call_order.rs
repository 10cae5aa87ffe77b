//! Calls that are made one after the other stay in their order, also when one of them is tried again.

use std::sync::{Arc, Mutex};

use archon::{
    Journal, RunId, RunOptions, ToolError,
    store::InMemoryJournal,
    types::{Durability, Effect, Message, OpenMode, RecordBody, ToolAnnotations, ToolCall, ToolResult},
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use serde_json::json;

use crate::shared::stage::{Show, Stage, acts};

/// A model that puts 1 and then 2 in one turn, and a tool of which the first call that it gets fails. What was put
/// stands in the list.
fn stage(journal: &InMemoryJournal) -> (Show, Arc<Mutex<Vec<u64>>>) {
    let mut annotations = ToolAnnotations::default();
    (annotations.effect, annotations.network) = (Effect::Idempotent, true);
    let put = Arc::new(Mutex::new(Vec::new()));
    let list = put.clone();
    let (tool, _) = acts("put", annotations, move |n, arguments| {
        if n == 0 {
            return Err(ToolError::Failed("connection reset".into()));
        }
        list.lock().unwrap().push(arguments["x"].as_u64().unwrap());
        Ok(ToolResult::success("put"))
    });
    let stage = Stage::new(|_, request| {
        match request.messages.iter().any(|m| matches!(**m, Message::ToolResult(_))) {
            true => FnProvider::text("done"),
            false => {
                let call = |n: u64| ToolCall::new(format!("c{n}"), "put", json!({ "x": n }));
                FnProvider::calls(vec![call(1), call(2)])
            }
        }
    });
    let clock = Arc::new(VirtualClock::jumping());
    let show = stage.with(|b| b.tool(tool).clock(clock).journal(Arc::new(journal.clone()))).raise();
    (show, put)
}

// spec: R-09, ER-08
#[tokio::test]
async fn sequential_call_waits_for_the_retry_of_the_previous_one_after_any_kill() {
    let journal = InMemoryJournal::new();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("r"));
    let (show, put) = stage(&journal);
    show.says("Put them.", options).await;
    assert_eq!(*put.lock().unwrap(), [1, 2]);
    let whole = journal.read(&RunId::new("r")).await.unwrap();
    assert!(
        whole.iter().any(|r| matches!(r.body, RecordBody::ToolCallFailed { .. })),
        "a call was tried again"
    );
    for kept in 2..whole.len() {
        let journal = InMemoryJournal::new();
        let mut open = journal.open(&RunId::new("r"), OpenMode::Create).await.unwrap();
        open.writer.append(&whole[..kept], Durability::Synced).await.unwrap();
        drop(open);
        let (show, put) = stage(&journal);
        let outcome = show.agent.resume(RunId::new("r")).await.unwrap().reply().await.ended();
        assert!(outcome.is_finished(), "{kept}");
        let put = put.lock().unwrap();
        assert!(put.is_sorted(), "{kept}: {put:?}");
    }
}
