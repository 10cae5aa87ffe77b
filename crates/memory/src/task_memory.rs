//! Working memory: the values of a task, by name.
//!
//! An entry counts as a value only if its id is derived from its task and its key. So an entry with the right
//! metadata but another id is not a value. Tasks with the same name in different collections are different
//! tasks.

use archon_types::{
    BoxFuture, Json, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, TaskId, Trust, Working,
};
use serde_json::Map;

use crate::{Memory, memory::Tries};

/// A handle to the working memory of one task: JSON values, by name.
#[derive(Clone)]
pub struct TaskMemory {
    memory: Memory,
    task: TaskId,
}

/// A value of a task.
pub(crate) struct TaskValue {
    pub(crate) key: String,
    pub(crate) value: Json,
    pub(crate) trust: Trust,
}

impl Memory {
    /// Returns a handle to the working memory of a task. Nothing is read yet.
    pub fn task(&self, task: impl Into<TaskId>) -> TaskMemory {
        TaskMemory { memory: self.clone(), task: task.into() }
    }
}

impl TaskMemory {
    /// Sets values with this trust level in one write. A value is left as it is if the stored value has a
    /// higher trust level. Returns the number of values that were set. [`update`](Working::update) does the
    /// same with `Trust::Trusted`.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn update_with_trust(
        &self,
        values: Map<String, Json>,
        trust: Trust,
    ) -> Result<usize, MemoryError> {
        self.put(values, trust, &Map::new()).await
    }

    async fn put(
        &self,
        values: Map<String, Json>,
        trust: Trust,
        metadata: &Map<String, Json>,
    ) -> Result<usize, MemoryError> {
        let _one_at_a_time = self.memory.parts.facts.lock().await;
        let mut tries = Tries::default();
        loop {
            let (entries, expected) = self.entries(&values, trust, metadata).await?;
            if entries.is_empty() {
                return Ok(0);
            }
            if let Some(met) = self.memory.attempt(entries, expected, &mut tries).await? {
                return Ok(met);
            }
        }
    }

    /// Returns the entries of the values that may be set, and the expectations for the write.
    pub(crate) async fn entries(
        &self,
        values: &Map<String, Json>,
        trust: Trust,
        metadata: &Map<String, Json>,
    ) -> Result<(Vec<MemoryEntry>, Vec<MemoryChange>), MemoryError> {
        let now = self.memory.now();
        let entry = |(key, value): (&String, &Json)| {
            let mut entry = MemoryEntry::new(id_of(self.task.as_str(), key), value.to_string(), now);
            (entry.kind, entry.trust, entry.metadata) = (MemoryKind::Value, trust, metadata.clone());
            entry.metadata.insert(TASK.to_owned(), Json::from(self.task.as_str()));
            entry.key = Some(key.clone());
            entry
        };
        let (mut believed, expected) = match trust {
            // No stored value has a higher level.
            Trust::Trusted => (Vec::new(), Vec::new()),
            _ => {
                let (values, as_read) = self.memory.expected(self.filter()).await?;
                (values, vec![as_read])
            }
        };
        believed.retain(|entry| entry.trust > trust && is_value(entry));
        let may = |entry: &MemoryEntry| !believed.iter().any(|better| better.id == entry.id);
        Ok((values.iter().map(entry).filter(may).collect(), expected))
    }

    /// Returns all values with their trust levels, in the order in which they were first set. Damaged values
    /// are left out with a warning.
    pub(crate) async fn values(&self) -> Result<Vec<TaskValue>, MemoryError> {
        let entries = self.memory.all(self.filter()).await?;
        let mut values = Vec::new();
        for entry in entries.into_iter().filter(is_value) {
            match serde_json::from_str(&entry.content) {
                Ok(value) => {
                    let key = entry.key.unwrap_or_default();
                    values.push(TaskValue { key, value, trust: entry.trust });
                }
                Err(error) => tracing::warn!(id = entry.id, %error, "a damaged value is left out"),
            }
        }
        Ok(values)
    }

    /// Returns a filter for the task's values in the memory's own collection.
    fn filter(&self) -> MemoryFilter {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Value]).exactly(self.memory.store().scope());
        filter.metadata.insert(TASK.to_owned(), Json::from(self.task.as_str()));
        filter
    }
}

const TASK: &str = "task";

/// Returns the id of a value. The length of the task's name prevents ambiguous ids if names contain the
/// separator.
fn id_of(task: &str, key: &str) -> String {
    format!("value:{}:{task}:{key}", task.len())
}

/// Returns true if an entry is the value of its task and key.
pub(crate) fn is_value(entry: &MemoryEntry) -> bool {
    let task = entry.metadata.get(TASK).and_then(Json::as_str);
    let named = task.zip(entry.key.as_deref());
    entry.kind == MemoryKind::Value && named.is_some_and(|(task, key)| entry.id == id_of(task, key))
}

impl Working for TaskMemory {
    fn update(&self, values: Map<String, Json>) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(async move { self.update_with_trust(values, Trust::Trusted).await.map(drop) })
    }

    fn to_map(&self) -> BoxFuture<'_, Result<Map<String, Json>, MemoryError>> {
        Box::pin(async move {
            let values = self.values().await?;
            Ok(values.into_iter().map(|value| (value.key, value.value)).collect())
        })
    }

    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(async move {
            let changes = vec![MemoryChange::Forget(self.filter())];
            self.memory.apply(changes).await.map(drop)
        })
    }
}
