//! Why an agent could not be put together, or a run not be started.

use archon_react_loop::LoopError;
use archon_types::{JournalError, RunId, SessionId};

/// What went wrong before, or outside of, a run. What goes wrong inside one is its outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The builder was given no model.
    #[error("no model: call `model(\"provider:name\")` or `provider(…)` on the builder")]
    NoModel,
    /// The model's name leads nowhere.
    #[cfg(feature = "openai-compatible")]
    #[error(transparent)]
    Model(#[from] archon_providers::SetupError),
    /// A tool could not be registered.
    #[error(transparent)]
    Tool(#[from] archon_tools::Error),
    /// The session has no run to go on from.
    #[error("no run of session {0} was found")]
    UnknownSession(SessionId),
    /// The conversation works on something already.
    #[error("run {run} is under way: steer it, queue a follow-up, or wait until it has ended")]
    AlreadyRunning {
        /// The run under way.
        run: RunId,
    },
    /// Messages that were kept elsewhere cannot be read or written.
    #[error("not a list of messages: {0}")]
    Messages(serde_json::Error),
    /// No run was ever started in this journal.
    #[error("there is no run to continue")]
    NothingToContinue,
    /// The run could not be started or taken up.
    #[error(transparent)]
    Run(#[from] LoopError),
    /// The run's task ended without an outcome: it panicked, or its runtime was shut down.
    #[error("the run's task ended without an outcome; `resume` takes the run up where its log ends")]
    Lost,
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        Self::Run(error.into())
    }
}
