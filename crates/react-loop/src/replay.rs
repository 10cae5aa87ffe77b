//! Replay: the same inputs again, with no model and no tools. What follows from them has to be what the
//! log says.
//!
//! The recorded inputs are fed to a machine one by one. Each derived record is computed anew and compared
//! with the recorded one. A request is derived, too: its hash stands in the log, so an input that was
//! altered shows at the next thing that followed from it. What nothing follows from (a time, a token
//! count in the middle of a run that still goes on) cannot be told apart.

use archon_types::{CallId, Carried, Journal, RecordBody, RunId};
use serde::Serialize;

use crate::{
    Command, ContextParts, EarlierRuns, LoopError, ReactMachine, fold_whole_chain, fold_with, resume::started,
};

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "replay", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Replay {
    /// Every derived record is what follows from the inputs before it.
    Identical {
        /// How many records the log has.
        records: u64,
    },
    /// The log and what follows from its inputs part here.
    Differs {
        /// The first record that does not follow, from 0.
        record: u64,
        /// What follows from the inputs before it; `None` if nothing does until something comes from
        /// outside.
        expected: Option<Box<RecordBody>>,
        /// What the log says.
        found: Box<RecordBody>,
    },
}

impl Replay {
    /// Whether the log is what follows from its inputs.
    pub fn is_identical(&self) -> bool {
        matches!(self, Self::Identical { .. })
    }
}

/// Replays a run from its log, and from the logs of the runs that it continues.
///
/// A log that was cut off (a crash, a run that is still going on) is compared as far as it goes.
///
/// # Errors
/// The run, or one that it continues, cannot be read.
pub async fn replay(journal: &dyn Journal, run: &RunId) -> Result<Replay, LoopError> {
    replay_with(journal, run, ContextParts::default()).await
}

/// As [`replay`], with the parts for the context window that the run had.
///
/// # Errors
/// As [`replay`].
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
        if let RecordBody::Carried(found) = &record.body {
            if !is_left(journal, run, &chain, found).await {
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

/// Whether what a run carries is what the runs before it left.
async fn is_left(journal: &dyn Journal, run: &RunId, chain: &EarlierRuns, found: &Carried) -> bool {
    let carried = EarlierRuns::carried(journal, run, found).await;
    carried.is_ok_and(|carried| (carried.history, carried.runs) == (chain.history.clone(), chain.runs))
}

/// What the log should say in place of `found`, if it should say something else: `Some(None)` if nothing
/// at all follows here.
fn disagreement(machine: &ReactMachine, found: &RecordBody) -> Option<Option<RecordBody>> {
    // A lease is granted when its call is let through, which nobody but the log knows.
    let granted = match found {
        RecordBody::Granted { call, .. } => machine.lease_due(*call),
        _ => None,
    };
    let due = granted.or_else(|| due(machine));
    if found.is_input() {
        // What comes from outside may come at any time, but an answer has to have a question. Late
        // answers are recorded where the run waits for something else, never in place of what is due.
        return (due.is_some() && !may_come(machine, found)).then_some(due);
    }
    let same = due.as_ref().is_some_and(|due| is_same(due, found));
    (!same).then_some(due)
}

/// The derived record that is due now.
fn due(machine: &ReactMachine) -> Option<RecordBody> {
    match machine.next() {
        Command::Append(body) => Some(body),
        Command::AskModel { command, attempt, turn } => {
            let request_hash = machine.request().content_hash();
            Some(RecordBody::ModelAsked { command, attempt, turn, request_hash })
        }
        Command::Decide => Some(machine.suspension()),
        _ => None,
    }
}

/// Whether an input may come now, whatever is due.
fn may_come(machine: &ReactMachine, input: &RecordBody) -> bool {
    let open = |call: &CallId| machine.calls().iter().any(|c| c.id == *call && c.result().is_none());
    match input {
        RecordBody::ModelAnswered { command, attempt, .. }
        | RecordBody::ModelFailed { command, attempt, .. }
        | RecordBody::CallLost { command, attempt } => machine.open_request() == Some((*command, *attempt)),
        RecordBody::ToolStarted { call, .. }
        | RecordBody::ToolSpawned { call, .. }
        | RecordBody::ChildBegun { call, .. }
        | RecordBody::Settled { call, .. }
        | RecordBody::ToolFailed { call, .. }
        | RecordBody::ToolFinished { call, .. }
        | RecordBody::ToolRefused { call, .. }
        | RecordBody::ToolAsked { call, .. }
        | RecordBody::ToolAnswered { call, .. } => open(call),
        RecordBody::Summarized(_)
        | RecordBody::GoalChecked(_)
        | RecordBody::FormChecked { .. }
        | RecordBody::RunStarted(_) => false,
        _ => true,
    }
}

/// Earlier versions kept no hash of the request.
fn is_same(due: &RecordBody, found: &RecordBody) -> bool {
    match (due, found) {
        (
            RecordBody::ModelAsked { command, attempt, turn, .. },
            RecordBody::ModelAsked { command: c, attempt: a, turn: t, request_hash },
        ) if request_hash.is_empty() => (command, attempt, turn) == (c, a, t),
        _ => due == found,
    }
}
