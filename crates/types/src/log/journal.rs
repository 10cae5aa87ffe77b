//! Journals, which store the logs of runs. A run has one writer at a time and any number of readers.

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

/// Stores the logs of runs.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{
///     BoxFuture, Inbox, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter, RunHead, RunId,
/// };
///
/// /// Refuses new runs, for instance before a restart. The methods with a default should be passed on too.
/// struct Closing(Arc<dyn Journal>);
///
/// impl Journal for Closing {
///     fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
///         if mode == OpenMode::Create {
///             let closed = JournalError::Unsupported { action: "start runs before the restart" };
///             return Box::pin(std::future::ready(Err(closed)));
///         }
///         self.0.open(run, mode)
///     }
///
///     fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
///         self.0.read(run)
///     }
///
///     fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
///         self.0.list(filter)
///     }
///
///     fn inbox(&self) -> Option<Arc<dyn Inbox>> {
///         self.0.inbox()
///     }
/// }
/// ```
pub trait Journal: Send + Sync {
    /// Opens a run for writing: takes its writer lock and reads its log.
    ///
    /// An incomplete record at the end of the log, which a crash left, is dropped.
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>>;

    /// Reads a log without taking its lock, so newer records may exist when this returns.
    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>>;

    /// Reads the intact part of a log: all records before the damage, or the whole log.
    ///
    /// Default: reads the whole log or fails, for journals that cannot tell at which record a log is damaged.
    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move { Ok(Salvaged { records: self.read(run).await?, ..Salvaged::default() }) })
    }

    /// Reads the last `most` records of a log, or the last `most` before the record with the sequence number
    /// `before`.
    ///
    /// Default: reads the whole log. A journal may read only the requested records, and media without their data. The
    /// journal then does not notice damage of other records. Watchers of a run read the log in pages through this
    /// function.
    fn read_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move { Ok(self.salvage(run).await?.before(before, most)) })
    }

    /// Returns the runs that match a filter, the last written run first. [`RunHead::problem`] is set for a
    /// log that cannot be read.
    ///
    /// For a filter with a session, with [`RunStatus::Suspended`] as its only status, or with a limit, the cost of
    /// this call must grow with the number of returned runs, not with the number of stored runs.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>>;

    /// Returns the head of one run, as in the list of runs.
    ///
    /// Default: reads the whole log. If the run has neither ended nor been suspended, also lists the runs of
    /// its session, because only the list shows if a process works on the run. A journal may read only the
    /// first and last records; damage between them is then not noticed. A log that cannot be read at all is
    /// an error, as in [`salvage`](Self::salvage).
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

    /// Deletes a run and everything that is stored for it. A damaged run can be deleted too.
    ///
    /// A run cannot be deleted while a process writes to it ([`JournalError::Locked`]) or while other runs
    /// need it ([`JournalError::Needed`]): a run that continues this run reads its records, and a run whose
    /// call started this run needs its outcome until the call ends. If such a run is created during the
    /// deletion, the deletion may miss it.
    ///
    /// Default: [`JournalError::Unsupported`].
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        let _ = run;
        Box::pin(std::future::ready(Err(JournalError::Unsupported { action: "delete runs" })))
    }

    /// Returns the inbox for messages to this journal's runs. Default: `None`.
    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        None
    }
}

/// Reads the log of a run; `None` if the run does not exist.
pub(crate) async fn read_if_exists(
    journal: &dyn Journal,
    run: &RunId,
) -> Result<Option<Vec<Arc<Record>>>, JournalError> {
    match journal.read(run).await {
        Err(JournalError::UnknownRun { .. }) => Ok(None),
        records => records.map(Some),
    }
}

/// The readable part of a log: its records up to the first damaged one.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// The records before the damage; all records if there is no damage.
    pub records: Vec<Arc<Record>>,
    /// The damage; `None` if the log is intact.
    pub damage: Option<JournalError>,
    /// The size in bytes of an incomplete last line, which does not count as damage. 0 if there is none, and
    /// for journals that drop the line themselves.
    pub torn_bytes: u64,
}

impl Salvaged {
    /// Returns all records of a log without damage.
    ///
    /// # Errors
    /// The damage of the log.
    pub fn whole(self) -> Result<Vec<Arc<Record>>, JournalError> {
        self.damage.map_or(Ok(self.records), Err)
    }

    /// Returns the first `count` records, or all records if the log has fewer.
    ///
    /// # Errors
    /// The damage of the log, if fewer than `count` records are intact.
    pub fn first(mut self, count: u64) -> Result<Vec<Arc<Record>>, JournalError> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if self.records.len() < count {
            return self.whole();
        }
        self.records.truncate(count);
        Ok(self.records)
    }

    /// Returns the last `most` records, or the last `most` before the record with the sequence number
    /// `before`. If the record `before` is intact, the result has no damage, because the damage comes after
    /// it.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_types::{Record, Salvaged};
    ///
    /// fn newest(log: Salvaged) -> Vec<Arc<Record>> {
    ///     log.before(None, 100).records
    /// }
    /// ```
    pub fn before(mut self, before: Option<u64>, most: usize) -> Self {
        let end = before
            .map_or(self.records.len(), |before| self.records.partition_point(|record| record.seq < before));
        if end < self.records.len() {
            self.records.truncate(end);
            self.damage = None;
        }
        self.records = self.records.split_off(end.saturating_sub(most));
        self
    }
}

/// Appends records to the log of one run. Dropping the writer releases the writer lock of the run.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, Durability, JournalError, Record, RunWriter};
///
/// /// Keeps records in memory.
/// struct Kept(Vec<Arc<Record>>);
///
/// impl RunWriter for Kept {
///     fn append<'a>(
///         &'a mut self,
///         records: &'a [Arc<Record>],
///         _durability: Durability,
///     ) -> BoxFuture<'a, Result<(), JournalError>> {
///         self.0.extend_from_slice(records);
///         Box::pin(std::future::ready(Ok(())))
///     }
/// }
/// ```
pub trait RunWriter: Send {
    /// Appends records in order. Once this returns, records that are [`Durability::Synced`] survive a power
    /// failure.
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>>;
}

/// The mode in which a run is opened.
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
    /// Returns true if the log has a message to the agent, so the agent has work to do.
    pub fn is_asked(&self) -> bool {
        self.records.iter().any(|record| matches!(record.body, RecordBody::MessageAdded { .. }))
    }
}

impl std::fmt::Debug for OpenRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenRun").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

/// The durability of appended records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The records were handed to the operating system and survive the end of the process.
    Buffered,
    /// The records are on the storage medium and survive a power failure.
    Synced,
}
