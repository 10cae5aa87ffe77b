//! The error of the engine.

use archon_types::{RunError, TaskId, TaskServiceError, TaskStoreError};

use crate::schedule::ScheduleError;

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
    /// The interval of a condition cannot be used.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The data of an event is too large.
    #[error("event {id:?} has more than {most} bytes of data: send a reference to the data")]
    EventTooLarge {
        /// The id of the event.
        id: String,
        /// The limit: the most bytes of the data as JSON.
        most: usize,
    },
    /// A task with this id exists.
    #[error("there is a task {0} already: give the new one another id, or delete the other")]
    Exists(TaskId),
    /// No task has this id.
    #[error("there is no task {0}: list the tasks")]
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
    #[error("the schedule of task {0} has no time in the future: choose a later one")]
    NeverDue(TaskId),
    /// The definition is not that of a task.
    #[error("the definition of the task cannot be read: {0}")]
    Definition(String),
    /// Too many requests wait for the process that serves the tasks.
    #[error(
        "{count} requests already wait for a process that serves the tasks, and no more may wait: start such a \
         process, for instance `archon serve`, then try again"
    )]
    TooManyRequests {
        /// The number of requests that wait.
        count: usize,
    },
    /// Too many occurrences wait for the task.
    #[error("{count} starts of task {task} already wait, and no more may wait: try again after its next run")]
    TooManyEvents {
        /// The task.
        task: TaskId,
        /// The number of occurrences that wait.
        count: usize,
    },
}

impl From<TriggerError> for TaskServiceError {
    fn from(error: TriggerError) -> Self {
        let text = error.to_string();
        match error {
            TriggerError::Unknown(id) => Self::Unknown(id),
            TriggerError::Exists(id) => Self::Exists(id),
            TriggerError::Store(_) | TriggerError::Runs(_) => Self::Failed(text),
            TriggerError::TooManyRequests { .. } | TriggerError::TooManyEvents { .. } => Self::Full(text),
            _ => Self::Refused(text),
        }
    }
}
