//! Claims the point of a session at which a new run continues, so that only one of two simultaneous messages
//! starts a run. The claim is the writer lock of the run to continue, held until the new run is in the
//! journal. For a session without runs the claim is the lock of a run that never begins. This works with
//! every journal that allows one writer per run.

use std::sync::{Arc, Mutex, PoisonError};

use archon_react_loop::continuation_point;
use archon_types::{
    Context, ContinuationKind, Event, JournalError, OpenMode, OpenRun, Origin, OutcomeStatus, Record,
    RecordBody, RunFilter, RunHead, RunId, RunStarted, RunStatus, RunWriter, SessionId, Sink, TenantId,
};

use crate::{Archon, RunError, RunOptions, archon::local};

/// The sole right to start the next run at a point of a session. It ends when the last of its clones is dropped.
#[derive(Clone)]
pub(crate) struct Claim {
    _lock: Arc<Mutex<Box<dyn RunWriter>>>,
}

impl Claim {
    fn new(lock: Box<dyn RunWriter>) -> Self {
        Self { _lock: Arc::new(Mutex::new(lock)) }
    }
}

/// The origin of a new run. While this value has a claim, no other message starts a run at the same point.
pub(crate) struct Start {
    pub(crate) origin: Origin,
    pub(crate) claim: Option<Claim>,
}

impl Start {
    /// Creates a start without a claim: other runs may begin at the same point.
    pub(crate) fn unclaimed(origin: Origin) -> Self {
        Self { origin, claim: None }
    }

    /// Drops the claim as soon as the run of `context` has its first record, or ends without one.
    pub(crate) fn release_at_first_record(self, context: &mut Context) -> Origin {
        if let Some(claim) = self.claim {
            drop_at_first_record(context, claim);
        }
        self.origin
    }
}

/// Drops a value as soon as the run of `context` has its first record, or ends without one.
pub(crate) fn drop_at_first_record<T: Send + 'static>(context: &mut Context, value: T) {
    let (run, inner) = (context.run.clone(), context.sink.clone());
    context.sink = Arc::new(UntilBegun { run, value: Mutex::new(Some(value)), inner });
}

/// A sink that drops a value at the first record of a run.
struct UntilBegun<T> {
    run: RunId,
    value: Mutex<Option<T>>,
    inner: Arc<dyn Sink>,
}

impl<T: Send> Sink for UntilBegun<T> {
    fn emit(&self, event: Event) {
        if matches!(&event, Event::Record { run, .. } if *run == self.run) {
            drop(self.value.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        self.inner.emit(event);
    }
}

impl Archon {
    /// Prepares a run, which continues its session where it ended. The claim ends with the first record of the run.
    pub(crate) async fn prepare(&self, options: RunOptions) -> Result<(Context, Origin), RunError> {
        self.prepare_at(options, None).await
    }

    /// Prepares a run like [`prepare`](Self::prepare). With `point`, the run continues its session at that point
    /// instead of at the end.
    pub(crate) async fn prepare_at(
        &self,
        options: RunOptions,
        point: Option<Origin>,
    ) -> Result<(Context, Origin), RunError> {
        let (mut context, mut start) = self.prepare_start(options).await?;
        start.origin = point.unwrap_or(start.origin);
        let origin = start.release_at_first_record(&mut context);
        Ok((context, origin))
    }

    /// Prepares a run and claims the point at which it begins.
    pub(crate) async fn prepare_start(&self, options: RunOptions) -> Result<(Context, Start), RunError> {
        self.admit()?;
        let start = self.continuation(&options).await?;
        let run = options.run.clone().unwrap_or_else(|| RunId::new(self.ids.fresh("run")));
        let session = options.session.clone().unwrap_or_else(|| SessionId::new(self.ids.fresh("session")));
        Ok((self.context(run, session, options), start))
    }

    pub(crate) async fn continuation(&self, options: &RunOptions) -> Result<Start, RunError> {
        let Some(session) = &options.session else { return Ok(Start::unclaimed(Origin::Prompt)) };
        let tenant = options.tenant.clone().unwrap_or_else(local);
        if !options.branch {
            return self.claim_newest(session, &tenant).await;
        }
        match self.newest(RunFilter::of_session(session.clone()).tenant(tenant)).await? {
            Some(head) => Ok(Start::unclaimed(self.continuation_of(head.run_id).await?)),
            None => Ok(Start::unclaimed(Origin::Prompt)),
        }
    }

    /// Claims the newest run of a session for the next run.
    ///
    /// # Errors
    /// [`RunError::SessionBusy`] if that run is at work or suspended, or another message has the claim; or
    /// the journal failed.
    pub(crate) async fn claim_newest(
        &self,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        loop {
            let newest = async || self.newest(of(session, tenant)).await;
            let run = match newest().await? {
                Some(RunHead { run_id: run, status, .. }) if status.is_busy() => {
                    return Err(RunError::SessionBusy { run, status });
                }
                head => head.map(|head| head.run_id),
            };
            let start = self.claim(run.as_ref(), session, tenant).await?;
            // Another run may have begun before the claim.
            match newest().await? {
                Some(newer) if Some(&newer.run_id) != run.as_ref() => {}
                _ => return Ok(start),
            }
        }
    }

    /// Claims this run of the session, which need not be the newest one, or the start of a session without
    /// runs; otherwise the same as [`claim_newest`](Self::claim_newest).
    pub(crate) async fn claim_in(
        &self,
        run: Option<RunId>,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        let start = self.claim(run.as_ref(), session, tenant).await?;
        match self.newest(of(session, tenant)).await? {
            Some(newer) if Some(&newer.run_id) != run.as_ref() && newer.status.is_busy() => {
                Err(RunError::SessionBusy { run: newer.run_id, status: newer.status })
            }
            _ => Ok(start),
        }
    }

    /// Claims the newest run of the session that has ended, while other runs may be suspended; otherwise the
    /// same as [`claim_newest`](Self::claim_newest).
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
            let start = self.claim(run.as_ref(), session, tenant).await?;
            match self.newest(of(session, tenant).top_level()).await? {
                Some(RunHead { run_id: run, status: status @ RunStatus::Running, .. }) => {
                    return Err(RunError::SessionBusy { run, status });
                }
                _ if last().await? == run => return Ok(start),
                _ => {}
            }
        }
    }

    /// Checks that a run that ended without an answer may be resumed: no later run may continue its session,
    /// because the two conversations would miss each other's messages.
    ///
    /// # Errors
    /// [`RunError::WentOn`] if a later run continues the session; or the journal failed.
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

    /// Claims a run that has ended; `None` if another caller has the claim.
    pub(crate) async fn claim_run(&self, run: &RunId) -> Result<Option<Claim>, RunError> {
        match self.journal.open(run, OpenMode::Existing).await {
            Err(JournalError::Locked { .. }) => Ok(None),
            opened => Ok(Some(Claim::new(opened?.writer))),
        }
    }

    /// Claims this run, or the start of a session without runs.
    async fn claim(
        &self,
        run: Option<&RunId>,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        let opened = match run {
            Some(run) => self.journal.open(run, OpenMode::Existing).await,
            None => self.journal.open(&first_of(session, tenant), OpenMode::Create).await,
        };
        let OpenRun { records, writer } = match opened {
            Err(JournalError::Locked { run }) => {
                return Err(RunError::SessionBusy { run, status: RunStatus::Running });
            }
            opened => opened?,
        };
        let origin = match run {
            Some(run) => continuation_point(&*self.journal, run, &records).await?,
            None => Origin::Prompt,
        };
        Ok(Start { origin, claim: Some(Claim::new(writer)) })
    }
}

fn of(session: &SessionId, tenant: &TenantId) -> RunFilter {
    RunFilter::of_session(session.clone()).tenant(tenant.clone())
}

/// Returns the id of the run that is locked for a session without runs; this run never has a record. The id
/// is a SHA-256 hash, because customers may choose session names: no name may lead to another tenant's lock.
fn first_of(session: &SessionId, tenant: &TenantId) -> RunId {
    run_named("first-", tenant, session.as_str())
}

/// Hashes a name of a tenant to a run id, which is the same in every process and different for every other
/// name.
pub(crate) fn run_named(prefix: &str, tenant: &TenantId, name: &str) -> RunId {
    let hash = hmac_sha256::Hash::hash(serde_json::json!([tenant, name]).to_string().as_bytes());
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    RunId::new(format!("{prefix}{hex}"))
}
