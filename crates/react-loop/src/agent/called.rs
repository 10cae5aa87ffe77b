//! Runs an agent for a call of another run. The child run is started once, and found again after a crash.

use archon_types::{CalledRun, Context, Delegation, Message, MoreLimits, Outcome, SessionMode};

use super::{LoopError, ReactAgent};
use crate::Opening;

impl ReactAgent {
    /// Runs the task of a call in a child run. The child run is started once: if it was cut off, it is resumed; if
    /// it has ended, its outcome is returned.
    pub(super) async fn called(
        &self,
        task: &str,
        by: &Delegation,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        let mut opening = Opening::new(vec![Message::user(task, context.clock.now()).into()]);
        // The model reads the hint about plan mode before its first request.
        opening.mode = Some(context.mode.get()).filter(|mode| *mode == SessionMode::Plan);
        match by.find().await? {
            CalledRun::Absent => self.begin(opening, by.origin(), context).await,
            CalledRun::Ended(outcome) => Ok(*outcome),
            CalledRun::CutOff => self.resume_run(Some(opening), &MoreLimits::default(), context).await,
            _ => Err(LoopError::NotOfThisCall { run: by.child.clone(), caller: by.caller.clone() }),
        }
    }
}
