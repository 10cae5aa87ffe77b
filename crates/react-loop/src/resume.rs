//! Rebuilds the machine of a run from its log.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    CallId, ContinuationKind, Origin, PromptSource, Record, RecordBody, RunId, RunKind, RunStarted,
    SnapshotResult, ToolResult, metadata,
};

use crate::{ContextParts, History, LoopError, Machine, ReactMachine, window::unique_calls};

/// Computes the state of a run from its records, one after the other. `history` is the conversation before the run.
///
/// # Errors
/// [`LoopError::NotARun`] if the log does not start with the first record of a run;
/// [`LoopError::OtherKind`] if the run is neither a loop nor a parallel loop.
pub fn fold(run: &RunId, records: &[Arc<Record>], history: History) -> Result<ReactMachine, LoopError> {
    fold_with(run, records, history, ContextParts::default())
}

/// Does the same as [`fold`], with the program's own token counter and compaction strategy.
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

/// Returns the results from which the tools of a run restore their state: results of calls that read or wrote files,
/// that were about commands in the background, or that activated skills; and results made from
/// [marks](archon_types::ToolMark) of messages.
pub(crate) fn seen_results(run: &RunId, records: &[Arc<Record>]) -> Vec<SnapshotResult> {
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
            body => seen.extend(marked(run, body)),
        }
    }
    seen
}

/// Returns the result that is made from the mark of a message, for the tool that the mark names. `None` for a record
/// without a mark.
pub(crate) fn marked(run: &RunId, body: &RecordBody) -> Option<SnapshotResult> {
    let RecordBody::MessageAdded { message, .. } = body else { return None };
    message.mark().map(|mark| SnapshotResult { tool: mark.tool.clone(), result: mark.result(run) })
}

/// Returns the results of the forked run, changed into results of the fork, so that a skill that is active in the
/// forked run stays active in the fork. Empty if the run is no fork, or began with a message. `seen` has the results
/// before the fork.
pub(crate) fn seen_by_fork(
    fork: &RunId,
    records: &[Arc<Record>],
    seen: &[SnapshotResult],
) -> Vec<SnapshotResult> {
    // A later message of a person joins the run, and ends nothing.
    let is_prompt =
        |body: &RecordBody| matches!(body, RecordBody::MessageAdded { source: PromptSource::Prompt, .. });
    let has_message = records.iter().any(|record| is_prompt(&record.body));
    let Some(Origin::Continues { run, continuation: ContinuationKind::Branch { .. }, .. }) =
        RunStarted::of(records).map(|started| &started.origin).filter(|_| !has_message)
    else {
        return Vec::new();
    };
    let with_run_of_fork = |known: &SnapshotResult| {
        let mut known = known.clone();
        let of = known.result.metadata.get_mut(metadata::SEEN)?.get_mut("run")?;
        if of.as_str() != Some(run.as_str()) {
            return None;
        }
        *of = fork.as_str().into();
        Some(known)
    };
    seen.iter().filter_map(with_run_of_fork).collect()
}

/// Returns true if the log ends with an outcome.
pub(crate) fn is_finished(records: &[Arc<Record>]) -> bool {
    records.last().is_some_and(|last| matches!(last.body, RecordBody::RunFinished(_)))
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
