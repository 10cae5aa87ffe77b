//! The store that keeps memories in one SQLite database.
//!
//! - **Words** are found by FTS5 with English stems. **Vectors** are found by an exact scan over a copy in
//!   memory that follows all writes to the database, by any process.
//! - **Isolation.** The collection is a condition of every statement, and the scan visits only groups within
//!   the collection.
//! - **Durability.** A change is a transaction in the write-ahead log: it survives the death of the process.
//!   A power cut may remove the last changes, but never a part of one (`synchronous = NORMAL`).
//! - **Damage.** Each row has a checksum. A row that does not match its checksum is left out and reported;
//!   the other rows remain usable.
//! - **A full disk** rolls back the change that meets it.
//! - **Deleted entries** are overwritten, with their words and vectors. The write-ahead log, and pages from which
//!   rows moved, have copies until [`MemoryStore::erase_deleted`] writes the file anew and empties the log.

mod change;
mod damage;
mod database;
mod interrupted;
mod query;
mod row;
mod schema;
mod search;
mod vectors;
mod words;

use std::{path::Path, sync::Arc};

use archon_types::{
    BoxFuture, Collection, Listing, MemoryCandidates, MemoryChange, MemoryError, MemoryPage, MemorySearch,
    MemoryStore,
};

use crate::blocking::blocking_or;
use database::Database;

/// A store of memories in one SQLite database, restricted to a collection. Clones share it.
///
/// The database must be on a local disk: SQLite's write-ahead log does not work across machines.
///
/// ```no_run
/// use archon_store::SqliteMemory;
/// use archon_types::Collection;
///
/// let of_anna = SqliteMemory::open("data/memories.db")?.collection(Collection::new("user:anna")?)?;
/// # Ok::<(), archon_types::MemoryError>(())
/// ```
#[derive(Clone)]
pub struct SqliteMemory {
    database: Arc<Database>,
    scope: Collection,
}

impl SqliteMemory {
    /// Opens the database at `path`, with access to the memories of all collections. The database and its
    /// directory are created if they do not exist, for their owner only. Blocks while it waits for the disk.
    ///
    /// # Errors
    /// [`MemoryError::Storage`], also for a database of another program; [`MemoryError::FutureStore`] for a
    /// database of a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MemoryError> {
        Ok(Self { database: Arc::new(Database::open(path.as_ref())?), scope: Collection::root() })
    }

    /// Returns a store on the same database, restricted to a collection within this store's collection.
    ///
    /// # Errors
    /// [`MemoryError::OutOfScope`] if the collection is not within this store's collection.
    pub fn collection(&self, collection: Collection) -> Result<Self, MemoryError> {
        let scope = self.scope.narrowed(Some(&collection))?;
        Ok(Self { database: self.database.clone(), scope })
    }

    /// Compacts the database: merges the index of words, drops the list of removed vectors, and frees unused
    /// pages.
    ///
    /// # Errors
    /// [`MemoryError::Storage`]; no data are lost.
    pub async fn compact(&self) -> Result<(), MemoryError> {
        let database = self.database.clone();
        blocking(move || change::compact(&database)).await
    }
}

impl MemoryStore for SqliteMemory {
    fn scope(&self) -> &Collection {
        &self.scope
    }

    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        let (database, scope) = (self.database.clone(), self.scope.clone());
        Box::pin(async move { blocking(move || change::apply(&database, &scope, changes)).await })
    }

    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        let (database, scope, search) = (self.database.clone(), self.scope.clone(), search.clone());
        Box::pin(async move { blocking(move || search::candidates(&database, &scope, &search)).await })
    }

    fn erase_deleted(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
        let database = self.database.clone();
        Box::pin(async move { blocking(move || change::erase_deleted(&database)).await })
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        let (database, scope, listing) = (self.database.clone(), self.scope.clone(), listing.clone());
        Box::pin(async move { blocking(move || query::list(&database, &scope, &listing)).await })
    }
}

/// Runs `work` on a thread that may block; without a Tokio runtime, on the current thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MemoryError> + Send + 'static,
) -> Result<T, MemoryError> {
    let place = "a runtime that shuts down".to_owned();
    blocking_or(work, |e| MemoryError::Storage { action: "finish", place, source: Box::new(e) }).await
}
