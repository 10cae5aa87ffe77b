//! Implements [`RunAgent`] for the agents of this crate, for a [`Runs`](crate::Runs) service.

use archon_types::{
    AgentId, AgentMessage, Answer, BoxFuture, Context, MoreLimits, Origin, Outcome, PendingApproval,
    RunAgent, RunError, RunKind, RunSettings,
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
            let own = self.for_run(settings)?;
            Ok(own.agent.start(prompts, origin, &self.own(context)).await?)
        })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { Ok(self.agent.resume_with(more, &self.own(context)).await?) })
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

#[cfg(feature = "planner")]
impl RunAgent for crate::Planning {
    fn kind(&self) -> RunKind {
        RunKind::Plan
    }

    fn id(&self) -> AgentId {
        self.agent().options().agent_id.clone()
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move {
            settings.refuse_for(RunKind::Plan)?;
            let goal = AgentMessage::joined_text(&prompts)?;
            self.limited(settings.limits).begin_with(&goal, extensions(prompts), origin, context).await
        })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { self.resume_run(more, context).await })
    }

    fn check_answer<'a>(
        &'a self,
        pending: &'a PendingApproval,
        answer: &'a Answer,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move { Ok(self.agent().check_answer(pending, answer, context).await?) })
    }
}

#[cfg(feature = "orchestrator")]
impl RunAgent for crate::Teamwork {
    fn kind(&self) -> RunKind {
        RunKind::Team
    }

    fn id(&self) -> AgentId {
        self.team().options().agent_id.clone()
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move {
            settings.refuse_for(RunKind::Team)?;
            let goal = AgentMessage::joined_text(&prompts)?;
            self.limited(settings.limits).begin_with(&goal, extensions(prompts), origin, context).await
        })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { self.resume_run(more, context).await })
    }
}

/// Returns the extension messages of a prompt, which no model reads.
#[cfg(any(feature = "planner", feature = "orchestrator"))]
fn extensions(prompts: Vec<AgentMessage>) -> Vec<archon_types::ExtensionMessage> {
    let extension = |message| match message {
        AgentMessage::Extension(extension) => Some(extension),
        AgentMessage::Llm(_) => None,
    };
    prompts.into_iter().filter_map(extension).collect()
}
