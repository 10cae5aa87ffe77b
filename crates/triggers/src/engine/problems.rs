//! Problems outside of runs: of a source of events, or of a channel that sends later.

use archon_types::{TaskId, TaskProblem, Timestamp};

use super::TriggerEngine;
use crate::{
    error::TriggerError,
    task::{TaskState, TriggerTask},
};

impl TriggerEngine {
    /// Adds a problem that is outside of runs to the [`problems`](TaskState::problems) of each task that `is_meant`
    /// selects: for instance the failure of a source of events, or of an outbox. Returns the ids of these tasks. The
    /// text says what failed and what to do. The same text again counts once, with the newest time.
    ///
    /// Only the engine that serves the tasks adds problems; another one changes nothing, and returns no ids.
    ///
    /// ```
    /// use archon_triggers::{TriggerEngine, TriggerError, TriggerTask};
    ///
    /// /// The mailbox of the source `inbox`, whose events are of the tenant `anna`, refuses the password.
    /// async fn note(engine: &TriggerEngine, problem: &str) -> Result<(), TriggerError> {
    ///     let is_meant = |task: &TriggerTask| task.tenant.as_str() == "anna" && task.may_take_from("inbox");
    ///     engine.note_problem(problem, is_meant).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The storage failed.
    pub async fn note_problem(
        &self,
        problem: &str,
        is_meant: impl Fn(&TriggerTask) -> bool + Send,
    ) -> Result<Vec<TaskId>, TriggerError> {
        let now = self.parts.clock.now();
        let mut agenda = self.agenda().await?;
        if !agenda.is_served() {
            return Ok(Vec::new());
        }
        let meant = agenda.entries().map(|entry| &entry.task).filter(|task| is_meant(task));
        let meant: Vec<TriggerTask> = meant.cloned().collect();
        let note = |task| agenda.change_own(task, |entry| entry.state.note_problem(problem, now)).1;
        let states: Vec<_> = meant.iter().filter_map(note).collect();
        self.parts.put(&states).await;
        Ok(states.into_iter().map(|(id, _)| id).collect())
    }
}

impl TaskState {
    fn note_problem(&mut self, text: &str, at: Timestamp) {
        self.problems.retain(|problem| problem.text != text);
        self.problems.push(TaskProblem::new(at, text));
        let surplus = self.problems.len().saturating_sub(Self::MOST_PROBLEMS);
        self.problems.drain(..surplus);
    }
}
