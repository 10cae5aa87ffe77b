//! Open questions to people, computed from the records of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    messages::AgentMessage,
    tools::{Answer, ApprovalRequest},
    values::{AgentId, CallId, RunId, SessionId, TaskId, TenantId, Timestamp},
};

use super::{
    inbox::{Inbox, InboxRequest},
    journal::{Journal, read_if_exists},
    journal_error::JournalError,
    origin::{Origin, TRIGGER_MESSAGE, TurnTrigger},
    record::{Record, RecordBody},
};

/// An open question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PendingApproval {
    /// The run that logs the question, and is resumed once the question is answered.
    pub run: RunId,
    /// The call that waits for the answer.
    pub call: CallId,
    /// The run's session.
    pub session: SessionId,
    /// The tenant on whose behalf the run works.
    pub tenant: TenantId,
    /// The agent of the run.
    pub agent: AgentId,
    /// The source of the run: `agent` if the call of another agent started it, `trigger` if a task started it, otherwise
    /// `user`.
    pub source: String,
    /// The task that started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The time at which the question was first asked.
    pub created_at: Timestamp,
    /// The question.
    #[serde(flatten)]
    pub request: ApprovalRequest,
}

impl PendingApproval {
    /// Returns the run that asked the question and receives the answer: [`run`](Self::run) or a run at any level
    /// below it.
    pub fn asker(&self) -> &RunId {
        self.request.asker().map_or(&self.run, |asker| &asker.run)
    }

    /// Returns true if the question needs no answer any more: the inbox of the run that asks has an answer,
    /// or the log of that run closes the question.
    ///
    /// # Errors
    /// The journal failed.
    pub async fn is_answered(&self, journal: &dyn Journal) -> Result<bool, JournalError> {
        let (asker, question) = (self.asker(), &self.request);
        // An agent without a log asks in the log of its caller only.
        if let Some(records) = read_if_exists(journal, asker).await?
            && !find_open(&records).iter().any(|(.., open)| open.request_id == question.request_id)
        {
            return Ok(true);
        }
        let Some(inbox) = journal.inbox() else { return Ok(false) };
        let answers = |request: &InboxRequest| matches!(request, InboxRequest::Answer { request_id, binding, .. } if question.is_meant(request_id, binding));
        Ok(inbox.waiting(asker).await?.iter().any(|entry| answers(&entry.request)))
    }

    /// Puts an answer into the inbox of the run that asks. Returns false and changes nothing if the inbox
    /// already has an answer to the question.
    ///
    /// # Errors
    /// The journal failed or has no inbox.
    pub async fn answer(
        &self,
        answer: Answer,
        now: Timestamp,
        journal: &dyn Journal,
    ) -> Result<bool, JournalError> {
        let inbox = inbox_of(journal)?;
        let log = read_if_exists(journal, self.asker()).await?.unwrap_or_default();
        match inbox.post(self.asker(), self.request.first_answer(answer, now, &log)).await {
            Err(JournalError::Posted { .. }) => Ok(false),
            posted => posted.map(|()| true),
        }
    }
}

/// Returns the open questions in the log of a run, oldest first: questions of the run itself, and questions
/// of its child runs that the run has logged.
pub fn pending_approvals(records: &[Arc<Record>]) -> Vec<PendingApproval> {
    let Some(RecordBody::RunStarted(started)) = records.first().map(|r| &r.body) else { return Vec::new() };
    let task = task_of(records);
    let source = match (&started.origin, started.first_trigger) {
        (Origin::CalledBy { .. }, _) | (_, TurnTrigger::SubAgent) => "agent",
        _ if task.is_some() => "trigger",
        _ => "user",
    };
    let pending = |(call, created_at, request): Asked<'_>| PendingApproval {
        run: started.run.clone(),
        call,
        session: started.session.clone(),
        tenant: started.tenant.clone(),
        agent: started.agent.clone(),
        source: source.to_owned(),
        task: task.clone(),
        created_at,
        request: request.clone(),
    };
    find_open(records).into_iter().map(pending).collect()
}

/// Returns the task that started a run; `None` for the run of a person or of an agent.
fn task_of(records: &[Arc<Record>]) -> Option<TaskId> {
    records.iter().find_map(|record| match &record.body {
        RecordBody::MessageAdded { message: AgentMessage::Extension(mark), .. }
            if mark.kind == TRIGGER_MESSAGE =>
        {
            mark.data["task_id"].as_str().map(TaskId::new)
        }
        _ => None,
    })
}

/// Returns the open questions that the log of a run has, each with the call that waits for the answer, oldest
/// first.
pub fn open_questions(records: &[Arc<Record>]) -> Vec<(CallId, &ApprovalRequest)> {
    find_open(records).into_iter().map(|(call, _, request)| (call, request)).collect()
}

/// The call of an open question, the time at which it was first asked, and the question.
type Asked<'a> = (CallId, Timestamp, &'a ApprovalRequest);

/// Finds the open questions, oldest first.
fn find_open(records: &[Arc<Record>]) -> Vec<Asked<'_>> {
    let mut open: Vec<Asked<'_>> = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ApprovalRequested { call, request } => {
                // A question that is asked again replaces the earlier one and keeps its time.
                let before = open.iter().position(|(.., other)| other.request_id == request.request_id);
                let first = before.map_or(record.at, |index| open.remove(index).1);
                open.push((*call, first, request));
            }
            RecordBody::ApprovalAnswered { call, .. }
            | RecordBody::ToolCallStarted { call, .. }
            | RecordBody::ToolCallRefused { call, .. }
            | RecordBody::ToolCallFinished { call, .. } => open.retain(|(other, ..)| other != call),
            RecordBody::RunFinished(_) => open.clear(),
            _ => {}
        }
    }
    open
}

/// Returns all open questions of the child run `child` that `call` started, in the form in which the calling run
/// logs them. If the child run's log has no open question or cannot be read, returns only `said`, the question that
/// the call reported.
pub async fn questions_below(
    journal: Option<&dyn Journal>,
    child: &RunId,
    call: CallId,
    said: ApprovalRequest,
) -> Vec<ApprovalRequest> {
    let records = match journal {
        Some(journal) => journal.read(child).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let up = |pending: PendingApproval| pending.request.from_below(child.clone(), pending.call);
    let mut questions: Vec<_> = pending_approvals(&records).into_iter().map(up).collect();
    if questions.is_empty() {
        questions.push(said.from_below(child.clone(), call));
    }
    questions
}

pub(crate) fn inbox_of(journal: &dyn Journal) -> Result<Arc<dyn Inbox>, JournalError> {
    journal.inbox().ok_or(JournalError::Unsupported { action: "receive messages for runs" })
}
