//! The error of the engine.

use archon_types::{RunError, TaskId, TaskStoreError};

/// A task cannot be created or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// The storage of the tasks failed.
    #[error(transparent)]
    Store(#[from] TaskStoreError),
    /// The run service failed.
    #[error(transparent)]
    Runs(#[from] RunError),
    /// A task with this id exists.
    #[error("there is a task {0} already: give the new one another id, or delete the other")]
    Exists(TaskId),
    /// No task has this id.
    #[error("there is no task {0}")]
    Unknown(TaskId),
    /// The id cannot be used.
    #[error("the id {0:?} cannot be used: use 1 to 64 letters, digits, `-` and `_`")]
    WrongId(String),
    /// The task names something that the program does not have.
    #[error("there is no {what} {name:?}; there is: {known}")]
    Missing {
        /// The thing, such as "executor".
        what: &'static str,
        /// The name that the task has.
        name: String,
        /// The names that the program has, with commas.
        known: String,
    },
    /// The schedule of a new task has no time in the future.
    #[error("the schedule of task {0} has no time in the future")]
    NeverDue(TaskId),
    /// Too many events wait for the task.
    #[error("{count} events wait for task {task}, which is the limit: the event was not taken")]
    TooManyEvents {
        /// The task.
        task: TaskId,
        /// The number of events that wait.
        count: usize,
    },
}
