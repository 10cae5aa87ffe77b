//! Creates and opens the file of an SQLite database, and its tables.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, config::DbConfig};

/// Lets one thread at a time create a database file. When any handle to a file is closed, POSIX drops all
/// locks that the process has on that file. So no other thread may let SQLite lock the file before the handle
/// that created the file is closed.
static CREATING: Mutex<()> = Mutex::new(());

/// The longest time to wait for another process's transaction. Transactions take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Opens the database file at `path`. Triggers and views are disabled: our statements need none, and a
/// database that somebody else made may have harmful ones.
pub(crate) fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // The borrow checker sees to it that only one thread at a time uses a connection.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(connection)
}

/// Creates an empty file, and its folder if that does not exist, both for their owner only. SQLite gives its
/// other files the same mode.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(parent)?;
    }
    let _turn = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path).map(drop) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Returns the version of the tables; 0 for a file without tables, and `None` for the database of another
/// program, which has another application id.
pub(crate) fn version(connection: &Connection, application: i32) -> rusqlite::Result<Option<u32>> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok(match number("PRAGMA application_id")? {
        found if found == i64::from(application) => {
            let version = number("SELECT max(version) FROM schema_version")?;
            Some(u32::try_from(version).unwrap_or(u32::MAX))
        }
        // A new file: without tables, and without another program's version number.
        0 if number("SELECT count(*) FROM sqlite_schema")? == 0 && number("PRAGMA user_version")? == 0 => {
            Some(0)
        }
        _ => None,
    })
}

pub(crate) fn foreign_database() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is the database of another program")
}

/// Creates or upgrades the tables of a database of version `found`. Statement `n` upgrades to version
/// `first + n`.
pub(crate) fn upgrade(
    transaction: &Transaction<'_>,
    application: i32,
    found: u32,
    first: u32,
    migrations: &[&str],
) -> rusqlite::Result<()> {
    if found == 0 {
        transaction.pragma_update(None, "application_id", application)?;
        transaction.execute_batch("CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT")?;
    }
    for (version, migration) in (first..).zip(migrations).filter(|(version, _)| *version > found) {
        transaction.execute_batch(migration)?;
        transaction.execute("INSERT INTO schema_version VALUES (?1)", [version])?;
    }
    Ok(())
}

/// The time between two attempts to change the journal mode. Another process that creates the tables needs
/// about this time.
const PAUSE: Duration = Duration::from_millis(5);

/// Switches to the write-ahead log. The switch needs a read lock and then a write lock, so SQLite fails at once
/// instead of waiting, to avoid a deadlock. So if the database is busy, this function tries again after a pause
/// without a lock. The inner result is an error if the file system has no write-ahead logging.
pub(crate) fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<io::Result<()>> {
    let refused = |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
    let start = Instant::now();
    let mode = loop {
        match write_ahead_log(connection) {
            Err(error) if refused(&error) && start.elapsed() < PATIENCE => thread::sleep(PAUSE),
            mode => break mode?,
        }
    };
    let problem = || format!("its file system has no write-ahead logging, only {mode}");
    Ok(if mode == "wal" { Ok(()) } else { Err(io::Error::new(io::ErrorKind::Unsupported, problem())) })
}

/// Requests the write-ahead log and returns the journal mode that is then set.
fn write_ahead_log(connection: &Connection) -> rusqlite::Result<String> {
    let ask = |sql| connection.query_row(sql, [], |row| row.get(0));
    // Only switching takes a lock, so the mode is read first.
    let mode: String = ask("PRAGMA journal_mode")?;
    if mode == "wal" { Ok(mode) } else { ask("PRAGMA journal_mode = WAL") }
}
