//! The run service of a token. It counts each start and each fork for the limit of the token, also those by a
//! mounted router.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_types::{
    AgentHead, AgentMessage, Answer, AnswerRuns, BoxFuture, Clock, Fork, ForkOptions, ManageRuns, Message,
    MoreLimits, PendingApproval, Removed, Reply, ResumedRuns, RunError, RunFilter, RunHead, RunId,
    RunService, Salvaged, SessionId, StartRun, StartRuns, StartedRun, TenantId, Timestamp, TokenBucket,
    Watch,
};

/// A run service that refuses starts and forks beyond a limit.
pub(crate) struct CountedRuns {
    runs: Arc<dyn RunService>,
    clock: Arc<dyn Clock>,
    starts: Mutex<TokenBucket>,
}

impl CountedRuns {
    pub(crate) fn new(runs: Arc<dyn RunService>, clock: Arc<dyn Clock>, starts_per_hour: u32) -> Self {
        let starts = TokenBucket::new(starts_per_hour, Duration::from_secs(3_600), clock.now());
        Self { runs, clock, starts: Mutex::new(starts) }
    }

    /// Counts a start or a fork of a run. Fails beyond the limit. A fork counts because it is a new run as soon
    /// as somebody resumes it.
    fn count(&self) -> Result<(), RunError> {
        let now = self.clock.now();
        // A panic cannot leave the bucket half-changed: every change is one call.
        let taken = self.starts.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        taken.map_err(|next| RunError::TooManyStarts { wait: next.since(now) })
    }
}

/// Passes calls on to the wrapped service.
macro_rules! pass_on {
    ($life:lifetime: $(fn $name:ident($($argument:ident: $kind:ty),*) -> $output:ty;)*) => {$(
        fn $name<$life>(&$life self, $($argument: $kind),*) -> BoxFuture<$life, Result<$output, RunError>> {
            self.runs.$name($($argument),*)
        }
    )*};
}

impl StartRuns for CountedRuns {
    fn start<'a>(&'a self, request: StartRun) -> BoxFuture<'a, Result<StartedRun, RunError>> {
        Box::pin(async move {
            self.count()?;
            self.runs.start(request).await
        })
    }

    fn agents(&self) -> Vec<AgentHead> {
        self.runs.agents()
    }

    pass_on! { 'a:
        fn resume(run: &'a RunId, more: &'a MoreLimits) -> StartedRun;
        fn get(run: &'a RunId) -> RunHead;
        fn list(filter: &'a RunFilter) -> Vec<RunHead>;
        fn records(run: &'a RunId, after: Option<u64>) -> Salvaged;
        fn records_before(run: &'a RunId, before: Option<u64>, most: usize) -> Salvaged;
        fn watch(run: &'a RunId, after: Option<u64>) -> Watch;
        fn history(session: &'a SessionId, tenant: Option<&'a TenantId>) -> Vec<Message>;
        fn reply(run: &'a RunId) -> Reply;
        fn resume_unfinished(tenant: Option<&'a TenantId>) -> ResumedRuns;
    }
}

impl AnswerRuns for CountedRuns {
    pass_on! { 'a:
        fn steer(run: &'a RunId, message: AgentMessage) -> ();
        fn follow_up(run: &'a RunId, message: AgentMessage) -> ();
        fn cancel(run: &'a RunId, reason: &'a str) -> ();
        fn questions(tenant: Option<&'a TenantId>) -> Vec<PendingApproval>;
        fn answer(request_id: &'a str, answer: Answer) -> bool;
        fn sweep() -> ResumedRuns;
    }
}

impl ManageRuns for CountedRuns {
    fn fork<'a>(&'a self, run: &'a RunId, options: ForkOptions) -> BoxFuture<'a, Result<Fork, RunError>> {
        Box::pin(async move {
            self.count()?;
            self.runs.fork(run, options).await
        })
    }

    pass_on! { 'a:
        fn delete(run: &'a RunId) -> ();
        fn prune(before: Timestamp) -> Removed;
        fn erase(tenant: &'a TenantId) -> Removed;
    }
}
