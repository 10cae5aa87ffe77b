//! Loops and parallel loops as agents of a run service.

use archon_types::{
    AgentId, AgentMessage, BoxFuture, Context, MoreLimits, Origin, Outcome, RunAgent, RunError, RunKind,
    RunRefused,
};

use crate::{LoopError, Parallel, ReactAgent};

impl RunAgent for ReactAgent {
    fn kind(&self) -> RunKind {
        RunKind::Loop
    }

    fn id(&self) -> AgentId {
        self.options().agent_id.clone()
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { Ok(self.start(prompts, origin, context).await?) })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { Ok(self.resume_with(more, context).await?) })
    }
}

impl RunAgent for Parallel {
    fn kind(&self) -> RunKind {
        RunKind::Parallel
    }

    fn id(&self) -> AgentId {
        Self::id(self)
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { Ok(Self::begin(self, prompts, origin, context).await?.choice.outcome) })
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
                    instead: "start it again with larger limits, or resume its branches with more",
                });
            }
            Ok(Self::resume(self, context).await?.choice.outcome)
        })
    }
}

impl From<LoopError> for RunError {
    fn from(error: LoopError) -> Self {
        match error {
            LoopError::Journal(error) => error.into(),
            LoopError::EmptyPrompt => Self::EmptyPrompt,
            LoopError::Ended { run } => RunRefused::Ended { run }.into(),
            LoopError::AtLimit { run, limit } => RunRefused::AtLimit { run, limit }.into(),
            LoopError::OtherKind { run, kind } => Self::Unsupported {
                run,
                kind,
                action: "do what a loop can",
                instead: "resume it with the agent of its kind; steer, fork or replay the runs that it called; begin a new session for another task",
            },
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
