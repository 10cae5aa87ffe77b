//! The index of suspended runs in a SQLite database of its own.
//!
//! The index only says which logs to read; the logs are the truth. If the database is lost, or lacks the newest
//! changes after a power cut, `AgentPool::restore` rebuilds it from the logs. So changes are not synced, and a
//! row that cannot be read is skipped.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{BoxFuture, JournalError, PendingApproval, PoolFilter, PoolIndex, RunId, Timestamp};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::error::failed;
use crate::{
    blocking::blocking,
    database_file,
    files::{create_directory, storage},
};

const VERSION: u32 = 1;
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS waiting (
        run     TEXT    NOT NULL,
        request TEXT    NOT NULL,
        tenant  TEXT    NOT NULL,
        created INTEGER NOT NULL,
        -- None for what does not expire, or is set aside.
        expires INTEGER,
        body    TEXT    NOT NULL,
        PRIMARY KEY (run, request)
    ) STRICT;
    CREATE INDEX IF NOT EXISTS waiting_by_tenant ON waiting (tenant, created, run, request);
    CREATE INDEX IF NOT EXISTS waiting_by_end ON waiting (expires) WHERE expires IS NOT NULL;
    PRAGMA user_version = 1;
";

/// An index of suspended runs in one SQLite database, for several processes. Clones share it.
///
/// The database must be on a local disk: SQLite's write-ahead log does not work across machines.
///
/// ```no_run
/// let index = archon_store::SqlitePoolIndex::open("data/waiting.db")?;
/// # Ok::<(), archon_types::JournalError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqlitePoolIndex(Arc<Database>);

#[derive(Debug)]
struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqlitePoolIndex {
    /// Opens the database at `path`. The database and its directory are created if they do not exist, for
    /// their owner only. Blocks while it waits for the disk.
    ///
    /// # Errors
    /// [`JournalError::Storage`], also for a database of another program; [`JournalError::UnsupportedStore`]
    /// for a database of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let path = path.as_ref();
        create_directory(path.parent().unwrap_or(Path::new("")))?;
        database_file::create(path).map_err(storage("create", path))?;
        let access = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let mut connection = database_file::connect(path, access).map_err(failed("open", path))?;
        prepare(&mut connection, path)?;
        Ok(Self(Arc::new(Database { path: path.to_owned(), connection: Mutex::new(connection) })))
    }
}

fn prepare(connection: &mut Connection, path: &Path) -> Result<(), JournalError> {
    let failed = || failed("open", path);
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL").map_err(failed())?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed())?;
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed())?;
    if found > VERSION {
        let place = path.display().to_string();
        return Err(JournalError::UnsupportedStore { place, found, supported: VERSION });
    }
    transaction.execute_batch(TABLES).map_err(failed())?;
    transaction.commit().map_err(failed())
}

impl Database {
    fn put(&self, run: &RunId, waiting: &[PendingApproval]) -> Result<(), JournalError> {
        let failed = || failed("write to", &self.path);
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed())?;
        transaction.execute("DELETE FROM waiting WHERE run = ?1", [run.as_str()]).map_err(failed())?;
        for entry in waiting {
            let body = serde_json::to_string(entry)
                .map_err(|error| storage("write to", &self.path)(io::Error::other(error)))?;
            let expires = entry.request.expires_at.filter(|_| entry.request.paused_at.is_none()).map(millis);
            let row = params![
                run.as_str(),
                entry.request.request_id,
                entry.tenant.as_str(),
                millis(entry.created_at),
                expires,
                body
            ];
            let insert = "INSERT OR REPLACE INTO waiting (run, request, tenant, created, expires, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            transaction.prepare_cached(insert).and_then(|mut insert| insert.execute(row)).map_err(failed())?;
        }
        transaction.commit().map_err(failed())
    }

    fn find(&self, filter: &PoolFilter) -> Result<Vec<PendingApproval>, JournalError> {
        let failed = || failed("read", &self.path);
        let mut sql = "SELECT body FROM waiting WHERE TRUE".to_owned();
        let mut values: Vec<rusqlite::types::Value> = Vec::new();
        let mut only = |condition: &str, value: rusqlite::types::Value| {
            sql.push_str(condition);
            values.push(value);
        };
        if let Some(tenant) = &filter.tenant {
            only(" AND tenant = ?", tenant.as_str().to_owned().into());
        }
        if let Some(run) = &filter.run {
            only(" AND run = ?", run.as_str().to_owned().into());
        }
        if let Some(due) = filter.due {
            only(" AND expires <= ?", millis(due).into());
        }
        sql.push_str(" ORDER BY created, run, request");
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare_cached(&sql).map_err(failed())?;
        let rows = statement
            .query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(0))
            .map_err(failed())?;
        let mut found = Vec::new();
        for body in rows {
            match serde_json::from_str::<PendingApproval>(&body.map_err(failed())?) {
                // The columns only narrow the search; the entry itself decides.
                Ok(entry) if filter.fits(&entry) => found.push(entry),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(place = %self.path.display(), %error, "a row of the index of suspended runs cannot be read and is skipped");
                }
            }
        }
        Ok(found)
    }
}

fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}

impl PoolIndex for SqlitePoolIndex {
    fn put<'a>(
        &'a self,
        run: &'a RunId,
        waiting: Vec<PendingApproval>,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        let (database, run) = (self.0.clone(), run.clone());
        Box::pin(async move { blocking(move || database.put(&run, &waiting)).await })
    }

    fn find<'a>(
        &'a self,
        filter: &'a PoolFilter,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, JournalError>> {
        let (database, filter) = (self.0.clone(), filter.clone());
        Box::pin(async move { blocking(move || database.find(&filter)).await })
    }
}
