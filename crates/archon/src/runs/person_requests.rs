//! Requests of a person about a session: to change its mode, or to compact its conversation. A run at work reads such
//! requests from its inbox. If the run has ended, they wait in its inbox until the next run of the session starts.

use std::sync::Arc;

use archon_react_loop::session_mode;
use archon_types::{
    InboxRequest, Origin, RunAgent, RunError, RunId, RunKind, RunRefused, SessionId, SessionMode, Started,
    StartedRun, TenantId,
};

use super::Runs;
use crate::{RunOptions, archon::local};

impl Runs {
    /// Sets the mode of a session. The mode decides which calls of its runs need a person. Call this function only on
    /// behalf of a person, never for a model. A run at work and the agents that it called apply the mode from their
    /// next call on. Without a run at work, the next run of the session applies it. For the first run of a session
    /// use [`StartRun::mode`](archon_types::StartRun::mode). With `None` as `tenant`, the session may belong to any
    /// tenant.
    ///
    /// ```no_run
    /// use archon::{RunError, Runs, SessionId, types::SessionMode};
    ///
    /// async fn look_but_touch_nothing(runs: &Runs, session: &SessionId) -> Result<(), RunError> {
    ///     runs.set_mode(session, None, SessionMode::Plan).await
    /// }
    /// ```
    ///
    /// # Errors
    /// The session has no run, its run at work is no loop, or the journal failed or has no inbox.
    pub async fn set_mode(
        &self,
        session: &SessionId,
        tenant: Option<&TenantId>,
        mode: SessionMode,
    ) -> Result<(), RunError> {
        let head = self.archon().newest_of(session, tenant).await?.ok_or(RunError::NothingToContinue)?;
        let request = InboxRequest::SetMode { mode };
        if head.status.is_busy() && self.is_posted(&head.run_id, request.clone()).await? {
            return Ok(());
        }
        self.archon().leave(&head.run_id, request).await
    }

    /// Returns the mode of a session: the one that was set last, or [`SessionMode::Ask`] if none was set. With `None`
    /// as `tenant`, the session may belong to any tenant.
    ///
    /// # Errors
    /// A log of the session cannot be read.
    pub async fn mode(
        &self,
        session: &SessionId,
        tenant: Option<&TenantId>,
    ) -> Result<SessionMode, RunError> {
        let Some(head) = self.archon().newest_of(session, tenant).await? else {
            return Ok(SessionMode::default());
        };
        match self.archon().person_requests_of(&head.run_id).await?.mode {
            Some(mode) => Ok(mode),
            None => Ok(session_mode(&*self.archon().journal, &head.run_id).await?),
        }
    }

    /// Compacts the conversation of a session: from then on, the model sees a summary in place of old turns.
    /// `instructions` tell the model what the person wants in the summary. A run at work compacts before its next
    /// request; if the run makes no further request, the next run of the session compacts. Without a run at work,
    /// this function starts a run that only compacts. With `None` as `tenant`, the session may belong to any tenant.
    ///
    /// # Errors
    /// The session has no run, its run at work is no loop, or the journal failed or has no inbox.
    pub async fn compact(
        &self,
        session: &SessionId,
        tenant: Option<&TenantId>,
        instructions: Option<&str>,
    ) -> Result<StartedRun, RunError> {
        let head = self.archon().newest_of(session, tenant).await?.ok_or(RunError::NothingToContinue)?;
        let instructions = instructions.map(str::to_owned);
        let request = InboxRequest::Compact { instructions: instructions.clone() };
        if head.status.is_busy() && self.is_posted(&head.run_id, request).await? {
            return Ok(StartedRun::new(head.run_id, session.clone(), Started::Queued));
        }
        let tenant = head.tenant.clone().unwrap_or_else(local);
        let mut requests = self.archon().person_requests_of(&head.run_id).await?;
        // The run compacts anyway.
        requests.compaction = None;
        let options =
            RunOptions { session: Some(session.clone()), tenant: Some(tenant), ..RunOptions::default() };
        let (context, origin) = self.archon().prepare(options).await?;
        let Origin::Continues { run, .. } = &origin else { return Err(RunError::NothingToContinue) };
        let agent = self.loop_agent_of(run).await?;
        let started = self
            .work(context, Started::New, move |context| async move {
                agent.compact(origin, instructions, &context).await
            })
            .await?;
        self.archon().move_requests(requests, &started.run).await?;
        Ok(started)
    }

    /// Posts a request to a run. Returns false if the run has ended meanwhile.
    async fn is_posted(&self, run: &RunId, request: InboxRequest) -> Result<bool, RunError> {
        match self.archon().post(run, request).await {
            Err(RunError::Refused(RunRefused::Ended { .. })) => Ok(false),
            posted => posted.map(|()| true),
        }
    }

    /// Returns the agent of a run if the run is a loop and the agent is known; otherwise the service's own agent.
    async fn loop_agent_of(&self, run: &RunId) -> Result<Arc<dyn RunAgent>, RunError> {
        let records = self.archon().journal.read(run).await?;
        match self.agent_of(run, &records).await {
            Ok(agent) if agent.kind() == RunKind::Loop => Ok(agent),
            _ => self.agent(RunKind::Loop, &self.archon().agent.options().agent_id),
        }
    }
}
