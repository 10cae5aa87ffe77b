//! From a log back to a machine: the same fold that ran while the log was written.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    CallId, Journal, JournalError, Origin, Record, RecordBody, RunId, RunStarted, ToolResult, metadata,
};

use crate::{ContextParts, History, LoopError, ReactMachine, window::unique_calls};

/// Folds a run's records, after the conversation that it continues.
///
/// # Errors
/// [`LoopError::NotARun`] if the log does not begin as a run's log does, [`LoopError::Plan`] if it is a plan's.
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
        next = started(&run, &log)?.origin.clone();
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
        history = fold(run, log, history)?.into_history();
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

pub(crate) fn started<'a>(run: &RunId, records: &'a [Arc<Record>]) -> Result<&'a RunStarted, LoopError> {
    if follows_plan(records) {
        return Err(LoopError::Plan { run: run.clone() });
    }
    match records.first().map(|r| &r.body) {
        Some(RecordBody::RunStarted(started)) => Ok(started),
        _ => Err(LoopError::NotARun { run: run.clone() }),
    }
}

/// Whether a log is the one of a plan or of a team, which says so near its beginning.
pub(crate) fn follows_plan(records: &[Arc<Record>]) -> bool {
    records
        .iter()
        .take(LOOKED_AT)
        .any(|record| matches!(record.body, RecordBody::Plan(_) | RecordBody::Team(_)))
}

/// A plan's first record follows the start of its run, or what took the run up at once.
const LOOKED_AT: usize = 8;

/// More runs than a person ever puts into one conversation.
const LONGEST_CHAIN: usize = 100_000;

#[cfg(test)]
mod tests {
    use archon_types::{AgentId, LoopId, PlanRecord, PlanSettings, RunConfig, SessionId, Timestamp};

    use super::*;

    #[test]
    fn the_log_of_a_plan_is_not_folded_as_a_run_of_the_loop() {
        let run = RunId::new("run_1");
        let (session, agent, loop_id) = (SessionId::new("s"), AgentId::new("a"), LoopId::new("s.plan.1"));
        let started = RunStarted::new(run.clone(), session, agent, loop_id, RunConfig::default());
        let settings = PlanRecord::Settings(PlanSettings::default());
        let bodies = [
            RecordBody::RunStarted(Box::new(started)),
            RecordBody::Resumed,
            RecordBody::Plan(Box::new(settings)),
        ];
        let at = Timestamp::from_millis(0);
        let log: Vec<_> = (0..).zip(bodies).map(|(seq, body)| Arc::new(Record { seq, at, body })).collect();
        let folded = fold(&run, &log, History::default());
        assert!(matches!(folded, Err(LoopError::Plan { run: named }) if named == run));
        assert!(fold(&run, &log[..2], History::default()).is_ok());
    }
}
