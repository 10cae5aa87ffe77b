//! Open questions to people: a fold over the records of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, ApprovalRequest, CallId, Journal, Origin, Record, RecordBody, RunId, SessionId, TenantId,
    Timestamp, TurnTrigger,
};

/// A question that nobody has answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PendingApproval {
    /// The run that logs the question, and is resumed once it is answered.
    pub run: RunId,
    /// The call that waits.
    pub call: CallId,
    /// The run's session.
    pub session: SessionId,
    /// The tenant for which the run works.
    pub tenant: TenantId,
    /// The agent of the run.
    pub agent: AgentId,
    /// The party that started the run: `user`, `agent` or `trigger`.
    pub source: String,
    /// The time at which it was first asked.
    pub created_at: Timestamp,
    /// The question.
    #[serde(flatten)]
    pub request: ApprovalRequest,
}

impl PendingApproval {
    /// Returns the run that asks, to which the answer is sent.
    pub fn asker(&self) -> &RunId {
        self.request.asker().map_or(&self.run, |asker| &asker.run)
    }
}

/// Returns the open questions of a run, oldest first, with those of child runs that were passed up to it.
pub fn pending_approvals(records: &[Arc<Record>]) -> Vec<PendingApproval> {
    let Some(RecordBody::RunStarted(started)) = records.first().map(|r| &r.body) else { return Vec::new() };
    let source = match (&started.origin, started.first_turn) {
        (Origin::CalledBy { .. }, _) | (_, TurnTrigger::SubAgent) => "agent",
        _ => "user",
    };
    let mut open: Vec<PendingApproval> = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ToolAsked { call, request } => {
                // A question that is asked again replaces the earlier one and keeps its time.
                let before = open.iter().position(|other| other.request.request_id == request.request_id);
                let created_at = before.map_or(record.at, |index| open.remove(index).created_at);
                open.push(PendingApproval {
                    run: started.run.clone(),
                    call: *call,
                    session: started.session.clone(),
                    tenant: started.tenant.clone(),
                    agent: started.agent.clone(),
                    source: source.to_owned(),
                    created_at,
                    request: (**request).clone(),
                });
            }
            RecordBody::ToolAnswered { call, .. }
            | RecordBody::ToolStarted { call, .. }
            | RecordBody::ToolRefused { call, .. }
            | RecordBody::ToolFinished { call, .. } => open.retain(|other| other.call != *call),
            RecordBody::RunFinished(_) => open.clear(),
            _ => {}
        }
    }
    open
}

/// Returns all open questions of a call's child run, as the calling run logs them. If the child's log has
/// none, returns the question `said`.
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
