//! The lock of a run's writer: advisory, exclusive, and released when its process ends.
//!
//! The lock is on a file next to the log, because on some systems a lock keeps readers out of the locked
//! file, and the log of a running run must stay readable.
//!
//! If the log is a file, its writer writes two values into the lock file: the minimum length of the log, and
//! the id of the system's boot. It removes the lock file when it closes normally. So after a crash, readers
//! detect that the log lost its end, and can tell the death of a process from a power cut.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use archon_types::{JournalError, RunId};

use crate::files::{Identity, create_directory, private, read_file, storage};

/// The default maximum time to wait for a lock that another process holds. After a process was killed, its
/// child processes may still hold its lock for a moment, between `fork` and `exec`.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// The lock of one run, held while a writer exists; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct RunLock {
    path: PathBuf,
    identity: Identity,
    #[cfg_attr(not(feature = "jsonl"), expect(dead_code, reason = "the lock ends with the file"))]
    file: File,
    /// The id of the current boot of the system; empty on systems without such an id.
    boot: String,
    /// The synced length of the log that a killed writer left in the lock file; 0 if there was none.
    noted: u64,
    /// True if there is a noted length that the log was not checked against yet. Then the lock file is not
    /// removed.
    has_note: bool,
}

/// The note of a writer in the lock file. It exists while the writer runs, and after it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The length of the log in bytes that was synced; 0 if the writer has synced nothing.
    pub(crate) synced: u64,
    /// True if the system was not rebooted since the note was written: then no written byte is lost, even if it
    /// was not synced.
    pub(crate) is_of_this_boot: bool,
}

impl RunLock {
    /// Takes the lock of `run`, which is the file `{run}.lock` in `directory`. Fails with
    /// [`JournalError::Locked`] if another writer holds the lock until `wait` returns false.
    pub(crate) fn take(directory: &Path, run: &RunId, wait: &mut Wait<'_>) -> Result<Self, JournalError> {
        create_directory(directory)?;
        let path = &directory.join(format!("{run}.lock"));
        loop {
            let file = open(path).map_err(storage("create", path))?;
            lock(&file, path, run, wait)?;
            let identity = Identity::of(&file.metadata().map_err(storage("lock", path))?);
            if identity.is_at(path) {
                let noted = note(directory, run).map_or(0, |note| note.synced);
                let (boot, has_note) = (boot(), noted > 0);
                return Ok(Self { path: path.clone(), identity, file, boot, noted, has_note });
            }
            // The holder before us removed the file between our open and our lock. A lock on a file without
            // a name protects nothing, so the file that has the name now is locked instead.
        }
    }

    /// Checks that the lock still keeps other writers out: the lock file may have been removed.
    pub(crate) fn check(&self, run: &RunId) -> Result<(), JournalError> {
        if self.identity.is_at(&self.path) {
            return Ok(());
        }
        Err(lost_writer(run, format!("its lock {} was removed or replaced", self.path.display())))
    }

    /// Writes into the lock file that `bytes` bytes of the log are synced. A failure is ignored; the only
    /// consequence is that a log that loses its end in a crash may go unnoticed.
    #[cfg(feature = "jsonl")]
    pub(crate) fn note(&self, bytes: u64) {
        use std::io::{Seek as _, SeekFrom, Write as _};
        let mut file = &self.file;
        // The text always has the same length, so that it never mixes an old number with a new one.
        let text = format!("{bytes:020} {}", self.boot);
        let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(text.as_bytes()));
    }

    /// Accepts the log after the caller has checked it against the note of the killed writer. Replaces that
    /// note by one of this writer, and lets the lock file be removed at the end.
    #[cfg(feature = "jsonl")]
    pub(crate) fn accept(&mut self) {
        self.has_note = false;
        self.note(self.noted);
    }
}

/// Returns the note of the writer of `run`.
pub(crate) fn note(directory: &Path, run: &RunId) -> Option<Note> {
    let text = read_file(&directory.join(format!("{run}.lock"))).ok()?;
    let (synced, written_in) = std::str::from_utf8(&text).ok()?.split_once(' ')?;
    let is_of_this_boot = !written_in.is_empty() && written_in == boot();
    Some(Note { synced: synced.parse().ok()?, is_of_this_boot })
}

/// Returns the id of the current boot of the system; empty on systems without such an id.
fn boot() -> String {
    let id = if cfg!(target_os = "linux") {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
    } else {
        None
    };
    id.unwrap_or_default().trim().to_owned()
}

/// Returns true if a process holds the lock of `run` in `directory`. During the check no process can take
/// the lock.
pub(crate) fn is_held(directory: &Path, run: &RunId) -> bool {
    let lock = File::open(directory.join(format!("{run}.lock")));
    lock.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// A callback for an attempt that failed: it waits and returns true, or returns false when the maximum time
/// is over.
pub(crate) type Wait<'a> = dyn FnMut() -> bool + 'a;

/// Returns a [`Wait`] with a maximum total time of `in_all`.
pub(crate) fn patience(in_all: Duration) -> impl FnMut() -> bool {
    let mut remaining = in_all;
    move || {
        let pause = remaining.min(PAUSE);
        std::thread::sleep(pause);
        remaining -= pause;
        !pause.is_zero()
    }
}

/// Locks an open file exclusively for this process.
pub(crate) fn lock(file: &File, path: &Path, run: &RunId, wait: &mut Wait<'_>) -> Result<(), JournalError> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if wait() => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked { run: run.clone() }),
            Err(TryLockError::Error(e)) => return Err(storage("lock", path)(e)),
        }
    }
}

/// Returns the error for a writer whose log or lock file another program removed, replaced or changed.
pub(crate) fn lost_writer(run: &RunId, problem: String) -> JournalError {
    JournalError::Taken { run: run.clone(), problem }
}

/// Waits for the lock at `path` and holds it until the returned file is dropped. The file is not removed.
#[cfg(feature = "sqlite")]
pub(crate) fn wait(path: &Path) -> Result<File, JournalError> {
    let file = open(path).map_err(storage("create", path))?;
    file.lock().map_err(storage("lock", path))?;
    Ok(file)
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Removed while it is still locked, so that nobody can hold a lock on a removed file. On systems
        // where files have no [`Identity`], the empty file stays.
        if cfg!(unix) && !self.has_note {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    private().write(true).create(true).truncate(false).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_of_a_lock_that_is_released_during_the_wait_succeeds() {
        let (dir, run) = (tempfile::tempdir().unwrap(), RunId::new("r"));
        let mut held = Some(RunLock::take(dir.path(), &run, &mut || false).unwrap());
        let mut waits = 0;
        let taken = RunLock::take(dir.path(), &run, &mut || {
            waits += 1;
            if waits == 3 {
                held = None;
            }
            waits < 9
        });
        taken.unwrap();
        assert_eq!(waits, 3);
    }

    #[test]
    fn take_of_a_lock_that_is_held_gives_up_after_its_patience() {
        let (dir, run) = (tempfile::tempdir().unwrap(), RunId::new("r"));
        let _held = RunLock::take(dir.path(), &run, &mut || false).unwrap();
        let mut waits = 0;
        let refused = RunLock::take(dir.path(), &run, &mut || {
            waits += 1;
            waits < 5
        });
        assert!(matches!(refused, Err(JournalError::Locked { .. })), "{refused:?}");
        assert_eq!(waits, 5);
        assert!(!patience(Duration::ZERO)(), "no patience is no second try");
    }
}
