//! Messages of requests with an idempotency key that were put into an inbox: a repeated request finds them.

use std::collections::BTreeMap;

use archon_types::{
    AgentMessage, InboxRequest, JournalError, LlmMessage, Message, RecordBody, RunError, RunFilter, RunId,
    SessionId, Started, StartedRun, TenantId, UserMessage,
};

use super::Runs;

/// The number of runs of a session, newest first, in which a repeated request looks for its messages.
const RUNS: usize = 20;

/// Gives each prompt of a request the id of its delivery. `keyed` is the run that the key names.
pub(super) fn with_deliveries(prompts: Vec<AgentMessage>, keyed: &RunId) -> Vec<AgentMessage> {
    let number = |(at, mut prompt): (usize, AgentMessage)| {
        if let Some(user) = user_mut(&mut prompt) {
            user.delivery = Some(format!("{keyed}_{at}"));
        }
        prompt
    };
    prompts.into_iter().enumerate().map(number).collect()
}

/// Returns the id of the delivery of a message; `None` for a message without one.
pub(super) fn delivery_of(message: &AgentMessage) -> Option<&str> {
    match message.as_llm() {
        Some(Message::User(user)) => user.delivery.as_deref(),
        _ => None,
    }
}

impl Runs {
    /// Removes the prompts that an earlier request with the same key has delivered to the session. Returns the run that
    /// has them if none is left.
    pub(super) async fn undelivered(
        &self,
        prompts: &mut Vec<AgentMessage>,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Option<StartedRun>, RunError> {
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

fn user_mut(message: &mut AgentMessage) -> Option<&mut UserMessage> {
    match message {
        AgentMessage::Llm(LlmMessage { message: Message::User(user), .. }) => Some(user),
        _ => None,
    }
}
