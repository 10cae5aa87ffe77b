//! A planner with prepared plans, for tests and for plans from files.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use archon_types::{PlanError, Planner, PlanningContext, SubTask, Task, TaskId};

/// A planner that answers each request with the next of its plans. The last plan is repeated.
///
/// ```
/// use archon_planner::ScriptedPlanner;
/// use archon_types::SubTask;
///
/// let planner = ScriptedPlanner::new(vec![
///     SubTask::new("weather", "Find the forecast."),
///     SubTask::new("days", "Plan each day.").after(["weather"]),
/// ]);
/// ```
#[derive(Debug, Default)]
pub struct ScriptedPlanner {
    plans: Mutex<VecDeque<Result<Vec<SubTask>, PlanError>>>,
}

impl ScriptedPlanner {
    /// Creates a planner with one plan.
    pub fn new(plan: Vec<SubTask>) -> Self {
        Self::with_answers([Ok(plan)])
    }

    /// Creates a planner that gives these answers in order. An answer is a plan or an error.
    pub fn with_answers(answers: impl IntoIterator<Item = Result<Vec<SubTask>, PlanError>>) -> Self {
        Self { plans: Mutex::new(answers.into_iter().collect()) }
    }

    fn answer(&self) -> Result<Vec<SubTask>, PlanError> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let next = if plans.len() > 1 { plans.pop_front() } else { plans.front().cloned() };
        next.unwrap_or_else(|| Err(PlanError::Unreadable { problem: "the script has no plan".to_owned() }))
    }
}

impl Planner for ScriptedPlanner {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        let mut task = Task::new(TaskId::new(context.run.run.as_str()), goal).with_subtasks(self.answer()?);
        task.context = context.values.clone();
        Ok(task)
    }
}
