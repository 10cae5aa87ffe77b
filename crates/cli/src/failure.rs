//! What a person reads when a command cannot go on: one line of what, one line of what to do.

use crate::exit::Exit;

/// Ends a command with a message and an exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What the shell is told.
    pub(crate) exit: Exit,
    /// What went wrong, on what and why; a line.
    pub(crate) what: String,
    /// What to do about it; usually a line.
    pub(crate) advice: String,
}

impl Failure {
    /// The command was asked wrongly, or what it needs is not there.
    pub(crate) fn usage(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, what: what.into(), advice: advice.into() }
    }

    /// It tried and failed.
    pub(crate) fn failed(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.into(), advice: advice.into() }
    }
}

impl From<archon::types::JournalError> for Failure {
    fn from(e: archon::types::JournalError) -> Self {
        use archon::types::JournalError::{BadId, UnknownRun};
        let exit = if matches!(e, UnknownRun { .. } | BadId { .. }) { Exit::Usage } else { Exit::Failed };
        Self { exit, what: e.to_string(), advice: e.advice().to_owned() }
    }
}

impl From<archon::types::SessionError> for Failure {
    fn from(e: archon::types::SessionError) -> Self {
        use archon::types::SessionError::{BadId, Locked};
        match e {
            BadId { .. } => Self::usage(e.to_string(), "`archon sessions list` shows the sessions there are"),
            Locked { .. } => Self::failed(e.to_string(), "wait for the other process, or stop it"),
            e => {
                Self::failed(e.to_string(), "check that the directory exists, is writable and has free space")
            }
        }
    }
}

impl From<archon::Error> for Failure {
    fn from(e: archon::Error) -> Self {
        use archon::{Error, react_loop::LoopError};
        match e {
            Error::Run(LoopError::Journal(e)) => e.into(),
            Error::Run(LoopError::EmptyPrompt) => {
                Self::usage("the task is empty", "say what is to be done: archon run \"What is 15% of 200?\"")
            }
            Error::Run(LoopError::Ended { ref run }) => Self::usage(
                e.to_string(),
                format!("`archon runs show {run}` shows it; go on with `archon run --continue TASK`"),
            ),
            Error::Run(LoopError::NoSuchTurn { ref run, .. }) => {
                Self::usage(e.to_string(), format!("`archon runs events {run}` shows its turns"))
            }
            Error::Run(LoopError::ProcessesLeft { group, .. }) => Self::failed(
                e.to_string(),
                format!("end it yourself (kill -9 -{group}), then resume the run"),
            ),
            Error::Run(_) => Self::failed(e.to_string(), "`archon runs list` shows the runs there are"),
            Error::UnknownSession(_) | Error::NothingToContinue => {
                Self::usage(e.to_string(), "`archon runs list --json` shows runs and their sessions")
            }
            Error::Lost => Self::failed(e.to_string(), "`archon resume RUN` takes it up"),
            e => Self::usage(e.to_string(), "`archon doctor` shows what can be used"),
        }
    }
}
