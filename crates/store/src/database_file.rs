//! Creates and opens the file of an SQLite database.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

/// Lets one thread at a time create a database file. When any handle to a file is closed, POSIX drops all
/// locks that the process has on that file. So no other thread may let SQLite lock the file before the handle
/// that created the file is closed.
static CREATING: Mutex<()> = Mutex::new(());

/// The longest time to wait for another process's transaction. They take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Opens the file. A database that somebody else made may have triggers and views; they are disabled, and
/// our statements need none.
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
