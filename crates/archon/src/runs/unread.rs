//! Messages that a run did not read before its end. They start the next run of the session, so that no
//! message is lost.

use archon_types::{
    AgentMessage, BoxFuture, InboxRequest, Origin, RunError, RunFilter, RunKind, RunSettings, SessionId,
    Started, StartedRun, TenantId,
};

use super::Runs;
use crate::{RunOptions, unread::unread_messages};

/// The result of a try to start a run with unread messages.
pub(super) enum NextRun {
    /// The run has begun.
    Begun(StartedRun),
    /// Another caller is about to start a run, and may take the messages.
    Claimed,
    /// There are no unread messages, or the newest run of the session has not ended.
    None,
}

impl Runs {
    /// Starts a run with the messages that the newest run of the session did not read. The run to continue is
    /// claimed first, so that no other caller takes the messages meanwhile.
    pub(super) fn begin_unread<'a>(
        &'a self,
        session: &'a SessionId,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<NextRun, RunError>> {
        // Boxed, because the new run may start another one in this way.
        Box::pin(self.go_on_with_unread(session, tenant))
    }

    async fn go_on_with_unread(&self, session: &SessionId, tenant: &TenantId) -> Result<NextRun, RunError> {
        let archon = self.archon();
        let Some(inbox) = archon.journal.inbox() else { return Ok(NextRun::None) };
        let newest = RunFilter::of_session(session.clone()).tenant(tenant.clone());
        let Some(newest) = archon.newest(newest).await? else { return Ok(NextRun::None) };
        if !newest.status.has_ended() || unread_messages(&*inbox, &newest.run_id).await?.0.is_empty() {
            return Ok(NextRun::None);
        }
        let (session, tenant) = (Some(session.clone()), Some(tenant.clone()));
        let options = RunOptions { session, tenant, ..RunOptions::default() };
        let (mut context, start) = match archon.prepare_start(options).await {
            Err(RunError::SessionBusy { .. }) => return Ok(NextRun::Claimed),
            prepared => prepared?,
        };
        // Held until the messages are removed.
        let _claim = start.claim.clone();
        let origin = start.release_at_first_record(&mut context);
        let Origin::Continues { run, .. } = origin.clone() else { return Ok(NextRun::None) };
        let (ids, messages) = unread_messages(&*inbox, &run).await?;
        let messages: Vec<_> = messages.into_iter().filter_map(message_of).collect();
        if messages.is_empty() {
            return Ok(NextRun::None);
        }
        let own = || self.agent(RunKind::Loop, &archon.agent.options().agent_id);
        let agent = match self.agent_of(&run, &archon.journal.read(&run).await?).await {
            // The session continues with the service's own agent.
            Err(RunError::NoAgent { .. }) => own()?,
            agent => agent?,
        };
        let agent = match self.check_plan_mode(agent.kind(), &context).await {
            // A loop reads the messages instead, and changes nothing.
            Err(RunError::PlanMode { .. }) => own()?,
            checked => checked.map(|()| agent)?,
        };
        let requests = self.archon().person_requests_of(&newest.run_id).await?;
        let is_loop = agent.kind() == RunKind::Loop;
        let mut settings = RunSettings::default();
        if is_loop {
            settings.mode = requests.mode;
            settings.compaction.clone_from(&requests.compaction);
        }
        let started = self
            .work(context, Started::New, move |context| async move {
                agent.begin(messages, origin, settings, &context).await
            })
            .await?;
        inbox.remove(&run, &ids).await?;
        match is_loop {
            true => self.archon().remove_requests(requests).await?,
            false => self.archon().move_requests(requests, &started.run).await?,
        }
        Ok(NextRun::Begun(started))
    }
}

/// Returns the message of a steering message or a follow-up.
fn message_of(request: InboxRequest) -> Option<AgentMessage> {
    match request {
        InboxRequest::Steer { message } | InboxRequest::FollowUp { message } => Some(message),
        _ => None,
    }
}
