//! From a log back to a machine: the same fold that ran while the log was written.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    CallId, CarriedResult, Record, RecordBody, RunId, RunKind, RunStarted, ToolResult, metadata,
};

use crate::{ContextParts, History, LoopError, ReactMachine, window::unique_calls};

/// Folds a run's records, after the conversation that it continues.
///
/// # Errors
/// [`LoopError::NotARun`] if the log does not begin as a run's log does, [`LoopError::OtherKind`] if it is
/// no loop's.
pub fn fold(run: &RunId, records: &[Arc<Record>], history: History) -> Result<ReactMachine, LoopError> {
    fold_with(run, records, history, ContextParts::default())
}

/// As [`fold`], with parts of the program's own for the context window.
///
/// # Errors
/// As [`fold`].
pub fn fold_with(
    run: &RunId,
    records: &[Arc<Record>],
    history: History,
    parts: ContextParts,
) -> Result<ReactMachine, LoopError> {
    let started = started(run, records)?;
    let mut machine = ReactMachine::with_parts(started, records[0].at, history, parts);
    for record in &records[1..] {
        machine.apply(record);
    }
    Ok(machine)
}

/// Folds a run's records as if its compactions, or the latest of them, had never been: the model sees
/// again what they had taken from its view.
///
/// # Errors
/// As [`fold`].
pub fn fold_undone(
    run: &RunId,
    records: &[Arc<Record>],
    history: History,
    undo: Undo,
) -> Result<ReactMachine, LoopError> {
    let is_compaction = |record: &&Arc<Record>| matches!(record.body, RecordBody::Compacted(_));
    let all = records.iter().filter(is_compaction).count();
    let mut keep = match undo {
        Undo::All => 0,
        Undo::Last(n) => all.saturating_sub(n),
    };
    let mut kept = Vec::with_capacity(records.len());
    for record in records {
        if is_compaction(&record) {
            if keep == 0 {
                continue;
            }
            keep -= 1;
        }
        kept.push(record.clone());
    }
    fold(run, &kept, history)
}

/// Which compactions are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// All of the run.
    All,
    /// The latest few.
    Last(usize),
}

/// What calls of a log have told of the files that they read or wrote.
pub(crate) fn seen_files(records: &[Arc<Record>]) -> Vec<CarriedResult> {
    let mut calls = HashMap::new();
    let mut seen = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ModelAnswered { command, message, .. } => {
                let made = unique_calls(message, command.0).into_iter().zip(0..);
                calls.extend(made.map(|(call, index)| (CallId::new(*command, index), call.name.clone())));
            }
            RecordBody::ToolFinished { call, result } if result.metadata.contains_key(metadata::SEEN) => {
                let mut result = ToolResult::clone(result);
                result.content.clear();
                seen.extend(calls.get(call).map(|tool| CarriedResult { tool: tool.clone(), result }));
            }
            _ => {}
        }
    }
    seen
}

/// The first record of a loop, or of a parallel loop: a session goes on from either.
pub(crate) fn started<'a>(run: &RunId, records: &'a [Arc<Record>]) -> Result<&'a RunStarted, LoopError> {
    let started = RunStarted::of(records).ok_or_else(|| LoopError::NotARun { run: run.clone() })?;
    match started.kind {
        RunKind::Loop | RunKind::Parallel => Ok(started),
        kind => Err(LoopError::OtherKind { run: run.clone(), kind }),
    }
}

/// The first record of a run that is a part of a conversation: every kind but the call of an agent.
pub(crate) fn spoken<'a>(run: &RunId, records: &'a [Arc<Record>]) -> Result<&'a RunStarted, LoopError> {
    match RunStarted::of(records) {
        Some(started) if matches!(started.kind, RunKind::Plan | RunKind::Team) => Ok(started),
        _ => started(run, records),
    }
}

#[cfg(test)]
mod tests {
    use archon_types::{AgentId, LoopId, RunConfig, SessionId, Timestamp};

    use super::*;

    #[test]
    fn fold_log_of_plan_is_refused_with_its_kind() {
        let run = RunId::new("run_1");
        let (session, agent, loop_id) = (SessionId::new("s"), AgentId::new("a"), LoopId::new("s.plan.1"));
        let mut started = RunStarted::new(run.clone(), session, agent, loop_id, RunConfig::default());
        let log = |started: &RunStarted| {
            let body = RecordBody::RunStarted(Box::new(started.clone()));
            vec![Arc::new(Record { seq: 0, at: Timestamp::from_millis(0), body })]
        };
        assert!(fold(&run, &log(&started), History::default()).is_ok());
        started.kind = RunKind::Plan;
        let folded = fold(&run, &log(&started), History::default());
        assert!(
            matches!(folded, Err(LoopError::OtherKind { run: named, kind: RunKind::Plan }) if named == run)
        );
    }
}
