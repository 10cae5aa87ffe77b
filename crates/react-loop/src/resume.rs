//! From a log back to a machine: the same fold that ran while the log was written.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    CallId, Journal, JournalError, Origin, Record, RecordBody, RunId, RunKind, RunStarted, ToolResult,
    metadata,
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

/// Folds the runs that a run goes back to, oldest first, and returns the conversation that they left
/// and how many they were.
///
/// # Errors
/// A run of the chain cannot be read.
pub async fn fold_chain(journal: &dyn Journal, origin: &Origin) -> Result<(History, usize), LoopError> {
    let mut chain = Vec::new();
    let mut next = origin.clone();
    while let Origin::Continues { run, records, .. } = next {
        // Damage behind what is continued does not matter.
        let log = journal.salvage(&run).await?.first(records)?;
        next = spoken(&run, &log)?.origin.clone();
        chain.push((run, log));
        if chain.len() > LONGEST_CHAIN {
            return Err(LoopError::Journal(JournalError::Corrupt {
                run: chain[0].0.clone(),
                record: 0,
                problem: "its runs continue each other in a circle".into(),
            }));
        }
    }
    let (mut history, mut seen) = (History::default(), Vec::new());
    for (run, log) in chain.iter().rev() {
        history = go_on(run, log, history)?;
        seen.extend(seen_files(log));
    }
    history.seen = seen;
    Ok((history, chain.len()))
}

/// What calls of a log have told of the files that they read or wrote: the tool's name, and the result.
pub(crate) fn seen_files(records: &[Arc<Record>]) -> Vec<(String, ToolResult)> {
    let mut calls = HashMap::new();
    let mut seen = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ModelAnswered { command, message, .. } => {
                let made = unique_calls(message, command.0).into_iter().zip(0..);
                calls.extend(made.map(|(call, index)| (CallId::new(*command, index), call.name)));
            }
            RecordBody::ToolFinished { call, result } if result.metadata.contains_key(metadata::SEEN) => {
                let mut result = ToolResult::clone(result);
                result.content.clear();
                seen.extend(calls.get(call).map(|name| (name.clone(), result)));
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

/// The conversation after a run of it.
pub(crate) fn go_on(run: &RunId, log: &[Arc<Record>], history: History) -> Result<History, LoopError> {
    match spoken(run, log)?.kind {
        RunKind::Plan | RunKind::Team => Ok(history.after(log)),
        _ => Ok(fold(run, log, history)?.into_history()),
    }
}

/// The first record of a run that is a part of a conversation: every kind but the call of an agent.
pub(crate) fn spoken<'a>(run: &RunId, records: &'a [Arc<Record>]) -> Result<&'a RunStarted, LoopError> {
    match RunStarted::of(records) {
        Some(started) if matches!(started.kind, RunKind::Plan | RunKind::Team) => Ok(started),
        _ => started(run, records),
    }
}

/// More runs than a person ever puts into one conversation.
const LONGEST_CHAIN: usize = 100_000;

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
