//! Forks runs for this agent: with a message that its filters check, and with its own configuration.

use archon_types::{Context, Fork, ForkOptions, RunId, RunStarted};

use super::{LoopError, ReactAgent, checks::check_media};
use crate::{
    Opening,
    fork::{ForkPoint, branch_id},
};

impl ReactAgent {
    /// Writes the first records of the run that `context` names, which is a fork of `run`. The fork is not started:
    /// resume it, or continue it with a prompt.
    ///
    /// If [`ForkOptions::agent`] is set, the fork has the configuration of this agent, whatever id the option has.
    /// Otherwise the fork has the configuration in the log of `run`. It has the session and the tenant of `run`. If
    /// a filter rejects the message of the fork, the fork fails when it is resumed. A fork with a message counts as
    /// interrupted from the start: [`resume_unfinished`](archon_types::StartRuns::resume_unfinished) resumes it, and
    /// its session is busy until then.
    ///
    /// A run with a damaged log can be forked at a turn or a record before the damage; calls whose records are
    /// lost may have had effects.
    ///
    /// # Errors
    /// The run has no such place or its records are damaged; the message is empty; with
    /// [`ForkOptions::agent`] also as [`begin`](Self::begin); the run or a run that it continues cannot be read;
    /// or the new run cannot be created.
    pub async fn fork(
        &self,
        run: &RunId,
        options: ForkOptions,
        context: &Context,
    ) -> Result<Fork, LoopError> {
        let ForkOptions { at, message, agent, .. } = options;
        let journal = self.journal(context);
        let point = ForkPoint::find(&**journal, run, at, message.is_some()).await?;
        let mut context = self.own(context);
        context.session.clone_from(&point.forked.session);
        context.tenant.clone_from(&point.forked.tenant);
        let opening = message.map(|message| {
            let mut opening = Opening::new(vec![message.dated(context.clock.now())]);
            // The part of the run that the fork leaves out may have changed the mode, for instance to plan mode.
            opening.mode = Some(point.mode).filter(|mode| *mode != point.history.mode);
            opening
        });
        if opening.as_ref().is_some_and(Opening::is_empty_prompt) {
            return Err(LoopError::EmptyPrompt);
        }
        let mut started = match agent {
            Some(_) => self.started_as_fork(&point, &context)?,
            None => point.started(&context),
        };
        if let Some(opening) = &opening {
            check_media(&opening.prompts, &started.config)?;
            // A person wrote this message, even if the fork is of a child run, which got its prompt from a model.
            started.first_trigger = self.options.first_turn;
        }
        let input = self.opened(opening, point.history.in_full(), &context).await;
        point.write(&**journal, started, input, &context).await
    }

    /// Returns the first record of a fork with the configuration of this agent.
    fn started_as_fork(&self, point: &ForkPoint, context: &Context) -> Result<RunStarted, LoopError> {
        self.check(&Opening::default(), context)?;
        let mut started = self.started(point.origin(context), point.earlier, None, context);
        self.check_tools(&started.config)?;
        started.loop_id = branch_id(&started.loop_id, &context.run);
        Ok(started)
    }
}
