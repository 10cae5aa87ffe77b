//! The storage of tasks that start runs without a person: at a time, for an event, or for a condition.

use futures_core::future::BoxFuture;

use crate::{Json, values::TaskId};

/// Stores the tasks that start runs without a person (at a time, for an event, or for a condition), each with
/// the state that the trigger engine keeps about it.
///
/// The store need not prevent double runs: an occurrence of a task, such as a due time, starts only one run,
/// because the journal has the idempotency key of the run.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, StoredTask, TaskChange, TaskStore, TaskStoreError};
///
/// /// A store that nobody can change.
/// struct Fixed(Arc<dyn TaskStore>);
///
/// impl TaskStore for Fixed {
///     fn list(&self) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
///         self.0.list()
///     }
///
///     fn change(&self, _change: TaskChange) -> BoxFuture<'_, Result<(), TaskStoreError>> {
///         let error = TaskStoreError::new("changed", "the tasks of this program are fixed");
///         Box::pin(std::future::ready(Err(error)))
///     }
/// }
/// ```
pub trait TaskStore: Send + Sync {
    /// Returns all tasks, in the order of their ids.
    ///
    /// # Errors
    /// The storage failed.
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>>;

    /// Makes a change.
    ///
    /// # Errors
    /// The storage failed.
    fn change(&self, change: TaskChange) -> BoxFuture<'_, Result<(), TaskStoreError>>;

    /// Returns a version number, which changes when another process changes the tasks. Default: 0, for a
    /// store that only one process uses.
    ///
    /// # Errors
    /// The storage failed.
    fn version(&self) -> BoxFuture<'_, Result<u64, TaskStoreError>> {
        Box::pin(std::future::ready(Ok(0)))
    }
}

/// A change of a store of tasks. People change definitions with [`Define`](Self::Define), and the trigger
/// engine changes states with [`SetState`](Self::SetState), so neither overwrites the other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskChange {
    /// Stores a task. If there is a task with the id, its definition is replaced and its state stays.
    Define(StoredTask),
    /// Replaces the state of a task; does nothing if there is no such task.
    SetState {
        /// The id.
        id: TaskId,
        /// The state.
        state: Json,
    },
    /// Deletes a task; does nothing if there is none.
    Delete(TaskId),
}

/// A task in a store. The store reads neither its definition nor its state.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTask {
    /// The id.
    pub id: TaskId,
    /// The definition, as the crate `archon-triggers` writes it.
    pub definition: Json,
    /// The state that the trigger engine keeps about the task.
    pub state: Json,
}

/// The storage of tasks failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tasks cannot be {action}: {problem}")]
pub struct TaskStoreError {
    /// The action after "cannot be", as in "read".
    pub action: &'static str,
    /// The problem, with its place.
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
    /// Creates an error of an action, as in "read", with the problem and its place.
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
