//! What a run reports when it is over: a view of its log, derived and never stored.

use std::sync::Arc;

use serde::Serialize;

use crate::{CallId, Cycle, Outcome, Record, RecordBody, Timestamp, ToolCallRecord};

/// A run in numbers: how it ended, what its calls took, how long it worked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunReport {
    /// How it ended, with the answer, the turns and the tokens.
    pub outcome: Outcome,
    /// Its calls, in the order in which they ended.
    pub tool_calls: Vec<ToolCallRecord>,
    /// How long it was worked on, milliseconds. The time between a crash or a cancel and the moment when
    /// somebody took the run up is nobody's.
    pub duration_ms: u64,
    /// The calls that a person has to decide about.
    pub pending_approvals: Vec<CallId>,
}

impl RunReport {
    /// The report of a run, from its records; `None` while it has no outcome.
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

/// How long a run was worked on, milliseconds.
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
            RecordBody::ToolAsked { call, .. } => open.push(*call),
            RecordBody::ToolAnswered { call, .. }
            | RecordBody::ToolRefused { call, .. }
            | RecordBody::ToolFinished { call, .. } => open.retain(|other| other != call),
            _ => {}
        }
    }
    open
}
