//! The storage of tasks that start runs by themselves.

use futures_core::future::BoxFuture;

use crate::{Json, values::TaskId};

/// Keeps the tasks that start runs by themselves, each with the state that a trigger engine has noted.
///
/// The store decides nothing: an occurrence of a task starts one run, whatever the store says, because the journal has the
/// idempotency key of the run.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, StoredTask, TaskId, TaskStore, TaskStoreError};
///
/// /// A store that nobody can change.
/// struct Fixed(Arc<dyn TaskStore>);
///
/// impl TaskStore for Fixed {
///     fn list(&self) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
///         self.0.list()
///     }
///
///     fn put(&self, _task: StoredTask) -> BoxFuture<'_, Result<(), TaskStoreError>> {
///         let problem = "the tasks of this program are fixed".to_owned();
///         Box::pin(std::future::ready(Err(TaskStoreError { action: "changed", problem })))
///     }
///
///     fn delete<'a>(&'a self, _id: &'a TaskId) -> BoxFuture<'a, Result<(), TaskStoreError>> {
///         let problem = "the tasks of this program are fixed".to_owned();
///         Box::pin(std::future::ready(Err(TaskStoreError { action: "changed", problem })))
///     }
/// }
/// ```
pub trait TaskStore: Send + Sync {
    /// Returns all tasks, in the order of their ids.
    ///
    /// # Errors
    /// The storage failed.
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>>;

    /// Stores a task, which replaces the one with the same id.
    ///
    /// # Errors
    /// The storage failed.
    fn put(&self, task: StoredTask) -> BoxFuture<'_, Result<(), TaskStoreError>>;

    /// Deletes a task; does nothing if there is none.
    ///
    /// # Errors
    /// The storage failed.
    fn delete<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), TaskStoreError>>;
}

/// A task in a store. The store reads neither its definition nor its state.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTask {
    /// The id.
    pub id: TaskId,
    /// The definition, as the crate `archon-triggers` writes it.
    pub definition: Json,
    /// The state of the engine.
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
