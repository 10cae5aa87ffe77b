//! A run that another process works on is cancelled, and ends before whoever cancels it looks at it again.

use std::sync::{Arc, atomic::Ordering};

use archon::{
    OutcomeStatus, RunId, Runs,
    types::{
        AnswerRuns, BoxFuture, Inbox, InboxEntry, Journal, JournalError, OpenMode, OpenRun, Record,
        RunFilter, RunHead, RunStatus, StartRun, StartRuns,
    },
};
use archon_testkit::Ended;

use crate::service::run_service::World;

/// A journal to which a message is posted slowly: when it is kept, the run that it is for has ended in the other process.
#[derive(Clone)]
struct Slow {
    world: World,
    other: Runs,
}

impl Journal for Slow {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        self.world.journal.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.world.journal.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.world.journal.list(filter)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.clone()))
    }
}

impl Slow {
    fn inner(&self) -> Arc<dyn Inbox> {
        self.world.journal.inbox().unwrap()
    }
}

impl Inbox for Slow {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.inner().post(run, entry).await?;
            assert_eq!(self.other.reply(run).await.ended().status, OutcomeStatus::Cancelled);
            Ok(())
        })
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        Box::pin(async move { self.inner().waiting(run).await })
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move { self.inner().remove(run, ids).await })
    }
}

#[tokio::test]
async fn run_cancelled_in_another_process_where_it_ends_at_once_stays_cancelled() {
    let world = World::closed();
    let other = world.process();
    let started = other.start(StartRun::new("Take a step")).await.unwrap();
    world.tool_entered().await;
    let journal = Slow { world: world.clone(), other };
    let own = world.builder("agent").tool(world.tool()).journal(Arc::new(journal)).build().unwrap();
    let runs = Runs::new(own);
    runs.cancel(&started.run, "not now").await.unwrap();
    world.open_gate();
    assert_eq!(runs.get(&started.run).await.unwrap().status, RunStatus::Cancelled);
    assert_eq!(runs.reply(&started.run).await.ended().status, OutcomeStatus::Cancelled);
    assert_eq!(world.effects.load(Ordering::SeqCst), 0);
}
