//! The lock of a run's writer: advisory, exclusive, and gone with the process that holds it.
//!
//! It is taken on a file beside the log because on some systems a lock keeps readers out of the
//! locked file, and reading a running log is allowed.
//!
//! The writer of a file's log notes in it how much of the log has to be there. A writer that ends in order removes the
//! lock's file. So after a crash, and only then, a log that has become shorter is told from one that never was longer.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use archon_types::{JournalError, RunId};

use crate::files::{Identity, create_directory, read_file, storage};

/// How long a lock that is taken is tried again, unless a journal is told otherwise. The children of a process
/// that was killed may hold its lock until they have begun their own program.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Held while somebody writes to a run; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct RunLock {
    path: PathBuf,
    identity: Identity,
    #[cfg_attr(
        not(feature = "jsonl"),
        expect(dead_code, reason = "the lock lasts as long as the file is open")
    )]
    file: File,
    /// Whether it holds a note of a writer before, whose log was not looked at yet.
    has_note: bool,
}

impl RunLock {
    /// Takes the lock of `run`, which is the file `{run}.lock` in `directory`, or says that it is
    /// taken when `wait` says that there was enough waiting.
    pub(crate) fn take(directory: &Path, run: &RunId, wait: &mut Wait<'_>) -> Result<Self, JournalError> {
        create_directory(directory)?;
        let path = &directory.join(format!("{run}.lock"));
        loop {
            let file = open(path).map_err(storage("create", path))?;
            lock(&file, path, run, wait)?;
            let identity = Identity::of(&file.metadata().map_err(storage("lock", path))?);
            if identity.is_at(path) {
                let has_note = note(directory, run).is_some();
                return Ok(Self { path: path.clone(), identity, file, has_note });
            }
            // The holder before us removed the file between our open and our lock. A lock on a file
            // without a name keeps nobody out: take it on the file that has the name now.
        }
    }

    /// Makes sure that the lock still keeps others out: somebody may have removed its file.
    pub(crate) fn check(&self, run: &RunId) -> Result<(), JournalError> {
        match self.identity.is_at(&self.path) {
            true => Ok(()),
            false => {
                Err(lost_writer(run, format!("its lock {} was removed or replaced", self.path.display())))
            }
        }
    }
}

impl RunLock {
    /// Notes that so many bytes of the log are on the medium. A note that cannot be written is one that is missing.
    #[cfg(feature = "jsonl")]
    pub(crate) fn note(&self, bytes: u64) {
        use std::io::{Seek as _, SeekFrom, Write as _};
        let mut file = &self.file;
        // Always as long as the note before, so that none is half of two.
        let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(format!("{bytes:020}").as_bytes()));
    }

    /// The log is as long as the note says, or is gone with its run: the note is needed no more.
    #[cfg(feature = "jsonl")]
    pub(crate) fn accept(&mut self) {
        self.has_note = false;
    }
}

/// How many bytes of its log the writer of `run` noted in the lock, if it works or was killed.
pub(crate) fn note(directory: &Path, run: &RunId) -> Option<u64> {
    let text = read_file(&directory.join(format!("{run}.lock"))).ok()?;
    std::str::from_utf8(&text).ok()?.parse().ok().filter(|bytes| *bytes > 0)
}

/// Whether somebody holds the lock of `run` in `directory`. For the moment of the look nobody can take it.
pub(crate) fn is_held(directory: &Path, run: &RunId) -> bool {
    let lock = File::open(directory.join(format!("{run}.lock")));
    lock.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Waits a little before another try and says true, or says false when it is enough.
pub(crate) type Wait<'a> = dyn FnMut() -> bool + 'a;

/// Waits for so long in all.
pub(crate) fn patience(in_all: Duration) -> impl FnMut() -> bool {
    let mut left = in_all;
    move || {
        let pause = left.min(PAUSE);
        std::thread::sleep(pause);
        left -= pause;
        !pause.is_zero()
    }
}

/// Locks an open file for this process alone.
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

/// Somebody took the log or its lock from the run's writer.
pub(crate) fn lost_writer(run: &RunId, problem: String) -> JournalError {
    JournalError::Taken { run: run.clone(), problem }
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
        // cannot be told apart (see [`Identity`]) the empty file stays.
        if cfg!(unix) && !self.has_note {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_of_a_lock_that_is_given_back_meanwhile_succeeds() {
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
