//! The journal that keeps all runs in one SQLite database.
//!
//! | file | holds |
//! |---|---|
//! | `{path}` | the tables; see `sqlite/v4.sql` |
//! | `{path}-wal`, `{path}-shm` | SQLite's write-ahead log and its index |
//! | `{path}-locks/{run}.lock` | empty; locked by the run's writer |
//! | `{path}-locks/{run}.inbox` | empty; exists while messages wait for the run |
//!
//! - **Durability.** Every append is a transaction. A synced append is on the medium when it returns
//!   (`synchronous = FULL`), and so are all buffered appends before it. A buffered append is passed to the
//!   operating system; see [`database`].
//! - **A crash** can only remove transactions from the end of the write-ahead log; SQLite's own checksums
//!   detect that when the database is next opened.
//! - **Damage** within a record is an error with the run and the record. Other runs stay readable.
//! - **A full disk** rolls back the append that meets it.
//! - **Two writers** of one run are kept apart by an advisory lock that ends with its process; see
//!   [`lock`](crate::lock). Writers of different runs take turns, within one process and across several.

mod database;
mod delete;
mod error;
mod heads;
mod inbox;
mod log;
mod pool_index;
mod schema;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use archon_types::{
    BoxFuture, Inbox, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter, RunHead, RunId, Salvaged,
};

use crate::{
    blocking::blocking,
    doorbell::Doorbell,
    inbox_key::InboxKey,
    lock::{PATIENCE, patience},
    rules::check_id,
    skipped::Skipped,
};
use database::Database;

pub use pool_index::SqlitePoolIndex;

/// A journal that keeps all runs in one SQLite database. Clones share it.
///
/// The database must be on a local disk: SQLite's write-ahead log does not work across machines.
///
/// ```no_run
/// use std::time::Duration;
///
/// use archon_store::{InboxKey, SqliteJournal};
///
/// let journal = SqliteJournal::open("data/runs.db")?
///     .with_inbox_key(InboxKey::in_file("keys/inbox"))
///     .with_lock_wait(Duration::from_secs(1));
/// # Ok::<(), archon_types::JournalError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteJournal {
    database: Arc<Database>,
    bell: Doorbell,
    inbox_key: Option<InboxKey>,
    skipped: Skipped,
    lock_wait: Duration,
}

impl SqliteJournal {
    /// Opens the database at `path`. The database and its directory are created if they do not exist, for
    /// their owner only. Blocks while it waits for the disk.
    ///
    /// # Errors
    /// [`JournalError::Storage`], also for a database of another program; [`JournalError::UnsupportedStore`]
    /// for a database of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let database = Arc::new(Database::open(path.as_ref())?);
        Ok(Self {
            database,
            bell: Doorbell::default(),
            inbox_key: None,
            skipped: Skipped::default(),
            lock_wait: PATIENCE,
        })
    }

    /// Sets the key that seals messages to runs. The journal then accepts only messages with its seal: a row
    /// that a program without the key puts into the table, such as an answer in a person's name, is skipped
    /// with a warning. The logs themselves are not sealed, so a program that can write to them can change
    /// their records.
    pub fn with_inbox_key(mut self, key: InboxKey) -> Self {
        self.inbox_key = Some(key);
        self
    }

    /// Sets the maximum time to wait for the lock of a run, before the error that another writer uses the
    /// run. Default 200 ms.
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Returns the path of the database.
    pub fn path(&self) -> PathBuf {
        self.database.path().to_owned()
    }
}

impl SqliteJournal {
    /// Runs `work` on a thread that may block, with the database and a run whose id is valid.
    async fn work<T: Send + 'static>(
        &self,
        run: &RunId,
        work: impl FnOnce(&Arc<Database>, &RunId) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        check_id(run)?;
        let (database, run) = (self.database.clone(), run.clone());
        blocking(move || work(&database, &run)).await
    }
}

impl Journal for SqliteJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        let wait = self.lock_wait;
        Box::pin(self.work(run, move |database, run| writer::open(database, run, mode, &mut patience(wait))))
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move { self.salvage(run).await?.whole() })
    }

    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(self.work(run, |database, run| log::read(database, run)))
    }

    /// Reads only the first record and the requested records.
    fn read_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(self.work(run, move |database, run| log::read_before(database, run, before, most)))
    }

    /// Reads the first and the last records of each log only, so damage between them is not seen.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        let (database, filter) = (self.database.clone(), filter.clone());
        Box::pin(blocking(move || heads::list(&database, &filter)))
    }

    /// Reads the beginning and the end of the log only, so damage between them is not seen.
    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        Box::pin(self.work(run, |database, run| heads::of(database, run)))
    }

    /// Removes a run. Later records reuse its space; the file does not shrink.
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        let wait = self.lock_wait;
        Box::pin(self.work(run, move |database, run| delete::delete(database, run, &mut patience(wait))))
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.clone()))
    }
}
