//! Messages and requests of a person that wait between two runs of a session: a conversation, `start` and `run_with`
//! read them, and lose none.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use archon::{
    Archon, Journal, OutcomeStatus, RunOptions, Runs, SessionId, ToolContext, ToolResult,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        BoxFuture, Inbox, InboxEntry, InboxRequest, JournalError, Json, Message, OpenMode, OpenRun, Outcome,
        Record, RecordBody, RunFilter, RunHead, RunId, SessionMode, Timestamp, ToolCall, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;
use tokio::sync::Semaphore;

/// A journal in which no run begins while it is full.
#[derive(Clone, Default)]
struct Full {
    inner: InMemoryJournal,
    is_full: Arc<AtomicBool>,
}

impl Journal for Full {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            match mode == OpenMode::Create && self.is_full.load(Ordering::SeqCst) {
                true => Err(JournalError::Unsupported { action: "begin runs" }),
                false => self.inner.open(run, mode).await,
            }
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.inner.inbox()
    }
}

struct Desk {
    archon: Archon,
    runs: Runs,
    journal: Full,
    model: FnProvider,
    /// The number of calls of the tool `change` that changed something.
    changes: Arc<AtomicUsize>,
}

/// An agent that tries to change something once in every run.
fn desk() -> Desk {
    let (journal, changes) = (Full::default(), Arc::<AtomicUsize>::default());
    let model = FnProvider::new(|_, request| match request.messages.iter().last().map(|last| &**last) {
        Some(Message::User(_)) => FnProvider::calls(vec![ToolCall::new("c", "change", json!({}))]),
        _ => FnProvider::text("done"),
    });
    let counter = changes.clone();
    let spec = ToolSpec::new("change", "Changes something.", json!({"type": "object"}));
    let change = FnTool::new(spec, move |_: Json, _: ToolContext| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolResult::success("changed")) }
    });
    let archon = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .tool(change)
        .journal(Arc::new(journal.clone()))
        .build()
        .unwrap();
    Desk { runs: Runs::new(archon.clone()), archon, journal, model, changes }
}

fn anna() -> SessionId {
    SessionId::new("anna")
}

fn in_session() -> RunOptions {
    RunOptions::in_session(anna())
}

fn steer(text: &str) -> InboxRequest {
    InboxRequest::Steer { message: text.into() }
}

fn compact() -> InboxRequest {
    InboxRequest::Compact { instructions: Some("keep names".into()) }
}

impl Desk {
    fn changes(&self) -> usize {
        self.changes.load(Ordering::SeqCst)
    }

    /// Leaves a request in the inbox of a run that has ended.
    async fn leave(&self, run: &RunId, request: InboxRequest) {
        let id = format!("in-{}", self.waiting(run).await.len());
        let entry = InboxEntry::new(id, Timestamp::default(), request);
        self.journal.inbox().unwrap().post(run, entry).await.unwrap();
    }

    async fn waiting(&self, run: &RunId) -> Vec<InboxRequest> {
        let waiting = self.journal.inbox().unwrap().waiting(run).await.unwrap();
        waiting.into_iter().map(|entry| entry.request).collect()
    }

    /// Returns true if the log of a run has a record of this name.
    async fn has(&self, run: &RunId, name: &str) -> bool {
        self.journal.read(run).await.unwrap().iter().any(|record| record.body.name() == name)
    }

    /// Returns the texts of people in the log of a run.
    async fn texts_of_people(&self, run: &RunId) -> Vec<String> {
        let log = self.journal.read(run).await.unwrap();
        let texts = log.iter().filter_map(|record| match &record.body {
            RecordBody::MessageAdded { message, .. } => message.as_llm().map(Message::text),
            _ => None,
        });
        texts.collect()
    }

    async fn set_plan_mode(&self) {
        self.runs.set_mode(&anna(), None, SessionMode::Plan).await.unwrap();
    }

    /// Checks that a run followed plan mode, which then stands in its log and not in the inbox of the run before.
    async fn check_plan_mode(&self, before: &RunId, outcome: &Outcome, changes: usize) {
        assert_eq!((outcome.status, self.changes()), (OutcomeStatus::Finished, changes));
        assert!(
            self.has(&outcome.run, "mode_changed").await && self.has(&outcome.run, "tool_call_refused").await
        );
        assert_eq!(self.waiting(before).await, []);
        assert_eq!(self.runs.mode(&anna(), None).await.unwrap(), SessionMode::Plan);
    }
}

#[tokio::test]
async fn prompt_after_plan_mode_was_set_between_two_runs_changes_nothing() {
    let desk = desk();
    let chat = desk.archon.conversation_in(anna()).await.unwrap();
    let first = chat.prompt("one").await.unwrap().reply().await.ended();
    assert_eq!(desk.changes(), 1);
    desk.set_plan_mode().await;
    let second = chat.prompt("two").await.unwrap().reply().await.ended();
    desk.check_plan_mode(&first.run, &second, 1).await;
    // Also for a conversation that finds the session as another left it.
    desk.runs.set_mode(&anna(), None, SessionMode::Ask).await.unwrap();
    let later = desk.archon.conversation_in(anna()).await.unwrap();
    later.prompt("three").await.unwrap().reply().await.ended();
    assert_eq!(desk.changes(), 2);
}

#[tokio::test]
async fn prompt_of_a_conversation_found_again_reads_what_its_last_run_did_not() {
    let desk = desk();
    let first = desk.archon.run_with("one", in_session()).await.ended();
    for request in [steer("steered"), compact()] {
        desk.leave(&first.run, request).await;
    }
    let chat = desk.archon.conversation_in(anna()).await.unwrap();
    let second = chat.prompt("two").await.unwrap().reply().await.ended();
    assert_eq!(desk.texts_of_people(&second.run).await, ["two", "steered"]);
    assert!(desk.has(&second.run, "compaction_requested").await);
    assert_eq!(desk.waiting(&first.run).await, []);
}

#[tokio::test]
async fn prompt_whose_run_does_not_begin_leaves_the_unread_for_the_next_prompt() {
    let desk = desk();
    let chat = desk.archon.conversation_in(anna()).await.unwrap();
    let first = chat.prompt("one").await.unwrap().reply().await.ended();
    desk.leave(&first.run, steer("steered")).await;
    desk.set_plan_mode().await;
    desk.journal.is_full.store(true, Ordering::SeqCst);
    chat.prompt("two").await.unwrap().reply().await.unwrap_err();
    assert_eq!(desk.waiting(&first.run).await.len(), 2);
    desk.journal.is_full.store(false, Ordering::SeqCst);
    let third = chat.prompt("three").await.unwrap().reply().await.ended();
    assert_eq!(desk.texts_of_people(&third.run).await, ["three", "steered"]);
    desk.check_plan_mode(&first.run, &third, 1).await;
}

#[tokio::test]
async fn continue_loop_with_a_compaction_that_waits_answers_and_leaves_it_to_the_next_run() {
    let desk = desk();
    let chat = desk.archon.conversation_in(anna()).await.unwrap();
    let first = chat.prompt("one").await.unwrap().reply().await.ended();
    let asked = r#"[{"role": "user", "content": [{"type": "text", "text": "two"}], "timestamp": 0}]"#;
    chat.restore_messages(asked).unwrap();
    desk.leave(&first.run, compact()).await;
    let second = chat.continue_loop().await.unwrap().reply().await.ended();
    assert_eq!(second.last_text(), Some("done"));
    assert_eq!((desk.waiting(&first.run).await, desk.waiting(&second.run).await), (vec![], vec![compact()]));
    let third = chat.prompt("three").await.unwrap().reply().await.ended();
    assert!(desk.has(&third.run, "compaction_requested").await);
}

#[tokio::test]
async fn run_with_and_start_in_a_session_read_what_its_last_run_did_not() {
    for starts in [false, true] {
        let desk = desk();
        let first = desk.archon.run_with("one", in_session()).await.ended();
        desk.leave(&first.run, steer("steered")).await;
        desk.set_plan_mode().await;
        let second = match starts {
            true => desk.archon.start("two", in_session()).await.unwrap().reply().await.ended(),
            false => desk.archon.run_with("two", in_session()).await.ended(),
        };
        assert_eq!(desk.texts_of_people(&second.run).await, ["two", "steered"]);
        desk.check_plan_mode(&first.run, &second, 1).await;
    }
}

#[tokio::test]
async fn messages_that_a_run_begins_with_leave_the_inbox_while_the_run_is_at_work() {
    let desk = desk();
    let first = desk.archon.run_with("one", in_session()).await.ended();
    desk.leave(&first.run, steer("steered")).await;
    let hold = Arc::new(Semaphore::new(0));
    let held = hold.clone();
    let spec = ToolSpec::new("change", "Waits until it may end.", json!({"type": "object"}));
    let wait = FnTool::new(spec, move |_: Json, _: ToolContext| {
        let held = held.clone();
        async move {
            held.acquire().await.unwrap().forget();
            Ok(ToolResult::success("changed"))
        }
    });
    let builder = Archon::builder().provider(Arc::new(desk.model.clone()), "scripted").tool(wait);
    let archon = builder.journal(Arc::new(desk.journal.clone())).build().unwrap();
    let removal = async {
        for _ in 0..1_000 {
            if desk.waiting(&first.run).await.is_empty() {
                return hold.add_permits(1);
            }
            tokio::task::yield_now().await;
        }
        panic!("the message stays in the inbox");
    };
    let (second, ()) = tokio::join!(archon.run_with("two", in_session()), removal);
    assert_eq!(desk.texts_of_people(&second.ended().run).await, ["two", "steered"]);
}

#[tokio::test]
async fn run_with_as_a_branch_takes_the_mode_and_leaves_the_messages_and_the_mode_to_the_session() {
    let desk = desk();
    let first = desk.archon.run_with("one", in_session()).await.ended();
    desk.leave(&first.run, steer("steered")).await;
    desk.set_plan_mode().await;
    let branch = desk.archon.run_with("aside", in_session().branch()).await.ended();
    assert_eq!((desk.changes(), desk.texts_of_people(&branch.run).await), (1, vec!["aside".to_owned()]));
    assert_eq!(desk.waiting(&first.run).await.len(), 2);
    assert!(desk.model.requests().len() > 2);
}
