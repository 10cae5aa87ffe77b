//! Exit codes: what a script can tell about a command without reading its output.

use std::process::ExitCode;

use archon::types::{Outcome, OutcomeStatus};

/// How the program ends. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it was asked.
    Finished = 0,
    /// It tried and failed.
    Failed = 1,
    /// It was asked wrongly, or what it needs is not there: nothing was tried.
    Usage = 2,
    /// A run waits for somebody.
    Suspended = 3,
    /// A run reached a limit.
    Limit = 4,
    /// There is an answer, but a call was refused because nobody could be asked about it.
    NotAllowed = 5,
    /// Interrupted from the keyboard, as shells count it: 128 + SIGINT.
    Interrupted = 130,
}

impl Exit {
    /// The code for what came of a run.
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
