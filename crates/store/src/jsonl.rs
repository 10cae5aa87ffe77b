//! The journal that keeps each run in its own file, and that survives crashes and power cuts.
//!
//! | file | holds |
//! |---|---|
//! | `{dir}/runs/{run}.jsonl` | the log, one line per record, as [`line`](crate::line) says |
//! | `{dir}/runs/{run}.blobs/{sha256}` | the body of a large record or the data of a medium, as [`blob`](crate::blob) says |
//! | `{dir}/runs/{run}.inbox/{id}.json` | a message to the run, until its writer has moved it into the log |
//! | `{dir}/runs/{run}.lock` | the minimum length of the log; the run's writer locks and removes the file |
//! | `{dir}/index/` | the index that makes lists cheap, as [`index`] says |
//!
//! - **A crash** can only cut off the end. [`log`] drops a torn last line when the run is opened; any other
//!   damage is an error that names the record, and the file is not changed.
//! - **A full disk** leaves the log as it was before the append; see [`writer`].
//! - **Two writers** are kept apart by an advisory lock that ends with its process; see
//!   [`lock`](crate::lock).

mod blobs;
mod delete;
mod heads;
mod inbox;
mod index;
mod lines;
mod log;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use archon_types::{
    BoxFuture, Inbox, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter, RunHead, RunId, Salvaged,
};

use crate::{
    blocking::blocking,
    doorbell::Doorbell,
    files::create_directory,
    inbox_key::InboxKey,
    lock::{PATIENCE, patience},
    rules::check_id,
    skipped::Skipped,
};
use blobs::BlobFiles;

/// A journal that keeps each run in a file in one directory. Clones share the directory.
///
/// ```
/// use std::time::Duration;
///
/// use archon_store::{InboxKey, JsonlJournal};
///
/// let journal = JsonlJournal::new("data")
///     .with_inbox_key(InboxKey::in_file("keys/inbox"))
///     .with_lock_wait(Duration::from_secs(1));
/// ```
#[derive(Clone, Debug)]
pub struct JsonlJournal {
    runs: PathBuf,
    bell: Doorbell,
    inbox_key: Option<InboxKey>,
    skipped: Skipped,
    lock_wait: Duration,
}

impl JsonlJournal {
    /// Uses the journal in `dir`. Nothing is created before the first run.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self {
            runs: dir.as_ref().join("runs"),
            bell: Doorbell::default(),
            inbox_key: None,
            skipped: Skipped::default(),
            lock_wait: PATIENCE,
        }
    }

    /// Opens the journal in `dir` and creates the directory if it does not exist, so that an unusable
    /// directory is reported before any work is done.
    ///
    /// # Errors
    /// [`JournalError::Storage`] if the directory cannot be created.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, JournalError> {
        let journal = Self::new(dir);
        create_directory(&journal.runs)?;
        Ok(journal)
    }

    /// Sets the key that seals messages to runs. The journal then accepts only messages with its seal: a
    /// file that a program without the key puts into an inbox, such as an answer in a person's name, is
    /// skipped with a warning. The logs themselves are not sealed, so a program that can write to them can
    /// change their records.
    pub fn with_inbox_key(mut self, key: InboxKey) -> Self {
        self.inbox_key = Some(key);
        self
    }

    /// Sets the maximum time to wait for the lock of a run, before the error that another writer uses the
    /// run. Default 200 ms.
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Returns the path of a run's log, even if it does not exist.
    ///
    /// # Errors
    /// [`JournalError::BadId`] if the id cannot be a file name.
    pub fn path(&self, run: &RunId) -> Result<PathBuf, JournalError> {
        self.files(run).map(|files| files.log)
    }

    fn files(&self, run: &RunId) -> Result<RunFiles, JournalError> {
        check_id(run)?;
        Ok(RunFiles::new(&self.runs, run.clone()))
    }
}

impl JsonlJournal {
    /// Runs `work` on a thread that may block, with the files of a run.
    async fn work<T: Send + 'static>(
        &self,
        run: &RunId,
        work: impl FnOnce(RunFiles) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let files = self.files(run)?;
        blocking(move || work(files)).await
    }
}

impl Journal for JsonlJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        let wait = self.lock_wait;
        Box::pin(self.work(run, move |files| writer::open(files, mode, &mut patience(wait))))
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move { self.salvage(run).await?.whole() })
    }

    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(self.work(run, |files| log::read(&files)))
    }

    /// Parses only the requested records, which it finds by their numbers, and the first record of the log.
    fn read_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(self.work(run, move |files| log::read_before(&files, before, most)))
    }

    /// Reads the first and the last records of each log only, so damage between them is not seen.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        let (runs, filter) = (self.runs.clone(), filter.clone());
        Box::pin(blocking(move || heads::list(&runs, &filter)))
    }

    /// Reads the beginning and the end of the log only, so damage between them is not seen.
    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        Box::pin(self.work(run, |files| heads::find(&files)))
    }

    /// Removes a run. Reads the first record of every log of the session, to check that no run continues this
    /// one. A log that was copied into the folder by hand is checked only after the next list of all runs.
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        let wait = self.lock_wait;
        Box::pin(self.work(run, move |files| delete::delete(&files, &mut patience(wait))))
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.clone()))
    }
}

/// The files of one run.
#[derive(Clone, Debug)]
struct RunFiles {
    run: RunId,
    log: PathBuf,
    blobs: BlobFiles,
    inbox: PathBuf,
    runs: PathBuf,
}

impl RunFiles {
    fn new(runs: &Path, run: RunId) -> Self {
        Self {
            log: runs.join(format!("{run}.jsonl")),
            blobs: BlobFiles(runs.join(format!("{run}.blobs"))),
            inbox: runs.join(format!("{run}.inbox")),
            runs: runs.to_owned(),
            run,
        }
    }
}
