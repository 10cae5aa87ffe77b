//! Implements [`RunAgent`] for the agents of this crate, for a [`Runs`](crate::Runs) service.

use archon_react_loop::Opening;
use archon_types::{
    AgentId, AgentMessage, Answer, BoxFuture, Context, Fork, ForkOptions, MoreLimits, Origin, Outcome,
    PendingApproval, RunAgent, RunError, RunId, RunKind, RunSettings,
};

use crate::{Archon, Parallel};

impl RunAgent for Archon {
    fn kind(&self) -> RunKind {
        RunKind::Loop
    }

    fn id(&self) -> AgentId {
        self.agent.options().agent_id.clone()
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move {
            let mut opening = Opening::new(prompts);
            opening.mode = settings.mode;
            opening.compaction.clone_from(&settings.compaction);
            opening.restored.clone_from(&settings.restored);
            opening.checks_restored = true;
            let own = self.for_run(settings)?;
            if opening.prompts.is_empty() {
                return Err(RunError::EmptyPrompt);
            }
            Ok(own.agent.begin(opening, origin, &self.own(context)).await?)
        })
    }

    fn compact<'a>(
        &'a self,
        origin: Origin,
        instructions: Option<String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move {
            let opening = Opening::compacting(instructions);
            Ok(self.agent.begin(opening, origin, &self.own(context)).await?)
        })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { Ok(self.agent.resume_with(more, &self.own(context)).await?) })
    }

    fn fork<'a>(
        &'a self,
        run: &'a RunId,
        options: ForkOptions,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Fork, RunError>> {
        Box::pin(async move { Ok(self.agent.fork(run, options, &self.own(context)).await?) })
    }

    fn check_answer<'a>(
        &'a self,
        pending: &'a PendingApproval,
        answer: &'a Answer,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move { self.check_edit(pending, answer).await })
    }
}

impl RunAgent for Parallel {
    fn kind(&self) -> RunKind {
        RunKind::Parallel
    }

    fn id(&self) -> AgentId {
        self.branches().id()
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move {
            settings.refuse_for(RunKind::Parallel)?;
            let branches = self.limited(settings.limits);
            Ok(branches.begin(prompts, origin, &self.archon().own(context)).await?.choice.outcome)
        })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move {
            if !more.is_empty() {
                return Err(RunError::Unsupported {
                    run: context.run.clone(),
                    kind: RunKind::Parallel,
                    action: "be resumed with larger limits",
                    instead: "start the parallel loop again with larger limits, or resume its branches with larger limits",
                });
            }
            Ok(self.branches().resume(&self.archon().own(context)).await?.choice.outcome)
        })
    }
}
