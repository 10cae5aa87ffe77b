//! The trait through which a server or a command shows and changes the tasks that start runs without a person.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    Json,
    values::{RunId, TaskId, TenantId, Timestamp},
};

/// Shows and changes the tasks that start runs without a person: all of them, or those of one tenant.
///
/// ```
/// use archon_types::{TaskCommand, TaskService, TaskServiceError, TaskStatus};
///
/// /// Resumes every task that was stopped.
/// async fn resume_all(tasks: &dyn TaskService) -> Result<(), TaskServiceError> {
///     for task in tasks.list().await? {
///         if task.status == TaskStatus::Disabled {
///             tasks.carry_out(TaskCommand::Resume(task.id)).await?;
///         }
///     }
///     Ok(())
/// }
/// ```
pub trait TaskService: Send + Sync {
    /// Returns the tasks, in the order of their ids.
    ///
    /// # Errors
    /// The storage failed.
    fn list(&self) -> BoxFuture<'_, Result<Vec<TaskHead>, TaskServiceError>>;

    /// Carries out a command. The change is stored when the function returns.
    ///
    /// # Errors
    /// There is no such task, the definition cannot be used, or the storage failed.
    fn carry_out(&self, command: TaskCommand) -> BoxFuture<'_, Result<(), TaskServiceError>>;
}

/// A command for a task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskCommand {
    /// Creates the task with this definition: a `TriggerTask` of the crate `archon-triggers` in JSON.
    Create(Json),
    /// Pauses the task: its run goes on, but no further run starts.
    Pause(TaskId),
    /// Resumes the task, which was paused or disabled.
    Resume(TaskId),
    /// Starts a run of the task now, besides its times and events.
    Run {
        /// The task.
        task: TaskId,
        /// The name of the start: a second start with the same name starts nothing.
        name: String,
    },
    /// Deletes the task. Its run goes on.
    Delete(TaskId),
}

/// A task that starts runs without a person, as [`TaskService::list`] returns it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskHead {
    /// The id of the task.
    pub id: TaskId,
    /// The tenant on whose behalf the runs work.
    pub tenant: TenantId,
    /// The status: active, paused, disabled or completed.
    pub status: TaskStatus,
    /// The next time at which the schedule starts a run or the condition is checked; `None` while a run works or is
    /// about to start.
    pub next: Option<Timestamp>,
    /// The newest failure (of a run, of a check of the condition, or of a notification channel), or the reason why
    /// the task is disabled, for instance its cost limit. A later success removes a failure.
    pub problem: Option<String>,
    /// The newest problem outside of runs: of a source of events, such as a mailbox, or of a notification channel that
    /// sends later.
    pub newest_problem: Option<TaskProblem>,
    /// The number of runs that started.
    pub runs: u64,
    /// The number of failed runs since the last run that did not fail.
    pub failures: u32,
    /// The money that the ended runs of the task used, in millionths of a currency unit.
    pub spent_micros: u64,
    /// True while a run of the task starts, works or waits.
    pub is_busy: bool,
    /// The newest runs of the task, at most 50, the newest last.
    pub last_runs: Vec<RunId>,
    /// The definition: a `TriggerTask` of the crate `archon-triggers` in JSON.
    pub definition: Json,
}

/// A problem of a source of events or of a notification channel, which no run caused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskProblem {
    /// The last time at which the problem occurred.
    pub at: Timestamp,
    /// The text, which says what failed and what to do.
    pub text: String,
}

/// The status of a task that starts runs without a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// The task starts runs.
    #[default]
    Active,
    /// A person paused the task.
    Paused,
    /// The trigger engine stopped the task. The reason is in [`TaskHead::problem`].
    Disabled,
    /// The task has had its last run.
    Completed,
}

/// A command for a task failed, or the tasks cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskServiceError {
    /// No task has this id.
    #[error("there is no task {0}: list the tasks")]
    Unknown(TaskId),
    /// A task with this id exists.
    #[error("there is a task {0} already: give the new one another id, or delete the other")]
    Exists(TaskId),
    /// The definition, or the command, cannot be used. The text says what to do.
    #[error("{0}")]
    Refused(String),
    /// Too many starts or events of a task wait. The text names the task.
    #[error("{0}")]
    Full(String),
    /// The storage or the run service failed. The text says what to do.
    #[error("{0}")]
    Failed(String),
}

impl TaskHead {
    /// Creates the head of an active task without runs.
    pub fn new(id: impl Into<TaskId>, tenant: impl Into<TenantId>, definition: Json) -> Self {
        Self {
            id: id.into(),
            tenant: tenant.into(),
            status: TaskStatus::Active,
            next: None,
            problem: None,
            newest_problem: None,
            runs: 0,
            failures: 0,
            spent_micros: 0,
            is_busy: false,
            last_runs: Vec::new(),
            definition,
        }
    }
}

impl TaskProblem {
    /// Creates a problem that occurred at a time.
    ///
    /// ```
    /// use archon_types::{TaskProblem, Timestamp};
    ///
    /// let problem = TaskProblem::new(Timestamp::from_millis(0), "the mailbox refuses the password: correct it");
    /// assert_eq!(problem.text, "the mailbox refuses the password: correct it");
    /// ```
    pub fn new(at: Timestamp, text: impl Into<String>) -> Self {
        Self { at, text: text.into() }
    }
}

impl TaskStatus {
    /// Returns the name, as in JSON: `active`, `paused`, `disabled` or `completed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
            Self::Completed => "completed",
        }
    }
}

impl std::fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
