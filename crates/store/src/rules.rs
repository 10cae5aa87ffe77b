//! The rules that every journal checks, so that a run can be moved from one journal to another.

use std::sync::Arc;

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
use archon_types::Salvaged;
use archon_types::{CallId, JournalError, Origin, Record, RecordBody, RunId};

/// The maximum length of an id in bytes; it leaves room for extensions within the 255 bytes of a file name.
const MAX_ID: usize = 200;

/// Checks that an id is safe as a file name on every system: ASCII letters, digits, `-`, `_`, and single dots
/// that are neither first nor last.
pub(crate) fn check_id(run: &RunId) -> Result<(), JournalError> {
    let id = run.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let dots = id.starts_with('.') || id.ends_with('.') || id.contains("..");
    if id.is_empty() || id.len() > MAX_ID || dots || !id.chars().all(plain) {
        return Err(JournalError::BadId { id: id.to_owned() });
    }
    Ok(())
}

/// Refuses records that could not be read once they are written: their numbers do not continue from `next`, or they have
/// media without their data.
pub(crate) fn check_records(run: &RunId, next: u64, records: &[Arc<Record>]) -> Result<(), JournalError> {
    for (expected, record) in (next..).zip(records) {
        let bare = || record.body.media().find(|media| media.base64().is_none());
        let problem = match record.seq == expected {
            false => Some(format!("the writer got record {} instead", record.seq)),
            true => {
                bare().map(|media| format!("the writer got a medium without its data: {}", media.label()))
            }
        };
        if let Some(problem) = problem {
            let problem = format!("{problem}; nothing was written");
            return Err(JournalError::Corrupt { run: run.clone(), record: expected, problem });
        }
    }
    Ok(())
}

/// Returns the origin of the run that begins with `record`.
pub(crate) fn origin(record: &Record) -> Option<&Origin> {
    match &record.body {
        RecordBody::RunStarted(started) => Some(&started.origin),
        _ => None,
    }
}

/// Returns the run that is continued by the run that begins with `record`.
pub(crate) fn continues(record: &Record) -> Option<&RunId> {
    match origin(record)? {
        Origin::Continues { run, .. } => Some(run),
        _ => None,
    }
}

/// Returns true if a run still waits for the outcome of the child run that its `call` started. Without that
/// child run, a resume would start it again.
pub(crate) fn waits_for(caller: &[Arc<Record>], call: CallId) -> bool {
    let ended = |record: &Arc<Record>| match &record.body {
        RecordBody::ToolCallFinished { call: of, .. } => *of == call,
        RecordBody::RunFinished(_) => true,
        _ => false,
    };
    !caller.iter().any(ended)
}

/// Does the same as [`waits_for`] with the log of the caller; a caller that does not exist waits for nothing.
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
pub(crate) fn is_awaited(caller: Result<Salvaged, JournalError>, call: CallId) -> Result<bool, JournalError> {
    match caller.and_then(Salvaged::whole) {
        Ok(caller) => Ok(waits_for(&caller, call)),
        Err(JournalError::UnknownRun { .. }) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Returns the error for a damaged record; `record` is its number.
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
pub(crate) fn corrupt(run: &RunId, record: u64, problem: impl Into<String>) -> JournalError {
    JournalError::Corrupt { run: run.clone(), record, problem: problem.into() }
}

/// Returns the error for a run that does not exist.
pub(crate) fn unknown(run: &RunId) -> JournalError {
    JournalError::UnknownRun { run: run.clone() }
}

/// Returns an error if `by`, the list of the runs that need this run, is not empty.
pub(crate) fn check_not_needed(run: &RunId, mut by: Vec<RunId>) -> Result<(), JournalError> {
    if by.is_empty() {
        return Ok(());
    }
    by.sort();
    Err(JournalError::Needed { run: run.clone(), by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_the_directory_are_refused() {
        for good in ["run_01", "a", "A-b_c.0.1", &"x".repeat(200)] {
            assert!(check_id(&RunId::new(good)).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            ".hidden",
            "a.",
            "a..b",
            "é",
            "a b",
            "C:",
            "a\0",
            &"x".repeat(201),
        ] {
            let e = check_id(&RunId::new(bad)).expect_err(bad);
            assert!(matches!(&e, JournalError::BadId { id } if id == bad), "{bad}: {e}");
        }
    }
}
