//! Tasks in memory, lost with the process: for tests and short-lived programs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{BoxFuture, StoredTask, TaskChange, TaskId, TaskStore, TaskStoreError};

/// A store that keeps tasks in memory. Clones share the tasks.
///
/// ```
/// use archon_store::InMemoryTaskStore;
/// use archon_types::{StoredTask, TaskChange, TaskStore};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon_types::TaskStoreError> {
/// let store = InMemoryTaskStore::new();
/// let task = StoredTask { id: "mail".into(), definition: json!({}), state: json!({}) };
/// store.change(TaskChange::Define(task)).await?;
/// assert_eq!(store.list().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct InMemoryTaskStore(Arc<Mutex<BTreeMap<TaskId, StoredTask>>>);

impl InMemoryTaskStore {
    /// Creates a store without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<TaskId, StoredTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskStore for InMemoryTaskStore {
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
        let tasks = self.tasks().values().cloned().collect();
        Box::pin(std::future::ready(Ok(tasks)))
    }

    fn change(&self, change: TaskChange) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        let mut tasks = self.tasks();
        match change {
            TaskChange::Define(task) => match tasks.get_mut(&task.id) {
                Some(stored) => stored.definition = task.definition,
                None => _ = tasks.insert(task.id.clone(), task),
            },
            TaskChange::SetState { id, state } => {
                if let Some(stored) = tasks.get_mut(&id) {
                    stored.state = state;
                }
            }
            TaskChange::Delete(id) => _ = tasks.remove(&id),
            _ => {}
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
