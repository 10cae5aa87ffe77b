//! The connections to the database: one for all writes of this process, and readers that are reused.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use archon_types::MemoryError;
use rusqlite::{
    Connection, OpenFlags, Transaction, TransactionBehavior, config::DbConfig, functions::FunctionFlags,
};

use super::{
    damage::failed,
    row::{sum_of, vector_in},
    schema,
    vectors::Scan,
};
use crate::database_file::{self, PATIENCE};

/// The maximum number of idle readers that are kept open.
const READERS: usize = 4;

/// The longest time to wait for the readers of the write-ahead log before it is emptied. Searches take milliseconds.
const READING: Duration = Duration::from_millis(500);

pub(super) struct Database {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// The copy of the vectors in RAM, which searches scan.
    pub(super) scan: Mutex<Scan>,
    /// The number of entries that contain each word.
    pub(super) frequencies: Mutex<Frequencies>,
}

/// The number of entries that contain each word that was asked for, counted up to a maximum; and the newest
/// position at the time of the count.
#[derive(Default)]
pub(super) struct Frequencies {
    pub(super) newest: i64,
    pub(super) counts: HashMap<String, i64>,
}

impl Database {
    pub(super) fn open(path: &Path) -> Result<Self, MemoryError> {
        database_file::create(path).map_err(failed("create", path))?;
        // A read-only connection changes nothing in another program's database: not even its journal is
        // removed.
        schema::check_owner(&connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?, path)?;
        let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // This connection rolls an interrupted change back, so that the version can be read.
        schema::check_owner(&writer, path)?;
        schema::prepare(&mut writer, path)?;
        let settings = "PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON";
        writer.execute_batch(settings).map_err(failed("open", path))?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(writer),
            readers: Mutex::default(),
            scan: Mutex::default(),
            frequencies: Mutex::default(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on a snapshot of the database, which concurrent writes do not change.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let idle = lock(&self.readers).pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        };
        let transaction = reader.transaction().map_err(failed("read", &self.path))?;
        let done = work(&transaction)?;
        drop(transaction);
        let mut readers = lock(&self.readers);
        if readers.len() < READERS {
            readers.push(reader);
        }
        Ok(done)
    }

    /// Runs `work` in a transaction; after an error, all its changes are rolled back.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let mut writer = lock(&self.writer);
        let transaction = writer
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed("write to", &self.path))?;
        let done = work(&transaction)?;
        transaction.commit().map_err(failed("write to", &self.path))?;
        Ok(done)
    }

    /// Moves the write-ahead log into the database and empties it. Returns false if another program's read
    /// transaction still needs the log.
    pub(super) fn truncate_log(&self) -> Result<bool, MemoryError> {
        let writer = lock(&self.writer);
        let truncate = || {
            writer.busy_timeout(READING)?;
            let is_busy =
                writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
            writer.busy_timeout(PATIENCE)?;
            Ok(!is_busy?)
        };
        truncate().map_err(failed::<rusqlite::Error>("empty the log of", &self.path))
    }

    /// Runs statements that are not allowed in a transaction.
    pub(super) fn tidy(&self, sql: &str) -> Result<(), MemoryError> {
        lock(&self.writer).execute_batch(sql).map_err(failed("tidy", &self.path))
    }
}

/// Locks a mutex. A transaction that a panic interrupted was rolled back when it was dropped.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, MemoryError> {
    let connect = || {
        let connection = database_file::connect(path, access)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Without this setting SQLite prepares a statement anew for each value that its plan might depend
        // on.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        // `has_all(a, b)`: true if the JSON object `a` has all members of `b`.
        connection.create_scalar_function("has_all", 2, flags, |context| {
            let read = |i| {
                serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(context.get_raw(i).as_str()?)
                    .map_err(|e| Box::new(e) as Box<dyn std::error::Error + Send + Sync>)
                    .map_err(rusqlite::Error::UserFunctionError)
            };
            let (all, some) = (read(0), read(1)?);
            Ok(all.is_ok_and(|all| some.iter().all(|(name, value)| all.get(name) == Some(value))))
        })?;
        // `sum_of(…)`: the checksum of the columns that filters look at.
        connection.create_scalar_function("sum_of", -1, flags, |context| {
            Ok(sum_of((0..context.len()).map(|i| context.get_raw(i))))
        })?;
        // `is_whole(bytes, checksum, dimensions)`: true if a vector is undamaged.
        connection.create_scalar_function("is_whole", 3, flags, |context| {
            Ok(vector_in([0, 1, 2].map(|i| context.get_raw(i))).is_some())
        })?;
        Ok(connection)
    };
    connect().map_err(failed::<rusqlite::Error>("open", path))
}

#[cfg(test)]
impl Database {
    /// Sets the maximum size of the database to `pages` pages.
    pub(super) fn limit(&self, pages: u32) {
        let sql = format!("PRAGMA max_page_count = {pages}");
        lock(&self.writer).query_row(&sql, [], |_| Ok(())).unwrap();
    }
}
