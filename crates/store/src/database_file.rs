//! The file of a database of SQLite, before SQLite has it.

use std::{
    fs::OpenOptions,
    io,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// One at a time: with any handle to a file that is closed, POSIX drops all locks that the process has on it. So
/// nobody here may take the file for made, and have SQLite lock it, before the handle that made it is gone. These locks
/// belong to the process, so there is one mutex for all of it.
static CREATING: Mutex<()> = Mutex::new(());

/// Makes the file, empty and for its owner alone, where there is none. SQLite gives those beside it the same mode.
pub(crate) fn create(path: &Path) -> io::Result<()> {
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
