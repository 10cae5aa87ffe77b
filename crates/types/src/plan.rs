//! Plans: who makes them, from what, and why there may be none.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    Context, Encoded, FailureKind, Json, Lease, ProviderError, Spending, SubTask, SubTaskId, SubTaskStatus,
    Task, TaskId, ToolDefinition, ToolSpec,
};

/// Turns a goal into a task with subtasks: with a model, from a template, from a script. Written as any async code;
/// [`FnPlanner`] makes one of a closure.
pub trait Planner: Send + Sync {
    /// Makes a plan for the goal.
    ///
    /// # Errors
    /// [`PlanError`] when there is no plan, or none that can be followed.
    fn create_plan(
        &self,
        goal: &str,
        context: &PlanningContext,
    ) -> impl Future<Output = Result<Task, PlanError>> + Send;

    /// Makes a new plan for the rest of a task, of which something failed for `reason`.
    ///
    /// The new task keeps id, query, shared context and completed steps of the old one. Unless a
    /// planner knows better, the goal is planned once more with the failure in the context.
    ///
    /// # Errors
    /// As for [`create_plan`](Self::create_plan), and [`PlanError::IdTaken`].
    fn replan(
        &self,
        task: &Task,
        reason: &str,
        context: &PlanningContext,
    ) -> impl Future<Output = Result<Task, PlanError>> + Send {
        async move {
            let context = context.clone().after_failure(task, reason);
            let fresh = self.create_plan(&task.goal, &context).await?;
            task.replanned(fresh.subtasks)
        }
    }
}

/// A [`Planner`] as an object. Every planner is one: nobody implements it.
pub trait DynPlanner: Send + Sync {
    /// As [`Planner::create_plan`].
    ///
    /// # Errors
    /// As [`Planner::create_plan`].
    fn boxed_create_plan<'a>(
        &'a self,
        goal: &'a str,
        context: &'a PlanningContext,
    ) -> BoxFuture<'a, Result<Task, PlanError>>;

    /// As [`Planner::replan`].
    ///
    /// # Errors
    /// As [`Planner::replan`].
    fn boxed_replan<'a>(
        &'a self,
        task: &'a Task,
        reason: &'a str,
        context: &'a PlanningContext,
    ) -> BoxFuture<'a, Result<Task, PlanError>>;
}

impl<P: Planner> DynPlanner for P {
    fn boxed_create_plan<'a>(
        &'a self,
        goal: &'a str,
        context: &'a PlanningContext,
    ) -> BoxFuture<'a, Result<Task, PlanError>> {
        Box::pin(self.create_plan(goal, context))
    }

    fn boxed_replan<'a>(
        &'a self,
        task: &'a Task,
        reason: &'a str,
        context: &'a PlanningContext,
    ) -> BoxFuture<'a, Result<Task, PlanError>> {
        Box::pin(self.replan(task, reason, context))
    }
}

impl Planner for dyn DynPlanner + '_ {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        self.boxed_create_plan(goal, context).await
    }

    async fn replan(&self, task: &Task, reason: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        self.boxed_replan(task, reason, context).await
    }
}

impl<P: Planner + ?Sized> Planner for Arc<P> {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        (**self).create_plan(goal, context).await
    }

    async fn replan(&self, task: &Task, reason: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        (**self).replan(task, reason, context).await
    }
}

/// A [`Planner`] of a closure. It plans anew when something failed; the failure stands in the context.
///
/// ```
/// use archon_types::{FnPlanner, SubTask, Task};
///
/// let planner = FnPlanner::new(|goal, _| async move {
///     Ok(Task::new("task", goal).with_subtasks(vec![SubTask::new("look", "Look it up")]))
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FnPlanner<F>(F);

impl<F, D> FnPlanner<F>
where
    F: Fn(String, PlanningContext) -> D + Send + Sync,
    D: Future<Output = Result<Task, PlanError>> + Send,
{
    /// A planner that plans a goal as `plan` does.
    pub fn new(plan: F) -> Self {
        Self(plan)
    }
}

impl<F, D> Planner for FnPlanner<F>
where
    F: Fn(String, PlanningContext) -> D + Send + Sync,
    D: Future<Output = Result<Task, PlanError>> + Send,
{
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        (self.0)(goal.to_owned(), context.clone()).await
    }
}

/// What a planner may know and use besides the goal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanningContext {
    /// The run that plans: its identity, clock and cancellation.
    pub run: Context,
    /// The tools that a step may name.
    pub tools: Vec<ToolDefinition>,
    /// The same tools as a model is shown them that is to call one; empty where the caller has no more than definitions.
    pub specs: Arc<Encoded<Vec<ToolSpec>>>,
    /// What is known at the start; becomes the task's context.
    pub values: serde_json::Map<String, Json>,
    /// What was remembered for this goal, most relevant first.
    pub memories: Vec<String>,
    /// What is to be known beside the goal; see [`SessionPlace::background`](crate::SessionPlace::background).
    pub background: String,
    /// Steps of an earlier plan that are completed: a new step may depend on one, and not reuse its id.
    pub completed: Vec<SubTask>,
    /// Why the earlier plan failed, if there was one.
    pub failure: Option<String>,
    /// What another plan is about: these subtasks and what depends on them may change, whether they failed or not.
    /// Empty for a first plan.
    pub targets: Vec<SubTaskId>,
    /// Plans of more subtasks are refused by whoever asked; none where the planner's own limit holds.
    pub max_subtasks: Option<usize>,
    /// What the planner may use itself; none where nobody counts.
    pub left: Option<Lease>,
    /// Where a planner that asks a model writes down what that took. Clones of the context share it.
    pub expenses: Expenses,
}

/// What somebody used, counted while they work. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Expenses(Arc<Mutex<Spending>>);

impl Expenses {
    /// Adds to it.
    pub fn add(&self, spent: Spending) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += spent;
    }

    /// All so far.
    pub fn total(&self) -> Spending {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlanningContext {
    /// A context in which there are no tools and nothing is known.
    pub fn new(run: Context) -> Self {
        Self {
            run,
            tools: Vec::new(),
            specs: Arc::default(),
            values: serde_json::Map::new(),
            memories: Vec::new(),
            background: String::new(),
            completed: Vec::new(),
            failure: None,
            targets: Vec::new(),
            max_subtasks: None,
            left: None,
            expenses: Expenses::default(),
        }
    }

    /// The context of a new plan for a task that failed.
    pub fn after_failure(mut self, task: &Task, reason: impl Into<String>) -> Self {
        let completed = task.subtasks.iter().filter(|s| s.status() == SubTaskStatus::Completed);
        self.completed = completed.cloned().collect();
        self.failure = Some(reason.into());
        self
    }
}

/// A [`Task`] as a graph that can be followed. Made from the task; never a truth of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Plan {
    /// The task.
    pub task_id: TaskId,
    /// For each step the steps that depend on it: `{A: [B, C]}` means that B and C wait for A.
    pub subtask_dag: BTreeMap<SubTaskId, Vec<SubTaskId>>,
    /// All steps in an order in which each comes after everything that it depends on.
    pub execution_order: Vec<SubTaskId>,
}

impl Plan {
    /// A plan from its parts; nothing is checked.
    pub fn new(
        task_id: TaskId,
        subtask_dag: BTreeMap<SubTaskId, Vec<SubTaskId>>,
        execution_order: Vec<SubTaskId>,
    ) -> Self {
        Self { task_id, subtask_dag, execution_order }
    }
}

/// Why there is no plan, or none that can be followed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The model that plans gave no answer.
    #[error("the model gave no plan: {0}")]
    Model(#[from] ProviderError),
    /// What the planner got is not a plan.
    #[error("the plan cannot be read: {problem}")]
    Unreadable {
        /// What is wrong with it.
        problem: String,
    },
    /// A step refers to something that is not there, or twice there.
    #[error("the plan's subtask {id} {problem}")]
    Invalid {
        /// The step.
        id: SubTaskId,
        /// For instance `depends on b, which the plan does not have`.
        problem: String,
    },
    /// Steps wait for each other.
    #[error("Cycle detected in dependency graph: {}", join(path))]
    Cycle {
        /// The way round; first and last are the same.
        path: Vec<SubTaskId>,
    },
    /// A new step has the id of a completed one and means something else.
    #[error("the new plan uses the id {id} of a completed subtask for another one")]
    IdTaken {
        /// The id.
        id: SubTaskId,
    },
    /// It can be followed, and does not lead to the goal.
    #[error("the plan does not fit its goal: {problem}")]
    Unfit {
        /// What is missing.
        problem: String,
    },
    /// Money is limited, and nobody knows what the planner's model costs.
    #[error("money is limited, and the price of the planner's model {model} is not known")]
    UnknownPrice {
        /// The model.
        model: String,
    },
    /// What is left does not pay for another question.
    #[error("what is left of the {what} does not pay for a question to the planner's model")]
    OverBudget {
        /// `tokens` or `money`.
        what: &'static str,
    },
    /// The plan is fixed, and was to be replaced by another one.
    #[error("the plan is fixed: there is no other one")]
    Fixed,
    /// Planning was cancelled.
    #[error("planning was cancelled")]
    Cancelled,
}

impl PlanError {
    /// The kind of failure that it is for the run that wanted the plan.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Model(error) => error.code().into(),
            Self::OverBudget { .. } => FailureKind::Limit,
            _ => FailureKind::Plan,
        }
    }

    /// What can be done about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Model(e) if e.is_retryable() => "try again later",
            Self::Model(_) => "check the planner's model, key and address",
            Self::Unreadable { .. } => "ask again with the problem, or use a stronger model",
            Self::Invalid { .. } | Self::Cycle { .. } | Self::IdTaken { .. } => {
                "ask the planner again with this message"
            }
            Self::Unfit { .. } => "say the goal in other words, or use a stronger model",
            Self::UnknownPrice { .. } => "set the model's price, or no limit of money",
            Self::OverBudget { .. } => "allow more",
            Self::Fixed => "mend what failed, or change the template and start again",
            Self::Cancelled => "start the task again",
        }
    }
}

fn join(path: &[SubTaskId]) -> String {
    path.iter().map(SubTaskId::as_str).collect::<Vec<_>>().join(" → ")
}
