//! What is said of a log that makes no sense.

use archon_types::{JournalError, RunId};

/// How an error stands in a list of runs.
pub(crate) fn problem(error: &JournalError) -> String {
    format!("{error}; {}", error.advice())
}

/// The record at place `record` is not what was written.
pub(crate) fn corrupt(run: &RunId, record: u64, problem: impl Into<String>) -> JournalError {
    JournalError::Corrupt { run: run.clone(), record, problem: problem.into() }
}
