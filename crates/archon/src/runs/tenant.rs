//! The runs of one tenant behind the same traits, for services whose customers name runs.
//!
//! A run of another tenant gives the same answer as a run that does not exist, so that guessing ids reveals
//! nothing.

use archon_react_loop::ContextReport;
use archon_types::{
    AgentHead, AgentMessage, Answer, AnswerRuns, BoxFuture, EarlierMessage, Fork, ForkOptions, JournalError,
    ManageRuns, Message, MoreLimits, PendingApproval, Removed, Reply, ResumedRuns, RunError, RunFilter,
    RunHead, RunId, Salvaged, SessionId, SessionMode, StartRun, StartRuns, StartedRun, TenantId, Timestamp,
    Watch,
};
use futures_util::StreamExt;

use super::{MOST_COMPARED, Runs, nearest};

/// A handle for the runs of one tenant; see [`Runs::for_tenant`]. Cloning is cheap.
///
/// ```
/// use archon::{RunError, Runs, types::{StartRun, StartRuns}};
///
/// async fn ask(runs: &Runs, customer: &str, question: &str) -> Result<String, RunError> {
///     let theirs = runs.for_tenant(customer);
///     let started = theirs.start(StartRun::new(question)).await?;
///     theirs.reply(&started.run).await?.into_text()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TenantRuns {
    runs: Runs,
    tenant: TenantId,
}

impl Runs {
    /// Returns a handle for the runs of one tenant, for requests that name runs. The handle starts runs of
    /// this tenant and sees no other runs. A run of another tenant is [`RunError::UnknownRun`], like a run
    /// that never existed, and the error suggests only similar ids of this tenant. The same applies to
    /// questions.
    ///
    /// A list has only this tenant's runs, whichever tenant its filter names. A start or an erasure for
    /// another tenant is refused with [`RunError::NoEffect`].
    ///
    /// ```no_run
    /// use archon::{Runs, RunError, RunId, types::StartRuns};
    ///
    /// // The run's id comes from the request; the customer comes from its login.
    /// async fn status(runs: &Runs, customer: &str, run: &RunId) -> Result<&'static str, RunError> {
    ///     Ok(runs.for_tenant(customer).get(run).await?.status.as_str())
    /// }
    /// ```
    pub fn for_tenant(&self, tenant: impl Into<TenantId>) -> TenantRuns {
        TenantRuns { runs: self.clone(), tenant: tenant.into() }
    }
}

impl TenantRuns {
    /// Returns the tenant whose runs this handle can reach.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Returns the messages of people in a session of the tenant; see [`Runs::earlier_messages`].
    ///
    /// # Errors
    /// As [`Runs::earlier_messages`].
    pub async fn earlier_messages(&self, session: &SessionId) -> Result<Vec<EarlierMessage>, RunError> {
        self.runs.earlier_messages(session, Some(&self.tenant)).await.map_err(without_ids)
    }

    /// Returns the tokens of the next request of a session of the tenant; see [`Runs::context_report`].
    ///
    /// # Errors
    /// As [`Runs::context_report`].
    pub async fn context_report(&self, session: &SessionId) -> Result<ContextReport, RunError> {
        self.runs.context_report(session, Some(&self.tenant)).await.map_err(without_ids)
    }

    /// Sets the mode of a session of the tenant; see [`Runs::set_mode`].
    ///
    /// # Errors
    /// As [`Runs::set_mode`].
    pub async fn set_mode(&self, session: &SessionId, mode: SessionMode) -> Result<(), RunError> {
        self.runs.set_mode(session, Some(&self.tenant), mode).await.map_err(without_ids)
    }

    /// Returns the mode of a session of the tenant; see [`Runs::mode`].
    ///
    /// # Errors
    /// As [`Runs::mode`].
    pub async fn mode(&self, session: &SessionId) -> Result<SessionMode, RunError> {
        self.runs.mode(session, Some(&self.tenant)).await.map_err(without_ids)
    }

    /// Compacts the conversation of a session of the tenant; see [`Runs::compact`].
    ///
    /// # Errors
    /// As [`Runs::compact`].
    pub async fn compact(
        &self,
        session: &SessionId,
        instructions: Option<&str>,
    ) -> Result<StartedRun, RunError> {
        self.runs.compact(session, Some(&self.tenant), instructions).await.map_err(without_ids)
    }

    /// Waits for `work` if the run belongs to the tenant; otherwise `work` is not polled.
    async fn with<T>(
        &self,
        run: &RunId,
        work: impl Future<Output = Result<T, RunError>>,
    ) -> Result<T, RunError> {
        let head = match self.runs.archon().journal.head(run).await {
            // An error of the storage concerns every run; a client must not take it for the loss of its own.
            Err(error @ JournalError::Storage { .. }) => return Err(error.into()),
            head => head.ok(),
        };
        match head.and_then(|head| head.tenant) {
            Some(tenant) if tenant == self.tenant => work.await.map_err(without_ids),
            // Also for a run whose log is too damaged to tell its tenant.
            _ => Err(self.unknown(run).await),
        }
    }

    async fn unknown(&self, run: &RunId) -> RunError {
        let heads = self.list(&RunFilter::all().limit(MOST_COMPARED)).await.unwrap_or_default();
        let ids = heads.into_iter().map(|head| head.run_id);
        RunError::UnknownRun { run: run.clone(), nearest: nearest(run, ids) }
    }

    fn is_own(&self, tenant: Option<&TenantId>) -> bool {
        tenant.is_none_or(|tenant| *tenant == self.tenant)
    }

    fn check(&self, tenant: Option<&TenantId>) -> Result<(), RunError> {
        match self.is_own(tenant) {
            true => Ok(()),
            false => {
                Err(RunError::NoEffect { option: "tenant", on: "a handle that is bound to another tenant" })
            }
        }
    }
}

/// Removes the similar ids from an error of the service, because they may be ids of other tenants.
fn without_ids(error: RunError) -> RunError {
    match error {
        RunError::UnknownRun { run, .. } => RunError::UnknownRun { run, nearest: Vec::new() },
        error => error,
    }
}

impl StartRuns for TenantRuns {
    fn start<'a>(&'a self, request: StartRun) -> BoxFuture<'a, Result<StartedRun, RunError>> {
        Box::pin(async move {
            self.check(request.tenant.as_ref())?;
            self.runs.start(request.tenant(self.tenant.clone())).await.map_err(without_ids)
        })
    }

    fn resume<'a>(
        &'a self,
        run: &'a RunId,
        more: &'a MoreLimits,
    ) -> BoxFuture<'a, Result<StartedRun, RunError>> {
        Box::pin(self.with(run, self.runs.resume(run, more)))
    }

    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, RunError>> {
        Box::pin(self.with(run, self.runs.get(run)))
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, RunError>> {
        Box::pin(async move {
            match self.is_own(filter.tenant.as_ref()) {
                true => self.runs.list(&filter.clone().tenant(self.tenant.clone())).await,
                false => Ok(Vec::new()),
            }
        })
    }

    fn records<'a>(
        &'a self,
        run: &'a RunId,
        after: Option<u64>,
    ) -> BoxFuture<'a, Result<Salvaged, RunError>> {
        Box::pin(self.with(run, self.runs.records(run, after)))
    }

    fn records_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, RunError>> {
        Box::pin(self.with(run, self.runs.records_before(run, before, most)))
    }

    fn agents(&self) -> Vec<AgentHead> {
        self.runs.agents()
    }

    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<Message>, RunError>> {
        Box::pin(async move {
            match self.is_own(tenant) {
                true => self.runs.history(session, Some(&self.tenant)).await.map_err(without_ids),
                false => Ok(Vec::new()),
            }
        })
    }

    fn watch<'a>(&'a self, run: &'a RunId, after: Option<u64>) -> BoxFuture<'a, Result<Watch, RunError>> {
        Box::pin(async move {
            let events = self.with(run, self.runs.watch(run, after)).await?;
            Ok(events.map(|event| event.map_err(without_ids)).boxed())
        })
    }

    fn reply<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(self.with(run, self.runs.reply(run)))
    }

    fn resume_unfinished<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<ResumedRuns, RunError>> {
        Box::pin(async move {
            match self.is_own(tenant) {
                true => Ok(own(self.runs.resume_unfinished(Some(&self.tenant)).await?)),
                false => Ok(ResumedRuns::default()),
            }
        })
    }
}

impl AnswerRuns for TenantRuns {
    fn steer<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(self.with(run, self.runs.steer(run, message)))
    }

    fn follow_up<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(self.with(run, self.runs.follow_up(run, message)))
    }

    fn cancel<'a>(&'a self, run: &'a RunId, reason: &'a str) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(self.with(run, self.runs.cancel(run, reason)))
    }

    fn questions<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>> {
        Box::pin(async move {
            match self.is_own(tenant) {
                true => self.runs.questions(Some(&self.tenant)).await,
                false => Ok(Vec::new()),
            }
        })
    }

    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>> {
        Box::pin(async move {
            self.runs.answer_of(Some(&self.tenant), request_id, answer).await.map_err(without_ids)
        })
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>> {
        Box::pin(async move { Ok(own(self.runs.sweep_of(Some(&self.tenant)).await?)) })
    }
}

impl ManageRuns for TenantRuns {
    fn fork<'a>(&'a self, run: &'a RunId, options: ForkOptions) -> BoxFuture<'a, Result<Fork, RunError>> {
        Box::pin(self.with(run, self.runs.fork(run, options)))
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(self.with(run, self.runs.delete(run)))
    }

    fn prune<'a>(&'a self, before: Timestamp) -> BoxFuture<'a, Result<Removed, RunError>> {
        Box::pin(self.runs.prune_of(RunFilter::all().tenant(self.tenant.clone()), before))
    }

    fn erase<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Removed, RunError>> {
        Box::pin(async move {
            self.check(Some(tenant))?;
            self.runs.erase(tenant).await
        })
    }
}

/// Removes the ids of other tenants from the errors of resumed runs.
fn own(resumed: ResumedRuns) -> ResumedRuns {
    resumed.into_iter().map(|(run, resumed)| (run, resumed.map_err(without_ids))).collect()
}
