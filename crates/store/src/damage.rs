//! Errors and texts about damaged logs.

use archon_types::{JournalError, RunId};

/// Returns the text of an error, with its advice, for a list of runs.
pub(crate) fn problem(error: &JournalError) -> String {
    format!("{error}; {}", error.advice())
}

/// Returns the error for a damaged record; `record` is its number.
pub(crate) fn corrupt(run: &RunId, record: u64, problem: impl Into<String>) -> JournalError {
    JournalError::Corrupt { run: run.clone(), record, problem: problem.into() }
}
