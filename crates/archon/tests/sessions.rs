//! Sessions of chosen names, and what a message to a session does whose run has not ended.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use archon::{
    Archon, Error, Journal, OutcomeStatus, RunOptions, SessionId, Tool, ToolResult,
    store::MemoryJournal,
    tools::FnTool,
    types::{
        AskLater, Durability, Message, OpenMode, Record, RecordBody, RunStatus, ToolAnnotations, ToolCall,
        ToolSpec,
    },
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};
use serde_json::json;

struct Desk {
    archon: Archon,
    journal: MemoryJournal,
    model: FnProvider,
}

/// An agent that asks before it refunds, and else says how many messages of people it sees.
fn desk() -> Desk {
    let model = FnProvider::new(|_, request| match request.messages.iter().last().map(|last| &**last) {
        Some(last) if last.text() == "refund" => {
            FnProvider::calls(vec![ToolCall::new("c", "refund", json!({}))])
        }
        _ => {
            let people = request.messages.iter().filter(|m| matches!(&***m, Message::User(_)));
            FnProvider::text(&people.count().to_string())
        }
    });
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = true;
    let spec = ToolSpec::new("refund", "Refunds.", json!({"type": "object"})).with_annotations(annotations);
    let tool: Arc<dyn Tool> = Arc::new(FnTool::new(spec, |_, _| async { Ok(ToolResult::success("Done.")) }));
    let journal = MemoryJournal::new();
    let archon = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .tools([tool])
        .approver(Arc::new(AskLater))
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .build()
        .unwrap();
    Desk { archon, journal, model }
}

fn anna() -> RunOptions {
    RunOptions::in_session(SessionId::new("anna"))
}

#[tokio::test]
async fn in_session_of_a_name_without_runs_begins_the_session_and_goes_on_in_it() {
    let desk = desk();
    assert_eq!(desk.archon.run_with("hello", anna()).await.unwrap().answer, "1");
    assert_eq!(desk.archon.run_with("again", anna()).await.unwrap().answer, "2");
    let talk = desk.archon.conversation_in(SessionId::new("ben")).await.unwrap();
    assert_eq!(talk.prompt("hello").await.unwrap().outcome().await.unwrap().answer, "1");
    let talk = desk.archon.conversation_in(SessionId::new("ben")).await.unwrap();
    assert_eq!(talk.prompt("again").await.unwrap().outcome().await.unwrap().answer, "2");
}

#[tokio::test]
async fn in_session_of_another_tenants_name_shows_nothing_of_theirs() {
    let desk = desk();
    desk.archon.run_with("hello", anna()).await.unwrap();
    let mut other = anna();
    other.tenant = Some("else".into());
    assert_eq!(desk.archon.run_with("hello", other).await.unwrap().answer, "1");
}

#[tokio::test]
async fn in_session_whose_run_waits_or_works_is_refused_and_branches_only_when_told_to() {
    let desk = desk();
    let waits = desk.archon.run_with("refund", anna()).await.unwrap();
    assert_eq!(waits.status, OutcomeStatus::Suspended);
    let busy = |result: Error| match result {
        Error::SessionBusy { run, status } => (run, status),
        other => panic!("{other}"),
    };
    let asked = desk.model.requests().len();
    let e = desk.archon.run_with("my number is 4711", anna()).await.unwrap_err();
    assert!(e.advice().contains("resume") && e.to_string().contains("suspended"), "{e}: {}", e.advice());
    assert_eq!(busy(e), (waits.run.clone(), RunStatus::Suspended));
    assert!(desk.archon.start("my number is 4711", anna()).await.is_err());
    assert!(desk.archon.conversation_in(SessionId::new("anna")).await.is_err());
    assert_eq!(desk.model.requests().len(), asked, "nobody was asked");
    // Somebody works on it.
    let mut open = desk.journal.open(&waits.run, OpenMode::Existing).await.unwrap();
    let mut record = Record::clone(open.records.last().unwrap());
    record.seq += 1;
    record.body = RecordBody::Noted { text: "at work".to_owned() };
    open.writer.append(&[Arc::new(record)], Durability::Synced).await.unwrap();
    let e = desk.archon.run_with("my number is 4711", anna()).await.unwrap_err();
    assert_eq!(busy(e), (waits.run, RunStatus::Running));
    let branch = desk.archon.run_with("by the way", anna().branch()).await.unwrap();
    assert!(branch.is_finished(), "{branch:?}");
}
