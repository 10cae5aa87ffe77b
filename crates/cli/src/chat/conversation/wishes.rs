//! The wishes of a person for the session: its mode, and a compaction.

use archon::{
    RunError,
    types::{SessionMode, Started},
};

use super::Conversation;
use crate::{chat::events::Update, failure::Failure};

impl Conversation {
    /// Sets the mode of the session; `None` for the next mode. In a run at work, the mode holds from the next call on.
    pub(super) async fn change_mode(&mut self, mode: Option<SessionMode>) -> Result<(), Failure> {
        let mode = mode.unwrap_or(match self.mode {
            SessionMode::Ask => SessionMode::AcceptEdits,
            SessionMode::AcceptEdits => SessionMode::Plan,
            _ => SessionMode::Ask,
        });
        self.store(mode).await?;
        self.mode = mode;
        self.update(Update::Mode(mode));
        Ok(())
    }

    /// Stores a mode in the session. The first run of a session begins with it.
    async fn store(&mut self, mode: SessionMode) -> Result<(), RunError> {
        match self.session.as_ref().filter(|_| self.run.is_some()) {
            Some(session) => self.runs.set_mode(session, None, mode).await,
            None => Ok(()),
        }
    }

    /// Compacts the conversation, with these wishes for the summary.
    pub(super) async fn compact(&mut self, wishes: &str) -> Result<(), Failure> {
        let Some(session) = self.session.clone().filter(|_| self.run.is_some()) else {
            return Err(Failure::usage("there is nothing to compact", "send a message first"));
        };
        if self.is_line_at_work() {
            let what = "a line of the shell runs, and no model can sum up meanwhile";
            return Err(Failure::usage(what, "wait for its end, then compact"));
        }
        let wishes = Some(wishes).filter(|wishes| !wishes.is_empty());
        let started = self.runs.compact(&session, None, wishes).await?;
        match started.how {
            Started::New => self.follow(started).await?,
            _ => self.app.note("the conversation is compacted before the next request"),
        }
        Ok(())
    }
}
