//! Of two messages to a session at the same moment only one begins a run: the one that holds the lock of the run from which
//! both would go on, until its own run is in the journal. That works in every journal that gives a run one writer at a time.

use std::sync::{Arc, Mutex, PoisonError};

use archon_react_loop::stands_at;
use archon_types::{
    Context, Event, JournalError, OpenMode, OpenRun, Origin, RunFilter, RunId, RunStatus, RunWriter,
    SessionId, Sink, TenantId,
};

use crate::{Archon, RunError};

/// Where a new run goes on. While this is held, no other message begins a run there.
pub(crate) struct Start {
    pub(crate) origin: Origin,
    lock: Option<Box<dyn RunWriter>>,
}

impl Start {
    /// The start of a run from here, where others may begin one too.
    pub(crate) fn unclaimed(origin: Origin) -> Self {
        Self { origin, lock: None }
    }

    /// Lets others in as soon as the run of `context` has its first records, or will not have any.
    pub(crate) fn hand_over(self, context: &mut Context) -> Origin {
        if let Some(lock) = self.lock {
            let (run, lock, inner) = (context.run.clone(), Mutex::new(Some(lock)), context.sink.clone());
            context.sink = Arc::new(UntilBegun { run, lock, inner });
        }
        self.origin
    }
}

/// Gives a lock back with the first record of a run.
struct UntilBegun {
    run: RunId,
    lock: Mutex<Option<Box<dyn RunWriter>>>,
    inner: Arc<dyn Sink>,
}

impl Sink for UntilBegun {
    fn emit(&self, event: Event) {
        if matches!(&event, Event::Record { run, .. } if *run == self.run) {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        self.inner.emit(event);
    }
}

impl Archon {
    /// Where the next run of a session goes on: from its newest run.
    ///
    /// # Errors
    /// [`RunError::SessionBusy`]: that run is at work or waits, or somebody else goes on from it at this moment; or the journal
    /// failed.
    pub(crate) async fn claim_newest(
        &self,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        loop {
            let Some(head) = self.newest(of(session, tenant)).await? else {
                return Ok(Start::unclaimed(Origin::Prompt));
            };
            if head.status.is_busy() {
                return Err(RunError::SessionBusy { run: head.run_id, status: head.status });
            }
            let start = self.claim(&head.run_id).await?;
            // Somebody may have begun a run between the look and the lock.
            match self.newest(of(session, tenant)).await? {
                Some(newer) if newer.run_id != head.run_id => {}
                _ => return Ok(start),
            }
        }
    }

    /// As [`claim_newest`](Self::claim_newest), from this run of the session, which need not be the newest.
    pub(crate) async fn claim_in(
        &self,
        run: RunId,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        let start = self.claim(&run).await?;
        match self.newest(of(session, tenant)).await? {
            Some(newer) if newer.run_id != run && newer.status.is_busy() => {
                Err(RunError::SessionBusy { run: newer.run_id, status: newer.status })
            }
            _ => Ok(start),
        }
    }

    async fn claim(&self, run: &RunId) -> Result<Start, RunError> {
        let OpenRun { records, writer } = match self.journal.open(run, OpenMode::Existing).await {
            Err(JournalError::Locked { run }) => {
                return Err(RunError::SessionBusy { run, status: RunStatus::Running });
            }
            open => open?,
        };
        let origin = stands_at(&*self.journal, run, &records).await?;
        Ok(Start { origin, lock: Some(writer) })
    }
}

fn of(session: &SessionId, tenant: &TenantId) -> RunFilter {
    RunFilter::of_session(session.clone()).tenant(tenant.clone())
}
