//! The end of a conversation, which waits for the run that is stopped.

use std::time::Duration;

use tokio::time::Instant;

use crate::exit::Exit;

/// The maximum time that a run has to end when the program ends. Three quick Ctrl-C end it sooner.
const PATIENCE: Duration = Duration::from_secs(10);

/// The end of a conversation: the exit code, and the time at which the wait for a run ends.
pub(crate) struct Ending {
    exit: Exit,
    /// The time at which the conversation ends even if a run still works.
    pub(crate) at: Instant,
}

impl Ending {
    /// Creates an end with this exit code. It waits at most 10 s if a run is at work.
    pub(crate) fn new(exit: Exit, is_at_work: bool) -> Self {
        let patience = if is_at_work { PATIENCE } else { Duration::ZERO };
        Self { exit, at: Instant::now() + patience }
    }

    /// Returns the exit code if the conversation ends now; `None` while it still waits for a run.
    pub(crate) fn exit(&self, is_at_work: bool) -> Option<Exit> {
        (!is_at_work || self.at <= Instant::now()).then_some(self.exit)
    }
}
