//! Finds the point from which a conversation continues after a parallel loop.

use std::sync::Arc;

use archon_types::{Journal, JournalError, Origin, ParallelChoice, Record, RecordBody, RunId, RunKind};

use super::branch_run;
use crate::{
    LoopError,
    resume::{conversation_start, is_finished, started},
};

/// Returns the point from which a conversation continues after its newest run, whose log is `records`. For a
/// parallel loop or one of its branches, this is the end of the chosen branch; if no branch was chosen, the
/// point where the loop started.
///
/// # Errors
/// The journal failed.
pub async fn continuation_point(
    journal: &dyn Journal,
    run: &RunId,
    records: &[Arc<Record>],
) -> Result<Origin, LoopError> {
    let own = conversation_start(run, records)?;
    let (parallel, log) = match &own.parallel_run {
        None if own.kind == RunKind::Parallel => (run, records.to_vec()),
        None => return Ok(continues(run.clone(), records)),
        Some(parallel) => match journal.read(parallel).await {
            Ok(log) => (parallel, log),
            // Branches of a deleted parallel loop count as ordinary runs.
            Err(JournalError::UnknownRun { .. }) => return Ok(continues(run.clone(), records)),
            Err(error) => return Err(error.into()),
        },
    };
    match choice(&log).and_then(|choice| choice.selected) {
        None => Ok(started(parallel, &log)?.origin.clone()),
        Some(index) => {
            let branch = branch_run(parallel, index);
            match journal.read(&branch).await {
                Ok(records) if is_finished(&records) => Ok(continues(branch, &records)),
                // The branch ran without a log, so there is nothing to continue.
                Ok(_) | Err(JournalError::UnknownRun { .. }) => Ok(started(parallel, &log)?.origin.clone()),
                Err(error) => Err(error.into()),
            }
        }
    }
}

fn continues(run: RunId, records: &[Arc<Record>]) -> Origin {
    Origin::Continues { run, records: records.len() as u64, continuation: Default::default() }
}

/// Returns the latest choice of a branch in the log of a parallel loop.
fn choice(records: &[Arc<Record>]) -> Option<&ParallelChoice> {
    records.iter().rev().find_map(|record| match &record.body {
        RecordBody::ParallelFinished(choice) => Some(&**choice),
        _ => None,
    })
}
