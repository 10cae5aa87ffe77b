//! Journals keep the logs of runs. A run has one writer at a time and any number of readers.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::values::RunId;

use super::{
    inbox::Inbox,
    journal_error::JournalError,
    record::{Record, RecordBody},
    run_filter::RunFilter,
    run_head::RunHead,
    run_status::RunStatus,
};

/// Keeps the logs of runs.
pub trait Journal: Send + Sync {
    /// Opens a run for writing: takes its writer lock and reads its log.
    ///
    /// A record at the end of the log that a crash cut off is dropped.
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>>;

    /// Reads a log without the lock, so newer records may exist when this returns.
    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>>;

    /// Reads the intact part of a log: every record before the damage, if there is any.
    ///
    /// Default: reads the whole log or fails, for journals that cannot tell where a log is damaged.
    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move { Ok(Salvaged { records: self.read(run).await?, ..Salvaged::default() }) })
    }

    /// Returns the runs that match a filter, the last written first. Logs that cannot be read are listed with
    /// a `problem`.
    ///
    /// For a filter with a session, with [`RunStatus::Suspended`] alone or with a limit, the cost must grow
    /// with the result, not with the number of runs.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>>;

    /// Returns the head of one run, as in a list.
    ///
    /// Default: reads the whole log, and lists the runs of the session to learn if a process works on the
    /// run. A journal may read the first and last records only; damage between them is not noticed then. A
    /// log that cannot be read at all is an error, as in [`salvage`](Self::salvage).
    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        Box::pin(async move {
            let salvaged = self.salvage(run).await?;
            let head = RunHead::of(run.clone(), &salvaged.records);
            if let Some(damage) = salvaged.damage {
                return Ok(head.damaged(format!("{damage}; {}", damage.advice())));
            }
            let rests = head.status.has_ended() || head.status == RunStatus::Suspended;
            let Some(session) = head.session.clone().filter(|_| !rests) else { return Ok(head) };
            let mut filter = RunFilter::of_session(session);
            filter.tenant.clone_from(&head.tenant);
            let listed = self.list(&filter).await.unwrap_or_default();
            Ok(listed.into_iter().find(|listed| listed.run_id == head.run_id).unwrap_or(head))
        })
    }

    /// Deletes a run and everything kept for it. A damaged run can be deleted too.
    ///
    /// A run cannot be deleted while a process writes to it ([`JournalError::Locked`]) or while other runs
    /// need it ([`JournalError::Needed`]): runs that continue it read its records, and a run whose unfinished
    /// call started it needs its outcome. A run that is created during this check may be missed.
    ///
    /// Default: [`JournalError::Unsupported`].
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        let _ = run;
        Box::pin(std::future::ready(Err(JournalError::Unsupported { action: "delete runs" })))
    }

    /// Returns the inbox for messages to this journal's runs; default: none.
    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        None
    }
}

/// The readable part of a log.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// The records before the damage; all of them if there is none.
    pub records: Vec<Arc<Record>>,
    /// The damage, if any.
    pub damage: Option<JournalError>,
    /// The bytes of an incomplete last line, which do not count as damage; 0 if there is none, and for
    /// journals that cut it off themselves.
    pub torn_bytes: u64,
}

impl Salvaged {
    /// Returns all records of a log without damage.
    ///
    /// # Errors
    /// The damage.
    pub fn whole(self) -> Result<Vec<Arc<Record>>, JournalError> {
        self.damage.map_or(Ok(self.records), Err)
    }

    /// Returns the first `count` records, or all if there are fewer.
    ///
    /// # Errors
    /// The damage, if it is among them.
    pub fn first(mut self, count: u64) -> Result<Vec<Arc<Record>>, JournalError> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if self.records.len() < count {
            return self.whole();
        }
        self.records.truncate(count);
        Ok(self.records)
    }
}

/// Appends to one run's log. Dropping it releases the lock.
pub trait RunWriter: Send {
    /// Appends records in order. With [`Durability::Synced`] they survive a power failure once this returns.
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>>;
}

/// The way in which a run is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Creates the run, which must not exist.
    Create,
    /// Opens a run, which must exist.
    Existing,
}

/// A run that was opened for writing.
pub struct OpenRun {
    /// The records of the log; empty for a new run.
    pub records: Vec<Arc<Record>>,
    /// The writer that appends to the log.
    pub writer: Box<dyn RunWriter>,
}

impl OpenRun {
    /// Returns true if the log has a prompt.
    pub fn is_asked(&self) -> bool {
        self.records.iter().any(|record| matches!(record.body, RecordBody::MessageAdded { .. }))
    }
}

impl std::fmt::Debug for OpenRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenRun").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

/// The safety that appended records need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Handed to the operating system: survives the end of the process.
    Buffered,
    /// On the storage medium: survives a power failure.
    Synced,
}
