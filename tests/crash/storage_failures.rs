//! A run whose storage fails, and one whose parts panic: what is lost, and what is not.

use std::{io, sync::Arc};

use archon::{
    Archon, ArchonBuilder, RunError, RunId, RunOptions, Runs,
    react_loop::LoopError,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        BoxFuture, Durability, ForkOptions, Hooks, Journal, JournalError, OnStorageFailure, OpenMode,
        OpenRun, Record, RecordBody, RunFilter, RunHead, RunWriter, StartRun, StartRuns, ToolCall,
        ToolContext, ToolResult, ToolSpec, Transcript,
    },
};
use archon_testkit::{Ended, FnProvider, RecordingSink};
use futures_util::StreamExt;
use serde_json::json;

/// A journal on a disk that takes `room` appends.
#[derive(Clone)]
struct Full {
    inner: InMemoryJournal,
    room: usize,
}

struct FullWriter {
    inner: Box<dyn RunWriter>,
    room: usize,
}

fn full() -> JournalError {
    let source = io::Error::new(io::ErrorKind::StorageFull, "no space left on device");
    JournalError::Storage { action: "write", place: "run.jsonl".into(), source }
}

impl Journal for Full {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer } = self.inner.open(run, mode).await?;
            Ok(OpenRun { records, writer: Box::new(FullWriter { inner: writer, room: self.room }) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }
}

impl RunWriter for FullWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        match self.room.checked_sub(1) {
            Some(room) => {
                self.room = room;
                self.inner.append(records, durability)
            }
            None => Box::pin(std::future::ready(Err(full()))),
        }
    }
}

/// Calls a tool once, then answers.
fn agent(journal: impl Journal + 'static) -> ArchonBuilder {
    let provider = FnProvider::new(|n, _| match n {
        0 => FnProvider::calls(vec![ToolCall::new("c", "send", json!({}))]),
        _ => FnProvider::text("done"),
    });
    let spec = ToolSpec::new("send", "Sends.", json!({"type": "object"}));
    let send =
        FnTool::new(spec, |_: serde_json::Value, _: ToolContext| async { Ok(ToolResult::success("sent")) });
    Archon::builder()
        .provider(Arc::new(provider), "m")
        .tools([Arc::new(send) as _])
        .journal(Arc::new(journal))
}

/// What the run came to, and whether its watchers were told that it is not kept.
async fn run(agent: ArchonBuilder) -> (Result<archon::Reply, RunError>, bool) {
    let sink = RecordingSink::new();
    let mut options = RunOptions::default().watched_by(Arc::new(sink.clone()));
    options.run = Some(RunId::new("run"));
    let ran = agent.build().unwrap().run_with("Do it.", options).await;
    (ran, sink.records().iter().any(|r| matches!(r.body, RecordBody::LogUnavailable { .. })))
}

// spec: ER-14
#[tokio::test]
async fn run_without_storage_starts_only_if_allowed() {
    let full = || Full { inner: InMemoryJournal::new(), room: 0 };
    let (refused, told) = run(agent(full())).await;
    assert!(matches!(refused, Err(RunError::Journal(JournalError::Storage { .. }))), "{refused:?}");
    assert!(!told);
    let journal = full();
    let (ran, told) = run(agent(journal.clone()).on_storage_failure(OnStorageFailure::Ephemeral)).await;
    assert_eq!((ran.unwrap().into_text().unwrap(), told), ("done".to_owned(), true));
    assert!(journal.read(&RunId::new("run")).await.is_err(), "nobody can take it up");
}

/// What a watcher is told last.
async fn told_last(mut events: archon::types::Watch) -> RunError {
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    last.expect("there is a record").expect_err("the run stopped")
}

#[tokio::test]
async fn watch_of_a_run_that_stopped_names_the_cause_to_each_watcher() {
    let runs = Runs::new(agent(Full { inner: InMemoryJournal::new(), room: 3 }).build().unwrap());
    let run = runs.start(StartRun::new("Do it.")).await.unwrap().run;
    let watchers = [runs.watch(&run, None).await.unwrap(), runs.watch(&run, None).await.unwrap()];
    let mut told = Vec::new();
    for watcher in watchers {
        told.push(told_last(watcher).await);
    }
    // And who comes when all is over.
    told.push(told_last(runs.watch(&run, None).await.unwrap()).await);
    told.push(runs.reply(&run).await.unwrap_err());
    for error in told {
        let RunError::Stopped { error: cause, .. } = &error else { panic!("{error:?}") };
        assert!(matches!(**cause, RunError::Journal(JournalError::Storage { .. })), "{error:?}");
        assert_eq!(error.run(), Some(&run));
        assert_eq!(error.advice(), full().advice());
        assert!(error.to_string().contains("no space left"), "{error}");
    }
}

/// A journal whose medium fails when a run begins: of what is appended first, so many records are stored all the
/// same, and what is there can be read or not.
#[derive(Clone)]
struct Unsure {
    inner: InMemoryJournal,
    stores: usize,
    reads: Result<(), &'static str>,
}

struct UnsureWriter {
    inner: Box<dyn RunWriter>,
    stores: usize,
}

impl Journal for Unsure {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer } = self.inner.open(run, mode).await?;
            Ok(OpenRun { records, writer: Box::new(UnsureWriter { inner: writer, stores: self.stores }) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        match self.reads {
            Ok(()) => self.inner.read(run),
            Err(why) => {
                let (source, place) = (io::Error::other(why), "run.jsonl".into());
                Box::pin(std::future::ready(Err(JournalError::Storage { action: "read", place, source })))
            }
        }
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }
}

impl RunWriter for UnsureWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let stored = &records[..self.stores.min(records.len())];
            if !stored.is_empty() {
                self.inner.append(stored, durability).await?;
            }
            Err(full())
        })
    }
}

// spec: ER-14
#[tokio::test]
async fn run_that_may_be_stored_is_not_continued_without_storage() {
    for (stores, reads, allowed) in [
        (0, Ok(()), true),
        (1, Ok(()), true),
        (2, Ok(()), false),
        (0, Err("no such device"), false),
        (2, Err("no such device"), false),
    ] {
        let journal = Unsure { inner: InMemoryJournal::new(), stores, reads };
        let place = format!("{stores} records, {reads:?}");
        let (ran, told) = run(agent(journal.clone()).on_storage_failure(OnStorageFailure::Ephemeral)).await;
        assert_eq!(told, allowed, "{place}");
        match ran {
            Ok(outcome) => {
                assert!(allowed && outcome.outcome().is_finished(), "{place}");
                let resumed = agent(journal.inner).build().unwrap().resume(RunId::new("run")).await;
                let again = match resumed {
                    Ok(handle) => handle.reply().await,
                    Err(error) => Err(error),
                };
                assert!(again.is_err(), "{place}: what was done is done again");
            }
            Err(error) => {
                assert!(!allowed && error.to_string().contains("no space left"), "{place}: {error}")
            }
        }
    }
}

// spec: ER-14
#[tokio::test]
async fn run_with_a_stored_first_record_is_not_continued_without_storage() {
    let inner = InMemoryJournal::new();
    run(agent(inner.clone())).await.0.unwrap().into_text().unwrap();
    let base = agent(inner.clone()).build().unwrap();
    let session = base.fork(&RunId::new("run"), ForkOptions::after(0)).await.unwrap().session;
    let unsure = Unsure { inner, stores: 1, reads: Ok(()) };
    let sink = RecordingSink::new();
    let options = RunOptions::default().watched_by(Arc::new(sink.clone()));
    let agent = agent(unsure).on_storage_failure(OnStorageFailure::Ephemeral).build().unwrap();
    // Without a prompt its first record is all that a run needs.
    let ran = agent.conversation_in(session).await.unwrap().continue_with(options).await;
    let error = match ran {
        Ok(handle) => handle.reply().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(sink.records().is_empty());
}

// spec: ER-14
#[tokio::test]
async fn stored_run_ends_when_its_storage_fails() {
    for room in 1..9 {
        let journal = Full { inner: InMemoryJournal::new(), room };
        let (ran, told) = run(agent(journal.clone()).on_storage_failure(OnStorageFailure::Ephemeral)).await;
        assert!(!told, "{room}");
        match ran {
            Ok(outcome) => assert!(outcome.outcome().is_finished() && room > 6, "{room}"),
            Err(error) => assert!(error.to_string().contains("no space left"), "{error}"),
        }
        assert!(!journal.read(&RunId::new("run")).await.unwrap().is_empty());
    }
}

// spec: ER-14
#[tokio::test]
async fn a_run_that_exists_already_is_never_worked_on_twice() {
    let journal = InMemoryJournal::new();
    let allowed = || agent(journal.clone()).on_storage_failure(OnStorageFailure::Ephemeral);
    assert!(run(allowed()).await.0.is_ok());
    let (again, told) = run(allowed()).await;
    assert!(matches!(again, Err(RunError::Journal(JournalError::Exists { .. }))), "{again:?}");
    assert!(!told);
}

struct Panics;

impl Hooks for Panics {
    async fn before_turn(&self, _: &Transcript, turn: u32) -> bool {
        assert_eq!(turn, 0, "a bug in a hook");
        true
    }
}

// spec: ER-15
#[tokio::test]
async fn a_panic_ends_its_run_and_nothing_else() {
    let journal = InMemoryJournal::new();
    let (ran, _) = run(agent(journal.clone()).hooks(Arc::new(Panics))).await;
    let error = ran.unwrap_err();
    assert!(
        matches!(error.cause(), Some(LoopError::Panicked { message, .. }) if message.contains("a bug in a hook")),
        "{error}"
    );
    let resumed = agent(journal).build().unwrap().resume(RunId::new("run")).await.unwrap();
    assert!(resumed.reply().await.ended().is_finished());
}
