//! Reports about runs that have ended. They are computed from the log and not stored.

use std::sync::Arc;

use archon_types::{CallId, Outcome, Record, RecordBody, Timestamp};
use serde::Serialize;

use crate::cycle::{Cycle, ToolCallRecord};

/// A report about a run: its outcome, its tool calls and its working time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunReport {
    /// The outcome, with the answer, the turns and the tokens.
    pub outcome: Outcome,
    /// The tool calls, in the order in which they ended.
    pub tool_calls: Vec<ToolCallRecord>,
    /// The working time in milliseconds: the time between the records, without the time before each `resumed`
    /// record.
    pub duration_ms: u64,
    /// The calls that wait for a person's decision.
    pub pending_approvals: Vec<CallId>,
}

impl RunReport {
    /// Returns the report of a run from its records; `None` if the run has no outcome.
    pub fn of(records: &[Arc<Record>]) -> Option<Self> {
        let outcome = records.iter().rev().find_map(|record| match &record.body {
            RecordBody::RunFinished(outcome) => Some(Outcome::clone(outcome)),
            _ => None,
        })?;
        let tool_calls =
            Cycle::of(records).into_iter().flat_map(|cycle| cycle.performance.tool_calls).collect();
        Some(Self { outcome, tool_calls, duration_ms: active(records), pending_approvals: pending(records) })
    }
}

/// Returns the working time of a run in milliseconds, without the time before each `resumed` record.
pub(crate) fn active(records: &[Arc<Record>]) -> u64 {
    let mut before: Option<Timestamp> = None;
    let mut all = 0;
    for record in records {
        if let Some(before) = before.filter(|_| !matches!(record.body, RecordBody::Resumed)) {
            all += u64::try_from(record.at.since(before).as_millis()).unwrap_or(u64::MAX);
        }
        before = Some(record.at);
    }
    all
}

fn pending(records: &[Arc<Record>]) -> Vec<CallId> {
    let mut open = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ApprovalRequested { call, .. } => open.push(*call),
            RecordBody::ApprovalAnswered { call, .. }
            | RecordBody::ToolCallRefused { call, .. }
            | RecordBody::ToolCallFinished { call, .. } => open.retain(|other| other != call),
            _ => {}
        }
    }
    open
}
