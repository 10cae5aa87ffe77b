//! Sessions of chosen names, and what a message to a session does whose run has not ended.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use archon::{
    Archon, Journal, OutcomeStatus, RunError, RunOptions, Runs, SessionId, Tool, ToolResult,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        AskLater, BoxFuture, Durability, ForkOptions, JournalError, Message, MoreLimits, OpenMode, OpenRun,
        ProviderError, Record, RecordBody, RunFilter, RunHead, RunId, RunStatus, StartRuns, ToolAnnotations,
        ToolCall, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use serde_json::json;
use tokio::sync::Notify;

struct Desk {
    archon: Archon,
    journal: InMemoryJournal,
    model: FnProvider,
}

/// An agent that asks before it refunds, and else says how many messages of people it sees.
fn desk() -> Desk {
    let journal = InMemoryJournal::new();
    desk_in(journal.clone(), Arc::new(journal))
}

fn desk_in(memory: InMemoryJournal, journal: Arc<dyn Journal>) -> Desk {
    let model = FnProvider::new(|_, request| match request.messages.iter().last().map(|last| &**last) {
        Some(last) if last.text() == "refund" => {
            FnProvider::calls(vec![ToolCall::new("c", "refund", json!({}))])
        }
        Some(last) if last.text() == "fail" => vec![Err(ProviderError::Auth("no key".into()))],
        _ => {
            let people = request.messages.iter().filter(|m| matches!(&***m, Message::User(_)));
            FnProvider::text(&people.count().to_string())
        }
    });
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = true;
    let spec = ToolSpec::new("refund", "Refunds.", json!({"type": "object"})).with_annotations(annotations);
    let tool: Arc<dyn Tool> = Arc::new(FnTool::new(spec, |_, _| async { Ok(ToolResult::success("Done.")) }));
    let archon = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .tools([tool])
        .approver(Arc::new(AskLater))
        .journal(journal)
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .build()
        .unwrap();
    Desk { archon, journal: memory, model }
}

fn anna() -> RunOptions {
    RunOptions::in_session(SessionId::new("anna"))
}

/// A journal in which a new run begins only when it is let.
#[derive(Clone, Default)]
struct Gated {
    inner: InMemoryJournal,
    waits: Arc<Notify>,
    gate: Arc<Notify>,
}

impl Journal for Gated {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            // The first message of a session locks a run that never begins.
            if mode == OpenMode::Create && !run.as_str().starts_with("first-") {
                self.waits.notify_one();
                self.gate.notified().await;
            }
            self.inner.open(run, mode).await
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }
}

#[tokio::test]
async fn in_session_by_two_at_the_same_moment_lets_one_begin_and_refuses_the_other() {
    let journal = Gated::default();
    let desk = desk_in(journal.inner.clone(), Arc::new(journal.clone()));
    journal.gate.notify_one();
    let first = desk.archon.run_with("hello", anna()).await.ended();
    let talk = desk.archon.conversation_in(SessionId::new("anna")).await.unwrap();
    journal.waits.notified().await;
    // The second message comes when the first has looked where it goes on, and its run is not in the journal yet.
    let one = desk.archon.start("one", anna()).await.unwrap();
    journal.waits.notified().await;
    let busy = |e: RunError| match e {
        RunError::SessionBusy { run, status } => (run, status),
        other => panic!("{other}"),
    };
    let e = tokio::select! {
        second = desk.archon.run_with("two", anna()) => second.unwrap_err(),
        () = journal.waits.notified() => panic!("both begin a run"),
    };
    assert_eq!(busy(e), (first.run.clone(), RunStatus::Running));
    talk.steer("for later").await.unwrap();
    let e = talk.prompt("two").await.expect_err("both begin a run");
    assert_eq!(busy(e), (first.run, RunStatus::Running));
    journal.gate.notify_one();
    assert_eq!(one.reply().await.ended().last_text(), Some("2"));
    // Now there is a newer run, from which the next message goes on.
    journal.gate.notify_one();
    assert_eq!(desk.archon.run_with("three", anna()).await.ended().last_text().unwrap_or_default(), "3");
    // What was said beside a refused prompt is not lost.
    journal.gate.notify_one();
    assert_eq!(talk.prompt("two").await.unwrap().reply().await.ended().last_text(), Some("3"));
}

#[tokio::test]
async fn in_session_during_a_concurrent_resume_is_refused() {
    let desk = desk();
    let first = desk.archon.run_with("hello", anna()).await.ended();
    let _taken = desk.journal.open(&first.run, OpenMode::Existing).await.unwrap();
    let e = desk.archon.run_with("more", anna()).await.unwrap_err();
    assert!(matches!(&e, RunError::SessionBusy { run, .. } if *run == first.run), "{e}");
}

#[tokio::test]
async fn in_session_whose_run_was_interrupted_is_refused_until_it_is_resumed() {
    let desk = desk();
    let waits = desk.archon.run_with("refund", anna()).await.ended();
    // Its process took it up, and was killed.
    let mut open = desk.journal.open(&waits.run, OpenMode::Existing).await.unwrap();
    let mut record = Record::clone(open.records.last().unwrap());
    record.seq += 1;
    record.body = RecordBody::Resumed;
    open.writer.append(&[Arc::new(record)], Durability::Synced).await.unwrap();
    drop(open);
    let e = desk.archon.run_with("my number is 4711", anna()).await.unwrap_err();
    assert!(e.advice().contains("resume it"), "{e}: {}", e.advice());
    let RunError::SessionBusy { run, status } = e else { panic!("{e}") };
    assert_eq!((&run, status), (&waits.run, RunStatus::Interrupted));
    let branch = desk.archon.run_with("by the way", anna().branch()).await.ended();
    assert!(branch.is_finished(), "{branch:?}");
}

#[tokio::test]
async fn resume_of_a_failed_run_that_its_session_went_on_from_is_refused() {
    let desk = desk();
    let failed = desk.archon.run_with("fail", anna()).await.ended();
    assert_eq!(failed.status, OutcomeStatus::Failed);
    let second = desk.archon.run_with("hello", anna()).await.ended();
    let third = desk.archon.run_with("again", anna()).await.ended();
    let by_the_agent = desk.archon.resume(failed.run.clone()).await.unwrap_err();
    let by_the_service = Runs::new(desk.archon.clone()).resume(&failed.run, &MoreLimits::default()).await;
    for e in [by_the_agent, by_the_service.unwrap_err()] {
        let RunError::WentOn { run, by } = e else { panic!("{e}") };
        assert_eq!((&run, &by), (&failed.run, &second.run));
    }
    // The newest may be resumed, and one that was left for another way.
    let failed = desk.archon.run_with("fail", anna()).await.ended();
    desk.archon.resume(failed.run.clone()).await.unwrap().reply().await.ended();
    desk.archon.fork(&failed.run, ForkOptions::default()).await.unwrap();
    assert!(desk.archon.resume(failed.run).await.is_ok());
    assert_eq!(third.last_text(), Some("3"));
}

#[tokio::test]
async fn in_session_of_a_name_without_runs_begins_the_session_and_goes_on_in_it() {
    let desk = desk();
    assert_eq!(desk.archon.run_with("hello", anna()).await.ended().last_text().unwrap_or_default(), "1");
    assert_eq!(desk.archon.run_with("again", anna()).await.ended().last_text().unwrap_or_default(), "2");
    let talk = desk.archon.conversation_in(SessionId::new("ben")).await.unwrap();
    assert_eq!(talk.prompt("hello").await.unwrap().reply().await.ended().last_text(), Some("1"));
    let talk = desk.archon.conversation_in(SessionId::new("ben")).await.unwrap();
    assert_eq!(talk.prompt("again").await.unwrap().reply().await.ended().last_text(), Some("2"));
}

#[tokio::test]
async fn in_session_of_another_tenants_name_shows_nothing_of_theirs() {
    let desk = desk();
    desk.archon.run_with("hello", anna()).await.ended();
    let mut other = anna();
    other.tenant = Some("else".into());
    assert_eq!(desk.archon.run_with("hello", other).await.ended().last_text(), Some("1"));
}

#[tokio::test]
async fn in_session_whose_run_waits_or_works_is_refused_and_branches_only_when_told_to() {
    let desk = desk();
    let waits = desk.archon.run_with("refund", anna()).await.ended();
    assert_eq!(waits.status, OutcomeStatus::Suspended);
    let busy = |result: RunError| match result {
        RunError::SessionBusy { run, status } => (run, status),
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
    record.body = RecordBody::HintAdded { text: "at work".to_owned() };
    open.writer.append(&[Arc::new(record)], Durability::Synced).await.unwrap();
    let e = desk.archon.run_with("my number is 4711", anna()).await.unwrap_err();
    assert_eq!(busy(e), (waits.run, RunStatus::Running));
    let branch = desk.archon.run_with("by the way", anna().branch()).await.ended();
    assert!(branch.is_finished(), "{branch:?}");
}
