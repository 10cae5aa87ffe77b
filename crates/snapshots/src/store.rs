//! The folder of the store that belongs to one workspace: its lock, and its small files.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::Write as _,
    os::unix::ffi::OsStrExt as _,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tempfile::NamedTempFile;

use crate::{SnapshotError, SnapshotId, error::store, tree::hash};

/// A snapshot that is kept.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) id: SnapshotId,
    /// The start time of the latest scan that gave this snapshot, in nanoseconds since the Unix epoch.
    pub(crate) began: i64,
    /// The snapshot's share of the size of the store, in bytes. A content that several snapshots need counts once.
    pub(crate) added: u64,
}

/// The folder of one workspace in the store.
pub(crate) struct Store {
    pub(crate) folder: PathBuf,
    workspace: PathBuf,
    /// Held by the thread of this process that works on the workspace.
    threads: Mutex<()>,
}

/// Keeps other processes and threads out of a workspace until it is dropped.
pub(crate) struct Lock<'a> {
    file: File,
    _thread: MutexGuard<'a, ()>,
}

impl Drop for Lock<'_> {
    /// Unlocks the file. Closing it is not enough: a child process that another thread starts at this moment has
    /// the open file, too, until it executes its program.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Time between two attempts to lock a workspace.
const PAUSE: Duration = Duration::from_millis(20);

impl Store {
    /// Opens the folder of a workspace, and creates it if it is missing. Only its owner may access the folder.
    pub(crate) fn open(all: &Path, workspace: &Path) -> Result<Self, SnapshotError> {
        let name = SnapshotId(hash(workspace.as_os_str().as_bytes())).to_string();
        let folder = all.join(name.get(..16).unwrap_or(&name));
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(store(&folder))?;
        let note = folder.join("workspace");
        if !note.exists() {
            // For people who look through the store.
            replace(&note, &[workspace.as_os_str().as_bytes(), b"\n"])?;
        }
        Ok(Self { folder, workspace: workspace.to_owned(), threads: Mutex::new(()) })
    }

    /// Locks the workspace. Waits at most `wait` for another process, and without a limit for another thread of this
    /// process.
    pub(crate) fn lock(&self, mut wait: Duration) -> Result<Lock<'_>, SnapshotError> {
        let thread = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join("lock");
        let file =
            File::options().create(true).truncate(false).write(true).open(&path).map_err(store(&path))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { file, _thread: thread }),
                Err(TryLockError::Error(source)) => return Err(store(&path)(source)),
                Err(TryLockError::WouldBlock) if wait.is_zero() => {
                    return Err(SnapshotError::Busy { workspace: self.workspace.clone() });
                }
                Err(TryLockError::WouldBlock) => {}
            }
            let pause = PAUSE.min(wait);
            thread::sleep(pause);
            wait = wait.saturating_sub(pause);
        }
    }

    /// Returns the snapshots that are kept, the oldest first.
    pub(crate) fn list_kept(&self) -> Vec<Kept> {
        let text = fs::read_to_string(self.folder.join("kept")).unwrap_or_default();
        text.lines().filter_map(Kept::parse).collect()
    }

    pub(crate) fn keep(&self, kept: &[Kept]) -> Result<(), SnapshotError> {
        let text: String =
            kept.iter().map(|kept| format!("{} {} {}\n", kept.id, kept.began, kept.added)).collect();
        replace(&self.folder.join("kept"), &[text.as_bytes()])
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }
}

impl Kept {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(' ');
        let id = parts.next()?.parse().ok()?;
        Some(Self { id, began: parts.next()?.parse().ok()?, added: parts.next()?.parse().ok()? })
    }
}

/// Creates or replaces the file `path` atomically; its content is the parts in order.
pub(crate) fn replace(path: &Path, parts: &[&[u8]]) -> Result<(), SnapshotError> {
    let folder = path.parent().unwrap_or(path);
    let mut file = NamedTempFile::new_in(folder).map_err(store(folder))?;
    for part in parts {
        file.write_all(part).map_err(store(path))?;
    }
    file.persist(path).map_err(|error| store(path)(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::Store;

    #[test]
    fn lock_dropped_while_a_copy_of_its_file_is_open_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Path::new("/workspace")).unwrap();
        let lock = store.lock(Duration::ZERO).unwrap();
        let _copy = lock.file.try_clone().unwrap();
        drop(lock);
        assert!(store.lock(Duration::ZERO).is_ok());
    }
}
