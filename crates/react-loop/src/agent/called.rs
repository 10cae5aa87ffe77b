//! A run that works for a call of another run: it is started once, and found again after a crash.

use archon_types::{CalledRun, Context, Delegation, Message, MoreLimits, Outcome};

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
        let opening = Opening::new(vec![Message::user(task, context.clock.now()).into()]);
        match by.find().await? {
            CalledRun::Absent => self.begin(opening, by.origin(), context).await,
            CalledRun::Ended(outcome) => Ok(*outcome),
            CalledRun::CutOff => self.take_up(Some(opening), &MoreLimits::default(), context).await,
            _ => Err(LoopError::NotOfThisCall { run: by.child.clone(), caller: by.caller.clone() }),
        }
    }
}
