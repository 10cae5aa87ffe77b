//! Replay: folds a log again, without models and tools, and checks that the derived records are the same.
//!
//! The recorded inputs are applied to a machine one by one. Each derived record is computed again and
//! compared with the recorded one. Requests are derived, too: the log has their hashes, so a changed
//! input shows at the next record that depends on it. An input on which nothing depends (a time, or a
//! token count in the middle of an open run) can be changed without being detected.

use archon_types::{CallId, Journal, RecordBody, RunId, SessionSnapshot};
use serde::Serialize;

use crate::{
    ContextParts, EarlierRuns, LoopError, Machine, Next, ReactMachine, ReactTask, fold_whole_chain,
    fold_with, resume::started,
};

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "replay", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Replay {
    /// Every derived record of the log (a record that follows from earlier records) was computed again with the same
    /// content.
    Identical {
        /// Number of records in the log.
        records: u64,
    },
    /// A record differs from the one that was computed again.
    Differs {
        /// Number of the first record that differs, from 0.
        record: u64,
        /// The computed record; `None` if the machine computes no record at this place.
        expected: Option<Box<RecordBody>>,
        /// The record in the log.
        found: Box<RecordBody>,
    },
}

impl Replay {
    /// Returns true if no record differs.
    pub fn is_identical(&self) -> bool {
        matches!(self, Self::Identical { .. })
    }
}

/// Replays a run from its log, and from the logs of the runs that it continues.
///
/// A log that was cut off, or whose run is still at work, is compared up to its last record.
///
/// # Errors
/// The run, or a run that it continues, cannot be read.
pub async fn replay(journal: &dyn Journal, run: &RunId) -> Result<Replay, LoopError> {
    replay_with(journal, run, ContextParts::default()).await
}

/// Does the same as [`replay`], with the token counter and the compaction strategy that the run had.
///
/// # Errors
/// See [`replay`].
pub async fn replay_with(
    journal: &dyn Journal,
    run: &RunId,
    parts: ContextParts,
) -> Result<Replay, LoopError> {
    let records = journal.read(run).await?;
    let origin = started(run, &records)?.origin.clone();
    let chain = fold_whole_chain(journal, &origin).await?;
    let mut machine = fold_with(run, &records[..1], chain.history.clone(), parts)?;
    for record in &records[1..] {
        if let RecordBody::SessionSnapshot(found) = &record.body {
            if !is_right_snapshot(journal, run, &chain, found).await {
                let (expected, found) = (Some(Box::new(chain.record())), Box::new(record.body.clone()));
                return Ok(Replay::Differs { record: record.seq, expected, found });
            }
            continue;
        }
        if let Some(expected) = disagreement(&machine, &record.body) {
            let found = Box::new(record.body.clone());
            return Ok(Replay::Differs { record: record.seq, expected: expected.map(Box::new), found });
        }
        machine.apply(record);
    }
    Ok(Replay::Identical { records: records.len() as u64 })
}

/// Returns true if the snapshot equals the conversation of the earlier runs.
async fn is_right_snapshot(
    journal: &dyn Journal,
    run: &RunId,
    chain: &EarlierRuns,
    found: &SessionSnapshot,
) -> bool {
    let loaded = EarlierRuns::from_snapshot(journal, run, found).await;
    loaded.is_ok_and(|loaded| (loaded.history, loaded.runs) == (chain.history.clone(), chain.runs))
}

/// Returns the record that the log should have instead of `found`; `None` if `found` is right, `Some(None)`
/// if the machine computes no record at this place.
fn disagreement(machine: &ReactMachine, found: &RecordBody) -> Option<Option<RecordBody>> {
    // A lease follows from the decision to run its call, which only the log has.
    let granted = match found {
        RecordBody::LeaseGranted { call, .. } => machine.lease_due(*call),
        _ => None,
    };
    let due = granted.or_else(|| due(machine));
    if found.is_input() {
        // An input may come at any time, but an answer needs an open question. A late answer is recorded
        // while the run waits, never instead of a record that is due.
        return (due.is_some() && !may_come(machine, found)).then_some(due);
    }
    let same = due.as_ref().is_some_and(|due| due == found);
    (!same).then_some(due)
}

/// Returns the next record that the machine computes; `None` if it computes none now.
fn due(machine: &ReactMachine) -> Option<RecordBody> {
    match machine.next() {
        Next::Append(body) => Some(body),
        Next::Do(ReactTask::AskModel { command, attempt, turn }) => {
            let request_hash = machine.request().content_hash();
            Some(RecordBody::ModelCallStarted { command, attempt, turn, request_hash })
        }
        Next::Do(ReactTask::Decide) => Some(machine.suspension()),
        _ => None,
    }
}

/// Returns true if `input`, a record with data from outside, may come now, even while a derived record is
/// due.
fn may_come(machine: &ReactMachine, input: &RecordBody) -> bool {
    let open = |call: &CallId| machine.calls().iter().any(|c| c.id == *call && c.result().is_none());
    match input {
        RecordBody::ModelCallFinished { command, attempt, .. }
        | RecordBody::ModelCallFailed { command, attempt, .. }
        | RecordBody::ModelCallLost { command, attempt } => {
            machine.open_request() == Some((*command, *attempt))
        }
        RecordBody::ToolCallStarted { call, .. }
        | RecordBody::ProcessStarted { call, .. }
        | RecordBody::ChildRunCreated { call, .. }
        | RecordBody::LeaseSettled { call, .. }
        | RecordBody::ToolCallFailed { call, .. }
        | RecordBody::ToolCallFinished { call, .. }
        | RecordBody::ToolCallRefused { call, .. }
        | RecordBody::ApprovalRequested { call, .. }
        | RecordBody::ApprovalAnswered { call, .. } => open(call),
        RecordBody::Summarized(_)
        | RecordBody::GoalChecked(_)
        | RecordBody::OutputChecked { .. }
        | RecordBody::RunStarted(_) => false,
        _ => true,
    }
}
