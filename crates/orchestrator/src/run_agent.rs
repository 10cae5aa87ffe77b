//! Teams as runs of a run service.

use archon_types::{
    AgentId, AgentMessage, BoxFuture, Context, MoreLimits, Origin, Outcome, RunAgent, RunError, RunKind,
};

use crate::{Team, TeamError};

impl RunAgent for Team {
    fn kind(&self) -> RunKind {
        RunKind::Team
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
            RunKind::Team.refuse_session(&origin)?;
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

impl From<TeamError> for RunError {
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::Journal(error) => error.into(),
            TeamError::Refused(refused) => refused.into(),
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
