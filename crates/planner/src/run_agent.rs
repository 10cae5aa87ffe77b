//! Plans as runs of a run service.

use archon_types::{
    AgentId, AgentMessage, BoxFuture, Context, MoreLimits, Origin, Outcome, RunAgent, RunError, RunKind,
};

use crate::{PlanRunError, PlanningAgent};

impl RunAgent for PlanningAgent {
    fn kind(&self) -> RunKind {
        RunKind::Plan
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
        Box::pin(async move {
            RunKind::Plan.refuse_session(&origin)?;
            Ok(self.start(&AgentMessage::joined_text(&prompts)?, context).await?)
        })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move { Ok(self.resume_with(more, context).await?) })
    }
}

impl From<PlanRunError> for RunError {
    fn from(error: PlanRunError) -> Self {
        match error {
            PlanRunError::Journal(error) => error.into(),
            PlanRunError::Refused(refused) => refused.into(),
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
