//! The wishes of a person for the session: its mode, and a compaction.

use archon::{
    RunError,
    types::{RecordBody, SessionMode, Started},
};

use super::Conversation;
use crate::{assemble::asks_no_model, chat::events::Update, failure::Failure};

impl Conversation {
    /// Sets the mode of the session; `None` for the next mode. A run at work follows from its next call on.
    pub(super) async fn change_mode(&mut self, mode: Option<SessionMode>) -> Result<(), Failure> {
        let mode = mode.unwrap_or(match self.mode {
            SessionMode::Ask => SessionMode::AcceptEdits,
            SessionMode::AcceptEdits => SessionMode::Plan,
            _ => SessionMode::Ask,
        });
        match self.is_line_at_work() {
            // A line is the person's own, so no mode holds for it.
            true => self.lines.has_other_mode = true,
            false => self.store(mode).await?,
        }
        self.mode = mode;
        self.update(Update::Mode(mode));
        Ok(())
    }

    /// Sets the mode of the session again, after a line without it.
    pub(super) async fn restore_mode(&mut self) {
        if std::mem::take(&mut self.lines.has_other_mode)
            && let Err(error) = self.store(self.mode).await
        {
            self.update(Update::Failed(error.into()));
        }
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
        let is_of_line = |body: &RecordBody| matches!(body, RecordBody::RunStarted(started) if asks_no_model(&started.config));
        if self.is_line_at_work() || self.questions.iter().any(|record| is_of_line(&record.body)) {
            let what = "the last run is a line of the shell, and no model has read it yet";
            return Err(Failure::usage(what, "send a message, then compact"));
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
