//! The storage of tasks that start runs without a person: at a time, for an event, or for a condition.

use std::any::Any;

use futures_core::future::BoxFuture;

use crate::{Json, values::TaskId};

/// Stores the tasks that start runs without a person (at a time, for an event, or for a condition), each with
/// the state that the trigger engine keeps about it.
///
/// The store need not prevent double runs: an occurrence of a task, such as a due time, starts only one run,
/// because the journal has the idempotency key of the run.
///
/// One process at a time serves the tasks: it starts their runs. Other processes leave requests for this process in the
/// store, such as an event.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, StoredTasks, TaskChange, TaskStore, TaskStoreError};
///
/// /// A store that nobody can change.
/// struct Fixed(Arc<dyn TaskStore>);
///
/// impl TaskStore for Fixed {
///     fn list(&self) -> BoxFuture<'_, Result<StoredTasks, TaskStoreError>> {
///         self.0.list()
///     }
///
///     fn change(&self, _changes: Vec<TaskChange>) -> BoxFuture<'_, Result<(), TaskStoreError>> {
///         let error = TaskStoreError::new("changed", "the tasks of this program are fixed");
///         Box::pin(std::future::ready(Err(error)))
///     }
/// }
/// ```
pub trait TaskStore: Send + Sync {
    /// Returns all tasks, in the order of their ids, and the requests, the oldest first.
    ///
    /// # Errors
    /// The storage failed.
    fn list(&self) -> BoxFuture<'_, Result<StoredTasks, TaskStoreError>>;

    /// Makes all of these changes, in their order; or none of them, if the storage fails.
    ///
    /// # Errors
    /// The storage failed.
    fn change(&self, changes: Vec<TaskChange>) -> BoxFuture<'_, Result<(), TaskStoreError>>;

    /// Returns a version number, which changes when another process changes the tasks. Default: 0, for a
    /// store that only one process uses.
    ///
    /// # Errors
    /// The storage failed.
    fn version(&self) -> BoxFuture<'_, Result<u64, TaskStoreError>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Takes the right to serve the tasks, until the returned value is dropped or the process ends. Returns `None`
    /// if another process has the right. Default: always returns the right, for a store that only one process uses.
    ///
    /// # Errors
    /// The storage failed.
    fn hold(&self) -> BoxFuture<'_, Result<Option<TaskHold>, TaskStoreError>> {
        Box::pin(std::future::ready(Ok(Some(TaskHold::new(())))))
    }
}

/// The right of one process to serve the tasks of a store. Dropping it gives the right back.
pub struct TaskHold {
    _lock: Box<dyn Any + Send + Sync>,
}

impl TaskHold {
    /// Creates a right that holds `lock`. Dropping the right drops the lock.
    ///
    /// ```
    /// use archon_types::TaskHold;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # let path = std::env::temp_dir().join(format!("archon_{}.lock", std::process::id()));
    /// let file = std::fs::File::create(&path)?;
    /// file.lock()?;
    /// let hold = TaskHold::new(file);
    /// drop(hold); // the lock of the file is free again
    /// # std::fs::remove_file(&path)
    /// # }
    /// ```
    pub fn new(lock: impl Any + Send + Sync) -> Self {
        Self { _lock: Box::new(lock) }
    }
}

impl std::fmt::Debug for TaskHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskHold").finish_non_exhaustive()
    }
}

/// A change of a store of tasks. People change definitions with [`Define`](Self::Define), and the trigger
/// engine changes states with [`SetState`](Self::SetState), so neither overwrites the other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskChange {
    /// Stores a new task; does nothing if there is a task with the id, for instance of another process.
    Create(StoredTask),
    /// Stores a task. If there is a task with the id, its definition is replaced and its state stays.
    Define(StoredTask),
    /// Replaces the state of a task; does nothing if there is no such task.
    SetState {
        /// The id of the task.
        id: TaskId,
        /// The new state.
        state: Json,
    },
    /// Deletes a task; does nothing if there is none.
    Delete(TaskId),
    /// Adds a request for the process that serves the tasks.
    Request(Json),
    /// Deletes the request with this number, because the process that serves the tasks has carried it out; does
    /// nothing if there is no such request.
    Forget(u64),
}

/// The content of a store of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoredTasks {
    /// The tasks, in the order of their ids.
    pub tasks: Vec<StoredTask>,
    /// The requests with their numbers, the oldest first. The store does not interpret the requests.
    pub requests: Vec<(u64, Json)>,
}

impl StoredTasks {
    /// Creates the content of a store from tasks and requests.
    ///
    /// ```
    /// use archon_types::{StoredTask, StoredTasks};
    /// use serde_json::json;
    ///
    /// let stored = StoredTasks::new(vec![StoredTask::new("mail", json!({}), json!({}))], Vec::new());
    /// assert_eq!(stored.tasks.len(), 1);
    /// ```
    pub fn new(tasks: Vec<StoredTask>, requests: Vec<(u64, Json)>) -> Self {
        Self { tasks, requests }
    }
}

/// A task in a store. The store interprets neither the definition nor the state.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTask {
    /// The id of the task.
    pub id: TaskId,
    /// The definition, for instance a `TriggerTask` of the crate `archon-triggers` in JSON.
    pub definition: Json,
    /// The state that the owner of the store, for instance the trigger engine, keeps about the task.
    pub state: Json,
}

/// The storage of tasks failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tasks cannot be {action}: {problem}")]
pub struct TaskStoreError {
    /// The action after "cannot be", as in "read".
    pub action: &'static str,
    /// The problem. If a file or a database failed, the text begins with its name.
    pub problem: String,
}

impl StoredTask {
    /// Creates a task with its definition and the state of the engine.
    ///
    /// ```
    /// use archon_types::StoredTask;
    /// use serde_json::json;
    ///
    /// assert_eq!(StoredTask::new("mail", json!({}), json!({})).id.as_str(), "mail");
    /// ```
    pub fn new(id: impl Into<TaskId>, definition: Json, state: Json) -> Self {
        Self { id: id.into(), definition, state }
    }
}

impl TaskStoreError {
    /// Creates an error. `action` completes "cannot be", as in "read". If a file or a database failed, begin
    /// `problem` with its name.
    ///
    /// ```
    /// use archon_types::TaskStoreError;
    ///
    /// let error = TaskStoreError::new("read", "/srv/tasks.db: the disk is full");
    /// assert_eq!(error.to_string(), "the tasks cannot be read: /srv/tasks.db: the disk is full");
    /// ```
    pub fn new(action: &'static str, problem: impl Into<String>) -> Self {
        Self { action, problem: problem.into() }
    }
}
