//! The [`Planner`] trait, which makes plans, with its inputs, its result and its error.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    Json,
    config::{Lease, Spending},
    models::{FailureKind, ProviderError},
    plans::{SubTask, SubTaskStatus, Task},
    tools::{ToolDefinition, ToolSpec},
    values::{Encoded, SubTaskId, TaskId},
};

use super::context::Context;

/// Turns a goal into a task with subtasks: with a model, from a template or with a script. Write the methods
/// as `async fn`; [`FnPlanner`] wraps a closure.
///
/// ```
/// use archon_types::{PlanError, Planner, PlanningContext, SubTask, Task};
///
/// /// Plans the same two steps for every goal.
/// struct TwoSteps;
///
/// impl Planner for TwoSteps {
///     async fn create_plan(&self, goal: &str, _context: &PlanningContext) -> Result<Task, PlanError> {
///         Ok(Task::new("two-steps", goal).with_subtasks(vec![
///             SubTask::new("search", "Search for sources"),
///             SubTask::new("write", "Write a summary of the sources").after(["search"]),
///         ]))
///     }
/// }
/// ```
pub trait Planner: Send + Sync {
    /// Makes a plan for the goal.
    ///
    /// # Errors
    /// [`PlanError`] if there is no plan, or only an invalid one.
    fn create_plan(
        &self,
        goal: &str,
        context: &PlanningContext,
    ) -> impl Future<Output = Result<Task, PlanError>> + Send;

    /// Makes a new plan for the rest of `task`, in which a subtask failed for `reason`.
    ///
    /// The returned task keeps the id, the person's request, the shared data and the completed subtasks of `task`.
    /// Default: calls [`create_plan`](Self::create_plan) with the goal again, with the failure in the context.
    ///
    /// # Errors
    /// As for [`create_plan`](Self::create_plan), and those of [`Task::replanned`].
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

/// The object-safe form of [`Planner`], which every planner implements automatically.
pub trait DynPlanner: Send + Sync {
    /// Does the same as [`Planner::create_plan`].
    ///
    /// # Errors
    /// As [`Planner::create_plan`].
    fn boxed_create_plan<'a>(
        &'a self,
        goal: &'a str,
        context: &'a PlanningContext,
    ) -> BoxFuture<'a, Result<Task, PlanError>>;

    /// Does the same as [`Planner::replan`].
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

impl<P: DynPlanner + ?Sized> Planner for Arc<P> {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        (**self).boxed_create_plan(goal, context).await
    }

    async fn replan(&self, task: &Task, reason: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        (**self).boxed_replan(task, reason, context).await
    }
}

/// A [`Planner`] that calls a closure. After the failure of a subtask the planner calls the closure again, with the
/// failure in the context.
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
    /// Creates a planner that calls `plan`.
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

/// The inputs of a planner besides the goal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanningContext {
    /// The context of the run: its identity, clock and cancellation.
    pub run: Context,
    /// The tools that a subtask may name.
    pub tools: Vec<ToolDefinition>,
    /// The same tools as full specs, for a model that calls them; empty if only definitions are known.
    pub specs: Arc<Encoded<Vec<ToolSpec>>>,
    /// The values that are known at the start. They become the data that the task's subtasks share.
    pub values: serde_json::Map<String, Json>,
    /// The memories recalled for this goal, most relevant first.
    pub memories: Vec<String>,
    /// Background for the planner besides the goal; see
    /// [`SessionPlace::background`](crate::SessionPlace::background).
    pub background: String,
    /// The completed subtasks of an earlier plan. A new subtask may depend on a completed one, but must not
    /// reuse its id.
    pub completed: Vec<SubTask>,
    /// The reason why the earlier plan failed; `None` for a first plan.
    pub failure: Option<String>,
    /// The subtasks of an earlier plan that may change; subtasks that depend on them may change too. Empty
    /// for a first plan.
    pub targets: Vec<SubTaskId>,
    /// The maximum number of subtasks of the plan; `None` if only the planner's own limit applies.
    pub max_subtasks: Option<usize>,
    /// The tokens and the money that the planner itself may use; `None` for no limit.
    pub budget: Option<Lease>,
    /// Counts the tokens and the money that a planner uses if it asks a model. Clones of the context share the count.
    pub expenses: SpendingCounter,
}

/// A counter of tokens and money that can be read while work goes on. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct SpendingCounter(Arc<Mutex<Spending>>);

impl SpendingCounter {
    /// Adds tokens and money to the total.
    pub fn add(&self, spent: Spending) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += spent;
    }

    /// Returns the total so far.
    pub fn total(&self) -> Spending {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlanningContext {
    /// Creates a context for a first plan, without tools, values and limits.
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
            budget: None,
            expenses: SpendingCounter::default(),
        }
    }

    /// Returns the context for a new plan after a subtask of `task` failed for `reason`. The context then has the
    /// completed subtasks of `task` and the reason.
    ///
    /// ```
    /// use archon_types::{PlanningContext, Task};
    ///
    /// fn again(context: PlanningContext, failed: &Task) -> PlanningContext {
    ///     context.after_failure(failed, "the forecast cannot be read")
    /// }
    /// ```
    pub fn after_failure(mut self, task: &Task, reason: impl Into<String>) -> Self {
        let completed = task.subtasks.iter().filter(|s| s.status() == SubTaskStatus::Completed);
        self.completed = completed.cloned().collect();
        self.failure = Some(reason.into());
        self
    }
}

/// A [`Task`] as a graph that can be executed. The graph is computed from the task and has no other data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Plan {
    /// The id of the task.
    pub task_id: TaskId,
    /// The subtasks that depend on each subtask: `{A: [B, C]}` means that B and C wait for A.
    pub subtask_dag: BTreeMap<SubTaskId, Vec<SubTaskId>>,
    /// All subtasks, each after all subtasks that it depends on.
    pub execution_order: Vec<SubTaskId>,
}

impl Plan {
    /// Creates a plan from its parts, without checking them.
    pub fn new(
        task_id: TaskId,
        subtask_dag: BTreeMap<SubTaskId, Vec<SubTaskId>>,
        execution_order: Vec<SubTaskId>,
    ) -> Self {
        Self { task_id, subtask_dag, execution_order }
    }
}

/// The reason why there is no valid plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The planner's model gave no answer.
    #[error("the model gave no plan: {0}")]
    Model(#[from] ProviderError),
    /// The planner's answer is not a plan.
    #[error("the planner's answer is not a plan: {problem}")]
    Unreadable {
        /// The reason why the answer cannot be read as a plan.
        problem: String,
    },
    /// A subtask is invalid, for instance because it depends on a subtask that does not exist.
    #[error("the plan's subtask {id} {problem}")]
    Invalid {
        /// The id of the subtask.
        id: SubTaskId,
        /// The problem, for instance `depends on b, which the plan does not have`.
        problem: String,
    },
    /// Subtasks depend on each other in a circle.
    #[error("Cycle detected in dependency graph: {}", join(path))]
    Cycle {
        /// The subtasks of the circle; the first and the last are the same.
        path: Vec<SubTaskId>,
    },
    /// A new subtask has the id of a completed subtask but another description.
    #[error("the new plan uses the id {id} of a completed subtask for another subtask")]
    IdTaken {
        /// The id that both subtasks have.
        id: SubTaskId,
    },
    /// The plan is valid, but does not reach the goal.
    #[error("the plan does not fit its goal: {problem}")]
    Unfit {
        /// The part of the goal that the plan does not reach.
        problem: String,
    },
    /// The run has a cost limit, and the price of a model that plans, checks the plan or writes the final answer is
    /// unknown.
    #[error(
        "the run has a cost limit, but the price of {model}, which plans, checks the plan or writes the final \
         answer, is unknown"
    )]
    UnknownPrice {
        /// The name of the model.
        model: String,
    },
    /// The remaining budget is too small for a request to the model that plans, checks the plan or writes the final
    /// answer.
    #[error(
        "the remaining budget ({what}) is too small for a request to the model that plans, checks the plan or writes \
         the final answer"
    )]
    OverBudget {
        /// The kind of the budget: `tokens` or `money`.
        what: &'static str,
    },
    /// The plan is fixed, for instance by a template, so there can be no new plan.
    #[error("the plan is fixed, so there can be no new plan")]
    Fixed,
    /// Planning was cancelled.
    #[error("planning was cancelled")]
    Cancelled,
}

impl PlanError {
    /// Returns the kind of failure that the outcome of a run has if the run ends with this error.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Model(error) => error.code().into(),
            Self::OverBudget { .. } => FailureKind::Limit,
            _ => FailureKind::Plan,
        }
    }

    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Model(e) if e.is_retryable() => "try again later",
            Self::Model(_) => "check the planner's model, key and address",
            Self::Unreadable { .. } => "ask the planner again with this error, or use a stronger model",
            Self::Invalid { .. } | Self::Cycle { .. } | Self::IdTaken { .. } => {
                "ask the planner again with this message"
            }
            Self::Unfit { .. } => "say the goal in other words, or use a stronger model",
            Self::UnknownPrice { .. } => "set the model's price, or remove the cost limit",
            Self::OverBudget { .. } => "raise the limit",
            Self::Fixed => "correct the cause of the failure, or change the template and start again",
            Self::Cancelled => "start the task again",
        }
    }
}

fn join(path: &[SubTaskId]) -> String {
    path.iter().map(SubTaskId::as_str).collect::<Vec<_>>().join(" → ")
}

impl Task {
    /// Returns the task with a new plan: completed subtasks stay, and `subtasks` replace all others.
    ///
    /// The new plan may contain a completed subtask with the same description again, which is not repeated.
    ///
    /// # Errors
    /// [`PlanError::IdTaken`] if a new subtask has the id of a completed one but another description,
    /// [`PlanError::Invalid`] if two new subtasks have the same id.
    pub fn replanned(&self, subtasks: Vec<SubTask>) -> Result<Self, PlanError> {
        let mut task = self.clone();
        task.subtasks.retain(|s| s.status() == SubTaskStatus::Completed);
        for subtask in subtasks {
            match task.get_subtask(&subtask.id) {
                None => task.subtasks.push(subtask),
                Some(other) if other.status() != SubTaskStatus::Completed => {
                    return Err(PlanError::Invalid { id: subtask.id, problem: "appears twice".to_owned() });
                }
                Some(done) if done.description == subtask.description => {}
                Some(_) => return Err(PlanError::IdTaken { id: subtask.id }),
            }
        }
        Ok(task)
    }
}
