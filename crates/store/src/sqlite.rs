//! The journal that keeps all runs in one SQLite database.
//!
//! | file | holds |
//! |---|---|
//! | `{path}` | the tables that `sqlite/v1.sql`, `v2.sql` and `v3.sql` explain |
//! | `{path}-wal`, `{path}-shm` | SQLite's write-ahead log and its index |
//! | `{path}-locks/{run}.lock` | nothing; locked by the run's writer |
//! | `{path}-locks/{run}.inbox` | nothing; there while messages wait for the run |
//!
//! - **Durability.** Every append is a transaction. A synced one is on the medium when it returns
//!   (`synchronous = FULL`), and takes all the buffered ones before it along. A buffered one is handed
//!   to the operating system; see [`database`].
//! - **A crash** can only take transactions from the end of the write-ahead log, which SQLite's own
//!   checksums show when the database is opened next.
//! - **Damage** within a record is an error that names run and record. Other runs stay readable.
//! - **A full disk** undoes the append that met it.
//! - **Two writers** of one run are told apart by an advisory lock that dies with its process; see
//!   [`lock`](crate::lock). Writers of different runs take turns, in one process and across them.

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
    left_out::LeftOut,
    lock::{PATIENCE, patience},
    rules::check_id,
};
use database::Database;

pub use pool_index::SqliteIndex;

/// Keeps all runs in one SQLite database. Clones share it.
///
/// The database must be on a local disk: SQLite's write-ahead log does not work across machines.
#[derive(Clone, Debug)]
pub struct SqliteJournal {
    database: Arc<Database>,
    bell: Doorbell,
    inbox_key: Option<InboxKey>,
    left_out: LeftOut,
    lock_wait: Duration,
}

impl SqliteJournal {
    /// Opens the database at `path`; it and its directory are made if they are not there, for their
    /// owner alone. Waits for the disk.
    ///
    /// # Errors
    /// [`JournalError::Storage`], also for a file that is somebody else's, and
    /// [`JournalError::FutureStore`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let database = Arc::new(Database::open(path.as_ref())?);
        Ok(Self {
            database,
            bell: Doorbell::default(),
            inbox_key: None,
            left_out: LeftOut::default(),
            lock_wait: PATIENCE,
        })
    }

    /// The same with a key that messages to runs are sealed with. Only messages with its seal are heard: a row that
    /// a program without the key puts into the table, such as an answer in a person's name, is left out with a warning.
    /// The logs themselves have no seal, so whoever can write them can change what was said.
    pub fn with_inbox_key(mut self, key: InboxKey) -> Self {
        self.inbox_key = Some(key);
        self
    }

    /// The same, trying for `wait` instead of 200 ms before it says that a run is in use by another.
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Where the database is.
    pub fn path(&self) -> PathBuf {
        self.database.path().to_owned()
    }
}

impl Journal for SqliteJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            check_id(run)?;
            let (database, run) = (self.database.clone(), run.clone());
            let wait = self.lock_wait;
            blocking(move || writer::open(database, run, mode, &mut patience(wait))).await
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move { self.salvage(run).await?.whole() })
    }

    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move {
            check_id(run)?;
            let (database, run) = (self.database.clone(), run.clone());
            blocking(move || log::read(&database, &run)).await
        })
    }

    /// Reads the first and the last records of each log only, so damage between them is not seen.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        Box::pin(async move {
            let (database, filter) = (self.database.clone(), filter.clone());
            blocking(move || heads::list(&database, &filter)).await
        })
    }

    /// Reads the ends of the log only, so damage between them is not seen.
    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        Box::pin(async move {
            check_id(run)?;
            let (database, run) = (self.database.clone(), run.clone());
            blocking(move || heads::of(&database, &run)).await
        })
    }

    /// The room is used again by later records; the file does not shrink.
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            check_id(run)?;
            let (database, run) = (self.database.clone(), run.clone());
            let wait = self.lock_wait;
            blocking(move || delete::delete(&database, &run, &mut patience(wait))).await
        })
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.clone()))
    }
}
