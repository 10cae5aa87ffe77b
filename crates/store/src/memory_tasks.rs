//! Tasks in memory, lost with the process: for tests and short-lived programs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{BoxFuture, Json, StoredTask, StoredTasks, TaskChange, TaskId, TaskStore, TaskStoreError};

/// A store that keeps tasks in memory. Clones share the tasks. Use it for one engine only: an engine does not notice
/// the changes that another engine makes in this store.
///
/// ```
/// use archon_store::InMemoryTaskStore;
/// use archon_types::{StoredTask, TaskChange, TaskStore};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon_types::TaskStoreError> {
/// let store = InMemoryTaskStore::new();
/// let task = StoredTask::new("mail", json!({}), json!({}));
/// store.change(vec![TaskChange::Define(task)]).await?;
/// assert_eq!(store.list().await?.tasks.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct InMemoryTaskStore(Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
struct Tables {
    tasks: BTreeMap<TaskId, StoredTask>,
    requests: BTreeMap<u64, Json>,
    /// The number of the last request.
    last: u64,
}

impl InMemoryTaskStore {
    /// Creates a store without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn change(&mut self, change: TaskChange) {
        match change {
            TaskChange::Create(task) => _ = self.tasks.entry(task.id.clone()).or_insert(task),
            TaskChange::Define(task) => match self.tasks.get_mut(&task.id) {
                Some(stored) => stored.definition = task.definition,
                None => _ = self.tasks.insert(task.id.clone(), task),
            },
            TaskChange::SetState { id, state } => {
                if let Some(stored) = self.tasks.get_mut(&id) {
                    stored.state = state;
                }
            }
            TaskChange::Delete(id) => _ = self.tasks.remove(&id),
            TaskChange::Request(request) => {
                self.last += 1;
                self.requests.insert(self.last, request);
            }
            TaskChange::Forget(number) => _ = self.requests.remove(&number),
            _ => {}
        }
    }
}

impl TaskStore for InMemoryTaskStore {
    fn list(&self) -> BoxFuture<'_, Result<StoredTasks, TaskStoreError>> {
        let tables = self.tables();
        let requests = tables.requests.iter().map(|(number, request)| (*number, request.clone())).collect();
        let stored = StoredTasks::new(tables.tasks.values().cloned().collect(), requests);
        Box::pin(std::future::ready(Ok(stored)))
    }

    fn change(&self, changes: Vec<TaskChange>) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        let mut tables = self.tables();
        changes.into_iter().for_each(|change| tables.change(change));
        Box::pin(std::future::ready(Ok(())))
    }
}
