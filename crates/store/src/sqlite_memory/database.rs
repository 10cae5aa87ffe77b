//! Connections: one for all the writing of this process, and readers that are kept for the next question.

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

use super::{damage::failed, row::vector_in, schema, vectors::Scan};
use crate::database_file;

/// How long another process may take for its transaction.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Readers that are kept open.
const READERS: usize = 4;

pub(super) struct Database {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// The copy of the vectors.
    pub(super) scan: Mutex<Scan>,
    /// In how many entries words are.
    pub(super) frequencies: Mutex<Frequencies>,
}

/// In how many entries words are, as far as it was asked, and up to a bound; and the newest position at that time.
#[derive(Default)]
pub(super) struct Frequencies {
    pub(super) newest: i64,
    pub(super) counts: HashMap<String, i64>,
}

impl Database {
    pub(super) fn open(path: &Path) -> Result<Self, MemoryError> {
        database_file::create(path).map_err(failed("create", path))?;
        // Who can only read changes nothing of what is another program's: not even its journal is put away.
        schema::look(&connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?, path)?;
        let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // An interrupted change is taken back now, so that the version can be seen.
        schema::look(&writer, path)?;
        schema::prepare(&mut writer, path)?;
        writer.execute_batch("PRAGMA synchronous = NORMAL").map_err(failed("open", path))?;
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

    /// Reads from one moment's state, whatever is written meanwhile.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let kept = lock(&self.readers).pop();
        let mut reader = match kept {
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

    /// Does all of `work` or, after any error, nothing.
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

    /// What is no transaction.
    pub(super) fn tidy(&self, sql: &str) -> Result<(), MemoryError> {
        lock(&self.writer).execute_batch(sql).map_err(failed("tidy", &self.path))
    }
}

/// A transaction that a panic interrupted was undone when it was dropped.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, MemoryError> {
    // One thread at a time uses a connection, as the borrow checker sees to.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || {
        let connection = database_file::connect(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Without it SQLite prepares a statement anew with each value that its plan might depend on.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        // Whether a JSON object has all the values of another.
        connection.create_scalar_function("has_all", 2, flags, |context| {
            let read = |i| {
                serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(context.get_raw(i).as_str()?)
                    .map_err(|e| Box::new(e) as Box<dyn std::error::Error + Send + Sync>)
                    .map_err(rusqlite::Error::UserFunctionError)
            };
            let (all, some) = (read(0), read(1)?);
            // A damaged row is let through, to be reported.
            Ok(all.map_or(true, |all| some.iter().all(|(name, value)| all.get(name) == Some(value))))
        })?;
        // Whether a vector is what was written.
        connection.create_scalar_function("is_whole", 3, flags, |context| {
            Ok(vector_in([0, 1, 2].map(|i| context.get_raw(i))).is_some())
        })?;
        Ok(connection)
    };
    connect().map_err(failed::<rusqlite::Error>("open", path))
}

#[cfg(test)]
impl Database {
    /// Lets the database grow to so many pages.
    pub(super) fn limit(&self, pages: u32) {
        let sql = format!("PRAGMA max_page_count = {pages}");
        lock(&self.writer).query_row(&sql, [], |_| Ok(())).unwrap();
    }
}
