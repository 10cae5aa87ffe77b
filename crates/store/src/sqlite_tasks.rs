//! Tasks that start runs by themselves, in a SQLite database of their own.
//!
//! A change is synced when the call returns, since an event that a task waits for is stored nowhere else. A row
//! that cannot be read is skipped with a warning.

use std::{
    fmt::Display,
    fs::{OpenOptions, TryLockError},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{
    BoxFuture, Json, StoredTask, StoredTasks, TaskChange, TaskHold, TaskStore, TaskStoreError,
};
use rusqlite::{Connection, OpenFlags, Row, ToSql, Transaction, TransactionBehavior};

use crate::{blocking::blocking_or, database_file};

/// `ARCT`, the application id in the header of the database, so that the database of another program is not opened.
const APPLICATION: i32 = i32::from_be_bytes(*b"ARCT");

const VERSION: u32 = 2;

/// The tables of each version, which are added to those of the version before.
const TABLES: [&str; VERSION as usize] = [
    "CREATE TABLE tasks (
        id         TEXT NOT NULL PRIMARY KEY,
        definition TEXT NOT NULL,
        state      TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;",
    // A number is not used twice: a process may forget a request late.
    "CREATE TABLE requests (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        request TEXT NOT NULL
    ) STRICT;",
];

/// A store of tasks in one SQLite database. Clones share it. Several processes may use it. The one that starts the
/// tasks' runs locks a file beside the database, with the extension `lock`.
///
/// The database must be on a local disk: SQLite's write-ahead log does not work across machines.
///
/// ```no_run
/// let tasks = archon_store::SqliteTaskStore::open("data/tasks.db")?;
/// # Ok::<(), archon_types::TaskStoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteTaskStore(Arc<Database>);

#[derive(Debug)]
struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteTaskStore {
    /// Opens the database at `path`. The database and its directory are created if they do not exist, for their
    /// owner only. The call blocks while it waits for the disk.
    ///
    /// # Errors
    /// The file cannot be opened, is the database of another program, or has a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TaskStoreError> {
        let path = path.as_ref();
        database_file::create(path).map_err(|error| failure("stored", path, error))?;
        let connection = database_file::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let database = Database {
            path: path.to_owned(),
            connection: Mutex::new(connection.map_err(failed("read", path))?),
        };
        // Before anything is changed: the file may be the database of another program.
        database.transaction("read", |transaction| prepare(transaction, path))?;
        database.use_log()?;
        Ok(Self(Arc::new(database)))
    }

    /// Removes the bytes of deleted and replaced rows from the files of the database.
    ///
    /// # Errors
    /// The database cannot be written, or another program reads it.
    pub async fn erase_deleted(&self) -> Result<(), TaskStoreError> {
        self.run(Database::erase_deleted).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, TaskStoreError> + Send + 'static,
    ) -> Result<T, TaskStoreError> {
        let database = self.0.clone();
        let stopped =
            |error| TaskStoreError { action: "stored", problem: format!("the runtime shuts down: {error}") };
        blocking_or(move || work(&database), stopped).await
    }
}

fn prepare(transaction: &Transaction<'_>, path: &Path) -> Result<(), TaskStoreError> {
    let failed = || failed("read", path);
    let number = |sql| transaction.query_row(sql, [], |row| row.get::<_, i32>(0)).map_err(failed());
    let found = match number("PRAGMA application_id")? {
        APPLICATION => u32::try_from(number("PRAGMA user_version")?).unwrap_or(u32::MAX),
        0 if number("SELECT count(*) FROM sqlite_schema")? == 0 => 0,
        _ => return Err(failure("read", path, database_file::foreign_database())),
    };
    if found > VERSION {
        let problem = format!(
            "version {found} of the database is newer than {VERSION}: use the version of Archon that wrote it"
        );
        return Err(failure("read", path, problem));
    }
    if found < VERSION {
        for tables in &TABLES[found as usize..] {
            transaction.execute_batch(tables).map_err(failed())?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed())?;
        transaction.pragma_update(None, "user_version", VERSION).map_err(failed())?;
    }
    Ok(())
}

impl Database {
    fn use_log(&self) -> Result<(), TaskStoreError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        database_file::use_write_ahead_log(&connection)
            .map_err(failed("read", &self.path))?
            .map_err(|error| failure("read", &self.path, error))?;
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
            .map_err(failed("read", &self.path))
    }

    fn transaction<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, TaskStoreError>,
    ) -> Result<T, TaskStoreError> {
        let failed = || failed(action, &self.path);
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed())?;
        let result = work(&transaction)?;
        transaction.commit().map_err(failed())?;
        Ok(result)
    }

    /// Reads the tasks and the requests in one transaction.
    fn list(&self) -> Result<StoredTasks, TaskStoreError> {
        let failed = || failed("read", &self.path);
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction().map_err(failed())?;
        let mut stored = StoredTasks::default();
        let mut statement = transaction
            .prepare_cached("SELECT id, definition, state FROM tasks ORDER BY id")
            .map_err(failed())?;
        let mut rows = statement.query([]).map_err(failed())?;
        let text = |row: &Row<'_>, column| row.get::<_, String>(column).map_err(failed());
        while let Some(row) = rows.next().map_err(failed())? {
            let (id, definition, state) = (text(row, 0)?, text(row, 1)?, text(row, 2)?);
            match (self.parse(&id, &definition), self.parse(&id, &state)) {
                (Some(definition), Some(state)) => stored.tasks.push(StoredTask::new(id, definition, state)),
                _ => continue,
            }
        }
        drop(rows);
        drop(statement);
        let mut statement = transaction
            .prepare_cached("SELECT number, request FROM requests ORDER BY number")
            .map_err(failed())?;
        let mut rows = statement.query([]).map_err(failed())?;
        while let Some(row) = rows.next().map_err(failed())? {
            let number = row.get::<_, i64>(0).map_err(failed())?;
            if let Some(request) = self.parse("of a request", &text(row, 1)?) {
                stored.requests.push((number.unsigned_abs(), request));
            }
        }
        Ok(stored)
    }

    /// Reads JSON; `None` with a warning if it is damaged.
    fn parse(&self, task: &str, text: &str) -> Option<Json> {
        let parsed = serde_json::from_str(text);
        if let Err(error) = &parsed {
            tracing::warn!(place = %self.path.display(), task, %error, "a row cannot be read and is skipped");
        }
        parsed.ok()
    }

    fn change(&self, changes: &[TaskChange]) -> Result<(), TaskStoreError> {
        self.transaction("stored", |transaction| {
            let changed = changes.iter().try_for_each(|change| make(transaction, change));
            changed.map_err(failed("stored", &self.path))
        })
    }

    fn erase_deleted(&self) -> Result<(), TaskStoreError> {
        let failed = || failed("erased", &self.path);
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.execute_batch("VACUUM").map_err(failed())?;
        // The log has the pages from before.
        let is_busy: bool =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(failed())?;
        match is_busy {
            false => Ok(()),
            true => Err(failure("erased", &self.path, "another program reads the database")),
        }
    }

    /// Takes the lock of the file beside the database.
    fn hold(&self) -> Result<Option<TaskHold>, TaskStoreError> {
        let path = self.path.with_extension("lock");
        let failed = |error: std::io::Error| failure("served", &path, error);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(TaskHold::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Returns the number that SQLite increases when another connection changes the database.
    fn version(&self) -> Result<u64, TaskStoreError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let version = connection.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0));
        version.map(i64::unsigned_abs).map_err(failed("read", &self.path))
    }
}

fn make(transaction: &Transaction<'_>, change: &TaskChange) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn ToSql]| transaction.prepare_cached(sql)?.execute(values);
    let changed = match change {
        TaskChange::Create(task) => run(
            "INSERT INTO tasks (id, definition, state) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO NOTHING",
            &[&task.id.as_str(), &task.definition.to_string(), &task.state.to_string()],
        ),
        TaskChange::Define(task) => run(
            "INSERT INTO tasks (id, definition, state) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET definition = ?2",
            &[&task.id.as_str(), &task.definition.to_string(), &task.state.to_string()],
        ),
        TaskChange::SetState { id, state } => {
            run("UPDATE tasks SET state = ?2 WHERE id = ?1", &[&id.as_str(), &state.to_string()])
        }
        TaskChange::Delete(id) => run("DELETE FROM tasks WHERE id = ?1", &[&id.as_str()]),
        TaskChange::Request(request) => {
            run("INSERT INTO requests (request) VALUES (?1)", &[&request.to_string()])
        }
        TaskChange::Forget(number) => run("DELETE FROM requests WHERE number = ?1", &[&number.cast_signed()]),
        _ => Ok(0),
    };
    changed.map(drop)
}

/// Returns a function that turns an SQLite error into an error of the store.
fn failed(action: &'static str, path: &Path) -> impl Fn(rusqlite::Error) -> TaskStoreError {
    move |error| failure(action, path, error)
}

fn failure(action: &'static str, path: &Path, problem: impl Display) -> TaskStoreError {
    TaskStoreError { action, problem: format!("{}: {problem}", path.display()) }
}

impl TaskStore for SqliteTaskStore {
    fn list(&self) -> BoxFuture<'_, Result<StoredTasks, TaskStoreError>> {
        Box::pin(self.run(Database::list))
    }

    fn change(&self, changes: Vec<TaskChange>) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        Box::pin(self.run(move |database| database.change(&changes)))
    }

    fn version(&self) -> BoxFuture<'_, Result<u64, TaskStoreError>> {
        Box::pin(self.run(Database::version))
    }

    fn hold(&self) -> BoxFuture<'_, Result<Option<TaskHold>, TaskStoreError>> {
        Box::pin(self.run(Database::hold))
    }
}
