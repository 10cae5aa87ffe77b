//! An agent that starts new runs with the current settings, and continues existing runs as their logs say: the server
//! may have been started again with other settings, and the journal also has runs of other commands.

use std::sync::Arc;

use archon::{
    AgentSource, Journal, Outcome, RunError,
    types::{
        AgentId, AgentMessage, Answer, BoxFuture, Context, Fork, ForkOptions, MoreLimits, Origin,
        PendingApproval, RunAgent, RunId, RunKind, RunSettings,
    },
};

/// An agent that follows the current settings in a new run, and the run's own log in an existing run.
pub(super) struct ByLog {
    begins: Arc<dyn RunAgent>,
    journal: Arc<dyn Journal>,
    source: Arc<dyn AgentSource>,
}

impl ByLog {
    pub(super) fn new(
        begins: Arc<dyn RunAgent>,
        journal: Arc<dyn Journal>,
        source: Arc<dyn AgentSource>,
    ) -> Self {
        Self { begins, journal, source }
    }

    /// Builds the agent of a run from the log of the run.
    async fn agent_of(&self, context: &Context) -> Result<Arc<dyn RunAgent>, RunError> {
        let records = self.journal.read(&context.run).await?;
        self.source.agent_of(&records).await
    }
}

impl RunAgent for ByLog {
    fn kind(&self) -> RunKind {
        self.begins.kind()
    }

    fn id(&self) -> AgentId {
        self.begins.id()
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        self.begins.begin(prompts, origin, settings, context)
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { self.agent_of(context).await?.resume(more, context).await })
    }

    fn compact<'a>(
        &'a self,
        origin: Origin,
        instructions: Option<String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        self.begins.compact(origin, instructions, context)
    }

    fn fork<'a>(
        &'a self,
        run: &'a RunId,
        options: ForkOptions,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Fork, RunError>> {
        if options.agent.is_some() {
            return self.begins.fork(run, options, context);
        }
        Box::pin(async move {
            // The context names the fork, which has no log yet. Records before damage are enough for a fork.
            let records = self.journal.salvage(run).await?.records;
            self.source.agent_of(&records).await?.fork(run, options, context).await
        })
    }

    fn check_answer<'a>(
        &'a self,
        pending: &'a PendingApproval,
        answer: &'a Answer,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move { self.agent_of(context).await?.check_answer(pending, answer, context).await })
    }
}
