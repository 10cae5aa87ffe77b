//! Reports about runs that have ended. They are computed from the log and not stored.

use std::sync::Arc;

use archon_types::{CallId, Outcome, Record, RecordBody};
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
    /// The working time in milliseconds: the time between the records, without the time before each record
    /// that resumes the run (`limits_raised`, `resumed`).
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

/// Returns the working time of a run in milliseconds. The time before a record that resumes the run does not
/// count, because no process worked on the run then.
pub(crate) fn active(records: &[Arc<Record>]) -> u64 {
    let worked = records.windows(2).filter(|pair| !pair[1].body.is_resumption());
    worked.map(|pair| pair[1].at.millis_since(pair[0].at)).sum()
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

#[cfg(test)]
mod tests {
    use archon_types::{MoreLimits, Timestamp};

    use super::*;

    #[test]
    fn time_before_a_resumption_is_no_working_time() {
        let raised = RecordBody::LimitsRaised(MoreLimits::default().with_max_turns(9));
        let bodies = [
            (0, RecordBody::ClockRead),
            (100, RecordBody::ClockRead),
            (60_100, raised),
            (60_103, RecordBody::Resumed),
            (60_200, RecordBody::ClockRead),
            (99_000, RecordBody::Resumed),
            (99_001, RecordBody::ClockRead),
        ];
        let record = |(seq, (at, body))| Arc::new(Record { seq, at: Timestamp::from_millis(at), body });
        let records: Vec<_> = (0..).zip(bodies).map(record).collect();
        assert_eq!(active(&records), 100 + 97 + 1);
    }
}
