//! A run that works for a call of another run: it is started once, and found again after a crash.

use archon_types::{Context, Delegation, JournalError, Message, Origin, Outcome, OutcomeStatus, RecordBody};

use super::{LoopError, ReactAgent};
use crate::Opening;

impl ReactAgent {
    /// Works on what a call wants done. What ended before is not done again, what was cut off goes on.
    pub(super) async fn called(
        &self,
        task: &str,
        by: &Delegation,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        let origin = Origin::CalledBy { run: by.caller.clone(), call: by.call };
        let opening = Opening::new(vec![Message::user(task, context.clock.now()).into()]);
        let records = match by.journal.read(&context.run).await {
            Err(JournalError::UnknownRun { .. }) => return self.begin(opening, origin, context).await,
            records => records?,
        };
        match records.first().map(|first| &first.body) {
            Some(RecordBody::RunStarted(started)) if started.origin == origin => {}
            _ => {
                return Err(LoopError::NotOfThisCall { run: context.run.clone(), caller: by.caller.clone() });
            }
        }
        match records.last().map(|last| &last.body) {
            // A cancelled run whose caller goes on goes on with it.
            Some(RecordBody::RunFinished(outcome)) if outcome.status != OutcomeStatus::Cancelled => {
                Ok(Outcome::clone(outcome))
            }
            _ => self.take_up(Some(opening), context).await,
        }
    }
}
