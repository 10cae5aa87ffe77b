//! The journal that keeps each run in a file of its own, built to survive crashes and power cuts.
//!
//! | file | holds |
//! |---|---|
//! | `{dir}/runs/{run}.jsonl` | the log, one line per record, as [`line`] says |
//! | `{dir}/runs/{run}.lock` | nothing; locked by the run's writer |
//!
//! - **A crash** can only cut off the end. [`log`] drops a torn last line when the run is opened;
//!   any other damage is an error that names the record, and nothing is changed.
//! - **A full disk** leaves the log as it was before the append; see [`writer`].
//! - **Two writers** are told apart by an advisory lock that dies with its process; see [`lock`].

mod heads;
mod line;
mod lock;
mod log;
mod writer;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon_types::{BoxFuture, Journal, JournalError, OpenMode, OpenRun, Record, RunHead, RunId};

use crate::{blocking::blocking, rules::check_id};
pub use log::Salvaged;

/// Keeps each run in a file under one directory. Clones share the directory.
#[derive(Clone, Debug)]
pub struct JsonlJournal {
    runs: PathBuf,
}

impl JsonlJournal {
    /// A journal in `dir`. Nothing is created before the first run is.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self { runs: dir.as_ref().join("runs") }
    }

    /// A journal in `dir`, which is made if it is not there, so that a place that cannot be used is
    /// known before there is work to lose.
    ///
    /// # Errors
    /// [`JournalError::Storage`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, JournalError> {
        let journal = Self::new(dir);
        create_directory(&journal.runs)?;
        Ok(journal)
    }

    /// Where a run's log is, whether or not it exists.
    ///
    /// # Errors
    /// [`JournalError::BadId`].
    pub fn path(&self, run: &RunId) -> Result<PathBuf, JournalError> {
        self.files(run).map(|files| files.log)
    }

    /// Reads as much of a damaged log as can be trusted: every record before the damage.
    ///
    /// # Errors
    /// As [`Journal::read`], but for [`JournalError::Corrupt`], which is part of the answer.
    pub async fn salvage(&self, run: &RunId) -> Result<Salvaged, JournalError> {
        let files = self.files(run)?;
        blocking(move || log::read(&files)).await
    }

    /// Removes a run's log.
    ///
    /// # Errors
    /// [`JournalError::UnknownRun`], [`JournalError::Locked`] while somebody writes to it, and
    /// [`JournalError::Storage`].
    pub async fn delete(&self, run: &RunId) -> Result<(), JournalError> {
        let files = self.files(run)?;
        blocking(move || {
            if !files.log.exists() {
                return Err(JournalError::UnknownRun { run: files.run });
            }
            let _lock = lock::RunLock::take(&files)?;
            fs::remove_file(&files.log).map_err(storage("remove", &files.log))?;
            sync_directory(&files.runs)
        })
        .await
    }

    fn files(&self, run: &RunId) -> Result<RunFiles, JournalError> {
        check_id(run)?;
        Ok(RunFiles {
            run: run.clone(),
            log: self.runs.join(format!("{run}.jsonl")),
            lock: self.runs.join(format!("{run}.lock")),
            runs: self.runs.clone(),
        })
    }
}

impl Journal for JsonlJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let files = self.files(run)?;
            blocking(move || writer::open(files, mode)).await
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move {
            let salvaged = self.salvage(run).await?;
            salvaged.damage.map_or(Ok(salvaged.records), Err)
        })
    }

    /// Reads the first and the last records of each log only, so damage between them is not seen.
    fn list(&self) -> BoxFuture<'_, Result<Vec<RunHead>, JournalError>> {
        Box::pin(async move {
            let runs = self.runs.clone();
            blocking(move || heads::list(&runs)).await
        })
    }
}

/// The files of one run.
#[derive(Clone, Debug)]
struct RunFiles {
    run: RunId,
    log: PathBuf,
    lock: PathBuf,
    runs: PathBuf,
}

/// Turns an I/O error into one that says what was done to which file.
fn storage(action: &'static str, place: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let place = place.display().to_string();
    move |source| JournalError::Storage { action, place, source }
}

/// Creates the directory of logs for its owner alone. Directories that exist keep their modes.
fn create_directory(runs: &Path) -> Result<(), JournalError> {
    if runs.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(runs).map_err(storage("create", runs))?;
    runs.parent().map_or(Ok(()), sync_directory)
}

/// Puts the names in a directory on the medium: a synced file whose name is lost is lost.
fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    if cfg!(unix) {
        File::open(directory).and_then(|d| d.sync_all()).map_err(storage("sync", directory))?;
    }
    Ok(())
}
