//! Rebuilds the machine of a plan from its log.

use std::sync::Arc;

use archon_types::{ApprovalRequest, CallId, Record, RecordBody};

use crate::PlanMachine;

/// Returns the machine of a plan's log, which has the state of the plan's graph; `None` for a log of another
/// kind.
pub fn fold(records: &[Arc<Record>]) -> Option<PlanMachine> {
    archon_run::fold(records, PlanMachine::new)
}

/// Returns the open questions of a plan's run, the oldest first: to follow the plan, to start a subtask, to
/// accept its result, and so on.
pub fn open_questions(records: &[Arc<Record>]) -> Vec<(CallId, &ApprovalRequest)> {
    let mut open: Vec<(CallId, &ApprovalRequest)> = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ToolAsked { call, request } => {
                open.retain(|(_, asked)| asked.request_id != request.request_id);
                open.push((*call, request));
            }
            RecordBody::ToolAnswered { call, .. }
            | RecordBody::ToolStarted { call, .. }
            | RecordBody::ToolRefused { call, .. }
            | RecordBody::ToolFinished { call, .. } => open.retain(|(asked, _)| asked != call),
            RecordBody::RunFinished(_) => open.clear(),
            _ => {}
        }
    }
    open
}
