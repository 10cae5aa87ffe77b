//! Rebuilds the machine of a run from its log.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    CallId, Record, RecordBody, RunId, RunKind, RunStarted, SnapshotResult, ToolResult, metadata,
};

use crate::{ContextParts, History, LoopError, Machine, ReactMachine, window::unique_calls};

/// Folds the records of a run that continues `history`.
///
/// # Errors
/// [`LoopError::NotARun`] if the log does not start with the first record of a run;
/// [`LoopError::OtherKind`] if the run is neither a loop nor a parallel loop.
pub fn fold(run: &RunId, records: &[Arc<Record>], history: History) -> Result<ReactMachine, LoopError> {
    fold_with(run, records, history, ContextParts::default())
}

/// Folds records like [`fold`], with the program's own parts of the context window.
///
/// # Errors
/// See [`fold`].
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

/// Returns the results of a log's calls that read or wrote files, or were about commands in the background.
pub(crate) fn seen_files(records: &[Arc<Record>]) -> Vec<SnapshotResult> {
    let mut calls = HashMap::new();
    let mut seen = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ModelCallFinished { command, message, .. } => {
                let made = unique_calls(message, command.0).into_iter().zip(0..);
                calls.extend(made.map(|(call, index)| (CallId::new(*command, index), call.target().name)));
            }
            RecordBody::ToolCallFinished { call, result } if result.metadata.contains_key(metadata::SEEN) => {
                let mut result = ToolResult::clone(result);
                result.content.clear();
                seen.extend(calls.get(call).map(|tool| SnapshotResult { tool: tool.clone(), result }));
            }
            _ => {}
        }
    }
    seen
}

/// Returns the first record of a loop or a parallel loop; a session continues from either.
pub(crate) fn started<'a>(run: &RunId, records: &'a [Arc<Record>]) -> Result<&'a RunStarted, LoopError> {
    let started = RunStarted::of(records).ok_or_else(|| LoopError::NotARun { run: run.clone() })?;
    match started.kind {
        RunKind::Loop | RunKind::Parallel => Ok(started),
        kind => Err(LoopError::OtherKind { run: run.clone(), kind }),
    }
}

/// Returns the first record of a run that is part of a conversation: a loop, a parallel loop, a plan or a
/// team.
pub(crate) fn conversation_start<'a>(
    run: &RunId,
    records: &'a [Arc<Record>],
) -> Result<&'a RunStarted, LoopError> {
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
