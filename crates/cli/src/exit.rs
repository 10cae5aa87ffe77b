//! Exit codes: the result of a command for scripts.

use std::process::ExitCode;

use archon::types::{Outcome, OutcomeStatus};

/// The exit code of the program. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Finished = 0,
    /// The command failed.
    Failed = 1,
    /// The usage was wrong, or a prerequisite is missing: nothing was started.
    Usage = 2,
    /// A run is suspended.
    Suspended = 3,
    /// A run reached a limit.
    Limit = 4,
    /// A call was rejected because no person could be asked about it. The run has an answer nevertheless.
    NotAllowed = 5,
    /// The terminal of a conversation has gone; the number is 128 + SIGHUP, as in shells.
    #[cfg_attr(not(feature = "chat"), allow(dead_code, reason = "only a conversation has it"))]
    HungUp = 129,
    /// The command was interrupted from the keyboard; the number is 128 + SIGINT, as in shells.
    Interrupted = 130,
}

impl Exit {
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
