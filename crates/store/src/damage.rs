//! What is said of a log that makes no sense.

use archon_types::{JournalError, RunHead, RunId};

/// How a run whose log cannot be read stands in a list.
pub(crate) fn unreadable(run: &RunId, problem: &JournalError) -> RunHead {
    RunHead::unreadable(run.clone(), format!("{problem}; {}", problem.advice()))
}

/// The record at place `record` is not what was written.
pub(crate) fn corrupt(run: &RunId, record: u64, problem: impl Into<String>) -> JournalError {
    JournalError::Corrupt { run: run.clone(), record, problem: problem.into() }
}
