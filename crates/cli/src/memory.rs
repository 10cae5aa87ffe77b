//! Opens memories.

use std::sync::Arc;

use archon::{RandomIds, SystemClock, memory::Memory, store::SqliteMemory, types::Collection};

use crate::{app::App, embedder, failure::Failure};

/// Opens the memory of a collection.
pub(crate) async fn open(app: &App, collection: &Collection) -> Result<Memory, Failure> {
    let store = SqliteMemory::open(app.data_dir.join("memory.db"))?.collection(collection.clone())?;
    let memory = Memory::new(Arc::new(store), Arc::new(SystemClock), Arc::new(RandomIds));
    Ok(match embedder::chosen(app).await? {
        Some(embedder) => memory.with_embedder(embedder),
        None => memory,
    })
}
