//! Answers of the person to the questions of the run, and the stop of the run.

use archon::{
    Approvals, SystemClock,
    types::{
        Answer, AnswerRuns, Clock, JournalError, MoreLimits, PendingApproval, Record, RecordBody, RunError,
        RunRefused, StartRuns, pending_approvals,
    },
};

use super::Conversation;
use crate::{chat::events::Update, failure::Failure};

impl Conversation {
    /// Answers a question. The run of the question goes on, even if another process has answered the question before.
    pub(super) async fn answer(&mut self, id: &str, answer: Answer) -> Result<(), RunError> {
        let is_taken = match self.pending(id).filter(|_| !matches!(answer, Answer::Edit { .. })) {
            Some(pending) => self.answer_pending(&pending, answer).await?,
            // The service checks changed arguments with their tool.
            None => self.runs.answer(id, answer).await?,
        };
        self.watch_again().await?;
        if !is_taken {
            let what = "the question was already answered, or has expired";
            let advice = "the run goes on with the earlier answer, or without one";
            self.update(Update::Failed(Failure::failed(what, advice)));
        }
        Ok(())
    }

    /// Answers a question of the run and resumes the run. Reads only the log of this run, while the run service would
    /// look for the question in the logs of all runs.
    async fn answer_pending(&mut self, pending: &PendingApproval, answer: Answer) -> Result<bool, RunError> {
        let is_taken = Approvals::new(self.journal.clone()).answer(pending, answer).await?;
        match self.runs.resume(&pending.run, &MoreLimits::default()).await {
            // Another process works on the run, or has ended it.
            Err(
                RunError::Journal(JournalError::Locked { .. }) | RunError::Refused(RunRefused::Ended { .. }),
            ) => Ok(is_taken),
            resumed => resumed.map(|_| is_taken),
        }
    }

    /// Returns the question of the run with this id.
    fn pending(&self, id: &str) -> Option<PendingApproval> {
        pending_approvals(&self.questions).into_iter().find(|pending| pending.request.request_id == id)
    }

    /// Refuses a question and stops its run, in one step, so that the model is not asked in between.
    pub(super) async fn refuse(&mut self, id: &str) -> Result<(), RunError> {
        if let Some(pending) = self.pending(id) {
            let no = Answer::Cancel { reason: String::new() };
            pending.answer(no, SystemClock.now(), &*self.journal).await?;
        }
        self.stop().await
    }

    /// Stops the run that works in this process, if there is one. A run that waits with a question is not stopped:
    /// another terminal may show the question, and the loss of this terminal must not stop the run.
    pub(super) async fn cancel(&mut self) -> Result<(), RunError> {
        if self.events.is_some() && self.is_here { self.stop().await } else { Ok(()) }
    }

    async fn stop(&mut self) -> Result<(), RunError> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        match self.runs.cancel(&run, "stopped at the terminal").await {
            // It has ended by itself.
            Err(RunError::Refused(_)) => {}
            cancelled => cancelled?,
        }
        if self.events.is_none() { self.watch_again().await } else { Ok(()) }
    }
}

/// Returns true for the first record of a run, and for the records of its questions.
pub(super) fn is_of_question(record: &Record) -> bool {
    matches!(record.body, RecordBody::RunStarted(_) | RecordBody::ApprovalRequested { .. })
}
