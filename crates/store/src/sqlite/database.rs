//! The connections to the database: one for all writes of this process, since SQLite has one writer at a
//! time, and one for each read. Writers wait for each other, and for those of other processes. Readers never
//! wait.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use archon_types::{Durability, JournalError, RunId};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::{error::failed, schema};
use crate::{
    database_file,
    files::{Identity, create_directory, if_exists, storage},
    lock::{self, RunLock, Wait},
};

#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    locks: PathBuf,
    /// The identity of the file, so that another file in its place is noticed. The file is not kept open:
    /// closing it would remove SQLite's locks on it for the whole process.
    identity: Identity,
    writing: Mutex<Writing>,
}

#[derive(Debug)]
struct Writing {
    connection: Connection,
    /// The durability that the connection is set to.
    durability: Durability,
}

impl Database {
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        let locks = sibling_file(path, "-locks");
        create_directory(path.parent().unwrap_or(Path::new("")))?;
        create_directory(&locks)?;
        // One process at a time, until the tables exist.
        let _turn = lock::wait(&locks.join(".open"))?;
        database_file::create(path).map_err(storage("create", path))?;
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::prepare(&mut connection, path)?;
        // On some systems a plain sync goes only as far as the drive's cache.
        let settings = "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON";
        connection.execute_batch(settings).map_err(failed("open", path))?;
        let writing = Mutex::new(Writing { connection, durability: Durability::Synced });
        let identity = Identity::of(&fs::metadata(path).map_err(storage("open", path))?);
        Ok(Self { path: path.to_owned(), locks, identity, writing })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the open database is still the file at its path.
    pub(super) fn check(&self, run: &RunId) -> Result<(), JournalError> {
        if self.identity.is_at(&self.path) {
            return Ok(());
        }
        Err(lock::lost_writer(run, format!("its database {} was removed or replaced", self.path.display())))
    }

    /// Returns the path of the file that exists while messages wait for a run.
    pub(super) fn inbox_mark(&self, run: &RunId) -> PathBuf {
        self.locks.join(format!("{run}.inbox"))
    }

    /// Takes the lock of a run's writer.
    pub(super) fn lock(&self, run: &RunId, wait: &mut Wait<'_>) -> Result<RunLock, JournalError> {
        RunLock::take(&self.locks, run, wait)
    }

    /// Returns true if a writer has the lock of a run.
    pub(super) fn is_locked(&self, run: &RunId) -> bool {
        lock::is_held(&self.locks, run)
    }

    /// Runs `work` on a snapshot of the database, which concurrent writes do not change.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let mut connection = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let transaction = connection.transaction().map_err(failed("read", &self.path))?;
        work(&transaction)
    }

    /// Runs `work` in a transaction; after an error, all its changes are rolled back.
    ///
    /// A synced transaction is on the disk when this function returns. A buffered transaction is in the
    /// write-ahead log, but perhaps only in the system's cache: other processes see it, it survives this
    /// process, and the next sync of the write-ahead log syncs it as well. SQLite syncs the write-ahead log
    /// before it moves transactions into the database file.
    pub(super) fn write<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let mut writing = self.writing();
        writing.become_(durability).map_err(failed("write to", &self.path))?;
        let transaction = writing
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed("write to", &self.path))?;
        let done = work(&transaction)?;
        transaction.commit().map_err(failed("write to", &self.path))?;
        Ok(done)
    }

    /// Syncs buffered transactions.
    pub(super) fn sync(&self) -> Result<(), JournalError> {
        let _nobody_writes = self.writing();
        let path = sibling_file(&self.path, "-wal");
        // Without that file, everything is in the database and synced.
        let synced = if_exists(OpenOptions::new().write(true).open(&path).and_then(|log| log.sync_data()));
        synced.map(drop).map_err(storage("sync", &path))
    }

    /// Locks the write connection. A transaction that a panic interrupted was rolled back when it was
    /// dropped.
    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing {
    fn become_(&mut self, durability: Durability) -> rusqlite::Result<()> {
        if self.durability != durability {
            let synchronous = match durability {
                Durability::Buffered => "NORMAL",
                Durability::Synced => "FULL",
            };
            self.connection.pragma_update(None, "synchronous", synchronous)?;
            self.durability = durability;
        }
        Ok(())
    }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, JournalError> {
    database_file::connect(path, access).map_err(failed("open", path))
}

fn sibling_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
impl Database {
    /// Sets the maximum size of the database to `pages` pages, or to its present size if that is larger.
    pub(super) fn limit(&self, pages: u32) {
        let sql = format!("PRAGMA max_page_count = {pages}");
        self.writing().connection.query_row(&sql, [], |_| Ok(())).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synced_transaction_waits_for_the_medium_and_a_buffered_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("db")).unwrap();
        let setting = |transaction: &Transaction<'_>| {
            Ok(transaction.query_row("PRAGMA synchronous", [], |row| row.get::<_, i32>(0)).unwrap())
        };
        // 2 is FULL, 1 is NORMAL, as https://sqlite.org/pragma.html#pragma_synchronous says.
        for (durability, expected) in [
            (Durability::Synced, 2),
            (Durability::Buffered, 1),
            (Durability::Buffered, 1),
            (Durability::Synced, 2),
        ] {
            assert_eq!(database.write(durability, setting).unwrap(), expected, "{durability:?}");
        }
        database.sync().unwrap();
    }

    #[test]
    fn work_that_fails_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("db")).unwrap();
        let insert =
            |transaction: &Transaction<'_>| transaction.execute("INSERT INTO runs (run) VALUES ('r')", []);
        let result = database.write(Durability::Buffered, |transaction| {
            insert(transaction).unwrap();
            Err::<(), _>(JournalError::UnknownRun { run: RunId::new("r") })
        });
        assert!(result.is_err());
        let count = |connection: &Connection| {
            Ok(connection.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i32>(0)).unwrap())
        };
        assert_eq!(database.read(count).unwrap(), 0);
    }
}
