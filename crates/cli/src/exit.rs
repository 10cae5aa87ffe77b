//! Exit codes: the result of a command for scripts.

use std::process::ExitCode;

use archon::types::{Outcome, OutcomeStatus};

/// Exit code of the program. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Finished = 0,
    /// The command failed.
    Failed = 1,
    /// Wrong usage, or something that it needs is missing: nothing was tried.
    Usage = 2,
    /// A run is suspended.
    Suspended = 3,
    /// A run reached a limit.
    Limit = 4,
    /// A call was refused because nobody could be asked about it. A run has an answer nevertheless.
    NotAllowed = 5,
    /// Interrupted from the keyboard, numbered as shells do: 128 + SIGINT.
    Interrupted = 130,
}

impl Exit {
    /// Returns the code for an outcome of a run.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome.status {
            OutcomeStatus::Finished => Self::Finished,
            OutcomeStatus::Limit(_) => Self::Limit,
            OutcomeStatus::Cancelled => Self::Interrupted,
            OutcomeStatus::Suspended => Self::Suspended,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
