//! What a task has at hand: values by name.

use archon_types::{
    BoxFuture, Json, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, Trust, Working,
};
use serde_json::Map;

use crate::Memory;

/// The values of one task, in whichever store.
#[derive(Clone)]
pub struct TaskMemory {
    memory: Memory,
    task: String,
}

impl TaskMemory {
    pub(crate) fn new(memory: Memory, task: String) -> Self {
        Self { memory, task }
    }

    fn filter(&self) -> MemoryFilter {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Value]);
        filter.metadata.insert(TASK.to_owned(), Json::String(self.task.clone()));
        filter
    }
}

const TASK: &str = "task";

impl Working for TaskMemory {
    fn update(&self, values: Map<String, Json>) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(async move {
            let now = self.memory.now();
            let entry = |(key, value): (String, Json)| {
                // The length keeps apart what a separator inside of names would mix up.
                let id = format!("value:{}:{}:{key}", self.task.len(), self.task);
                let mut entry = MemoryEntry::new(id, value.to_string(), now);
                entry.kind = MemoryKind::Value;
                entry.trust = Trust::Trusted;
                entry.metadata.insert(TASK.to_owned(), Json::String(self.task.clone()));
                entry.key = Some(key);
                MemoryChange::put(entry)
            };
            self.memory.apply(values.into_iter().map(entry).collect()).await.map(drop)
        })
    }

    fn to_map(&self) -> BoxFuture<'_, Result<Map<String, Json>, MemoryError>> {
        Box::pin(async move {
            let mut values = Map::new();
            for entry in self.memory.all(self.filter()).await? {
                let damaged = |e: serde_json::Error| MemoryError::Corrupt {
                    id: entry.id.clone(),
                    problem: e.to_string(),
                };
                let value = serde_json::from_str(&entry.content).map_err(damaged)?;
                values.insert(entry.key.unwrap_or_default(), value);
            }
            Ok(values)
        })
    }

    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(async move {
            let changes = vec![MemoryChange::Forget(self.filter())];
            self.memory.apply(changes).await.map(drop)
        })
    }
}
