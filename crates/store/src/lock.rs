//! The lock of a run's writer: advisory, exclusive, and gone with the process that holds it.
//!
//! It is taken on a file beside the log because on some systems a lock keeps readers out of the
//! locked file, and reading a running log is allowed.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use archon_types::{JournalError, RunId};

use crate::files::{create_directory, storage};

/// Held while somebody writes to a run; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct RunLock {
    path: PathBuf,
    _file: File,
}

impl RunLock {
    /// Takes the lock of `run`, which is the file `{run}.lock` in `directory`, or says that it is
    /// taken; never waits.
    pub(crate) fn take(directory: &Path, run: &RunId) -> Result<Self, JournalError> {
        create_directory(directory)?;
        let path = &directory.join(format!("{run}.lock"));
        loop {
            let file = open(path).map_err(storage("create", path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(JournalError::Locked { run: run.clone() });
                }
                Err(TryLockError::Error(e)) => return Err(storage("lock", path)(e)),
            }
            if is_at(&file, path) {
                return Ok(Self { path: path.clone(), _file: file });
            }
            // The holder before us removed the file between our open and our lock. A lock on a file
            // without a name keeps nobody out: take it on the file that has the name now.
        }
    }
}

/// Waits until nobody else holds the lock at `path`, and takes it until the file is dropped. The file
/// stays.
#[cfg(feature = "sqlite")]
pub(crate) fn wait(path: &Path) -> Result<File, JournalError> {
    let file = open(path).map_err(storage("create", path))?;
    file.lock().map_err(storage("lock", path))?;
    Ok(file)
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Removed while it is still locked, so nobody can hold a lock on what is removed. Where files
        // cannot be told apart (see `is_at`) the empty file stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether `path` still names this very file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}
