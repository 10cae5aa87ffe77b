//! Of two messages to a session at the same moment only one begins a run: the one that holds the lock of the run from which
//! both would go on, until its own run is in the journal. A session without runs has a run for that which never begins. That
//! works in every journal that gives a run one writer at a time.

use std::sync::{Arc, Mutex, PoisonError};

use archon_react_loop::stands_at;
use archon_types::{
    Context, ContinuationKind, Event, JournalError, OpenMode, OpenRun, Origin, OutcomeStatus, Record,
    RecordBody, RunFilter, RunId, RunStarted, RunStatus, RunWriter, SessionId, Sink, TenantId,
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
                let start = self.claim_first(session, tenant).await?;
                // Somebody may have begun a run between the look and the lock.
                match self.newest(of(session, tenant)).await? {
                    Some(_) => continue,
                    None => return Ok(start),
                }
            };
            if head.status.is_busy() {
                return Err(RunError::SessionBusy { run: head.run_id, status: head.status });
            }
            let start = self.claim(&head.run_id).await?;
            match self.newest(of(session, tenant)).await? {
                Some(newer) if newer.run_id != head.run_id => {}
                _ => return Ok(start),
            }
        }
    }

    /// As [`claim_newest`](Self::claim_newest), from this run of the session, which need not be the newest, or from no run.
    pub(crate) async fn claim_in(
        &self,
        run: Option<RunId>,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        let start = match &run {
            Some(run) => self.claim(run).await?,
            None => self.claim_first(session, tenant).await?,
        };
        match self.newest(of(session, tenant)).await? {
            Some(newer) if Some(&newer.run_id) != run.as_ref() && newer.status.is_busy() => {
                Err(RunError::SessionBusy { run: newer.run_id, status: newer.status })
            }
            _ => Ok(start),
        }
    }

    /// As [`claim_newest`](Self::claim_newest), from the newest run that has ended: others may wait for a person meanwhile.
    #[cfg(feature = "orchestrator")]
    pub(crate) async fn claim_ended(
        &self,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        let ended = RunStatus::ALL.into_iter().filter(|status| status.has_ended());
        let ended = of(session, tenant).status(ended).top_level().limit(1);
        let last = async || Ok::<_, RunError>(self.journal.list(&ended).await?.pop().map(|head| head.run_id));
        loop {
            let run = last().await?;
            let start = match &run {
                Some(run) => self.claim(run).await?,
                None => self.claim_first(session, tenant).await?,
            };
            match self.newest(of(session, tenant).top_level()).await? {
                Some(archon_types::RunHead { run_id: run, status: status @ RunStatus::Running, .. }) => {
                    return Err(RunError::SessionBusy { run, status });
                }
                _ if last().await? == run => return Ok(start),
                _ => {}
            }
        }
    }

    /// The start of the first run of a session.
    async fn claim_first(&self, session: &SessionId, tenant: &TenantId) -> Result<Start, RunError> {
        match self.journal.open(&first_of(session, tenant), OpenMode::Create).await {
            Err(JournalError::Locked { run }) => {
                Err(RunError::SessionBusy { run, status: RunStatus::Running })
            }
            open => Ok(Start { origin: Origin::Prompt, lock: Some(open?.writer) }),
        }
    }

    /// A run that ended without an answer is not resumed once the session has gone on from it: what it would say then is
    /// missing from the conversation, and what was said since, from it.
    ///
    /// # Errors
    /// [`RunError::WentOn`]; or the journal failed.
    pub(crate) async fn check_is_last(&self, run: &RunId, records: &[Arc<Record>]) -> Result<(), RunError> {
        let has_failed = records.last().is_some_and(|record| match &record.body {
            RecordBody::RunFinished(outcome) => outcome.status != OutcomeStatus::Finished,
            _ => false,
        });
        let Some(own) = RunStarted::of(records).filter(|own| has_failed && !own.session.as_str().is_empty())
        else {
            return Ok(());
        };
        let mut last = self.newest(of(&own.session, &own.tenant)).await?.map(|head| head.run_id);
        let mut by = None;
        while let Some(next) = last.filter(|next| next != run) {
            let log = self.journal.read(&next).await?;
            last = match RunStarted::of(&log).map(|started| &started.origin) {
                Some(Origin::Continues { run, continuation: ContinuationKind::Default, .. }) => {
                    Some(run.clone())
                }
                _ => return Ok(()),
            };
            by = Some(next);
        }
        match by {
            Some(by) => Err(RunError::WentOn { run: run.clone(), by }),
            None => Ok(()),
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

/// The run that is locked where a session has none. It never has a record. By SHA-256, since a customer may choose the name
/// of a session: it must not be possible to choose one that locks another tenant's.
fn first_of(session: &SessionId, tenant: &TenantId) -> RunId {
    run_named("first-", tenant, session.as_str())
}

/// The id of a run that a tenant's name leads to: the same in every process, and no other name's.
pub(crate) fn run_named(prefix: &str, tenant: &TenantId, name: &str) -> RunId {
    let hash = hmac_sha256::Hash::hash(serde_json::json!([tenant, name]).to_string().as_bytes());
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    RunId::new(format!("{prefix}{hex}"))
}
