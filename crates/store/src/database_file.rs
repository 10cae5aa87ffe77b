//! Creates and opens the file of an SQLite database.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    sync::{Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

/// Lets one thread at a time create a database file. When any handle to a file is closed, POSIX drops all
/// locks that the process has on that file. So no other thread may find the file and let SQLite lock it
/// before the handle that created the file is closed. These locks belong to the process, so the whole
/// process has one mutex.
static CREATING: Mutex<()> = Mutex::new(());

/// Opens the file. A database of another program may have triggers and views; both are disabled, since the
/// statements of this crate need none.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
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
