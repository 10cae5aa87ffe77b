//! Messages of requests with an idempotency key that were put into an inbox: a repeated request finds them.

use std::collections::BTreeMap;

use archon_types::{
    AgentMessage, InboxRequest, JournalError, LlmMessage, Message, RecordBody, RunError, RunFilter, RunId,
    SessionId, StartRun, Started, StartedRun, TenantId, WhenBusy,
};

use super::Runs;

/// The number of runs of a session, newest first, in which a repeated request looks for its messages.
const RUNS: usize = 20;

/// Gives each prompt of a request the id of its delivery. `keyed` is the run that the key names.
fn add_deliveries(prompts: &mut [AgentMessage], keyed: &RunId) {
    for (at, prompt) in prompts.iter_mut().enumerate() {
        if let AgentMessage::Llm(LlmMessage { message: Message::User(user), .. }) = prompt {
            user.delivery = Some(format!("{keyed}_{at}"));
        }
    }
}

/// Returns the id of the delivery of a message; `None` for a message without one.
pub(super) fn delivery_of(message: &AgentMessage) -> Option<&str> {
    match message.as_llm() {
        Some(Message::User(user)) => user.delivery.as_deref(),
        _ => None,
    }
}

impl Runs {
    /// Removes the prompts that an earlier request with the same key has queued in the session, and returns the run that
    /// has them if none is left. `keyed` is the run that the key names. A request without a key or that is never queued
    /// stays as it is.
    pub(super) async fn find_delivered(
        &self,
        prompts: &mut Vec<AgentMessage>,
        request: &StartRun,
        keyed: Option<&RunId>,
        tenant: &TenantId,
    ) -> Result<Option<StartedRun>, RunError> {
        let (Some(keyed), Some(session)) = (keyed, &request.session) else { return Ok(None) };
        if !matches!(request.when_busy, WhenBusy::Queue | WhenBusy::Steer) {
            return Ok(None);
        }
        add_deliveries(prompts, keyed);
        let delivered = self.deliveries(session, tenant).await?;
        let run_of = |prompt: &AgentMessage| delivered.get(delivery_of(prompt)?).cloned();
        let Some(run) = prompts.iter().rev().find_map(run_of) else { return Ok(None) };
        let ids: Vec<_> = prompts.iter().filter_map(delivery_of).map(str::to_owned).collect();
        prompts.retain(|prompt| run_of(prompt).is_none());
        if !prompts.is_empty() {
            return Ok(None);
        }
        let mut before = StartedRun::new(run, session.clone(), Started::Before);
        before.message_ids = ids;
        Ok(Some(before))
    }

    /// Returns the deliveries to the newest runs of a session, each with the run that has the message in its log or in
    /// its inbox.
    async fn deliveries(
        &self,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<BTreeMap<String, RunId>, RunError> {
        let journal = &*self.archon().journal;
        let filter = RunFilter::of_session(session.clone()).tenant(tenant.clone()).limit(RUNS);
        let mut found = BTreeMap::new();
        let mut add = |message: &AgentMessage, run: &RunId| {
            found.extend(delivery_of(message).map(|id| (id.to_owned(), run.clone())));
        };
        for head in journal.list(&filter).await? {
            let run = &head.run_id;
            let records = match journal.read(run).await {
                // Deleted meanwhile.
                Err(JournalError::UnknownRun { .. }) => continue,
                records => records?,
            };
            for record in &records {
                match &record.body {
                    RecordBody::MessageAdded { message, .. } => add(message, run),
                    RecordBody::ParallelStarted { prompts, .. } => prompts.iter().for_each(|p| add(p, run)),
                    _ => {}
                }
            }
            let Some(inbox) = journal.inbox() else { continue };
            for entry in inbox.waiting(run).await? {
                if let InboxRequest::Steer { message } | InboxRequest::FollowUp { message } = &entry.request {
                    add(message, run);
                }
            }
        }
        Ok(found)
    }
}
