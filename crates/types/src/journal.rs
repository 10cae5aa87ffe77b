//! Journals keep the logs of runs. A run has one writer at a time and any number of readers.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    AgentMessage, Context, Inbox, Record, RecordBody, RunFilter, RunId, RunKind, RunPlace, RunStatus,
    SessionId, TenantId, Timestamp, not_before,
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
    /// Returns the context for resuming a run: `given`, with the session and the tenant of the run, and a
    /// clock that does not fall behind the end of its log.
    pub fn context(&self, given: &Context) -> Context {
        let mut context = given.clone();
        if let Some(last) = self.records.last() {
            context.clock = not_before(last.at, context.clock);
        }
        if let Some(RecordBody::RunStarted(started)) = self.records.first().map(|record| &record.body) {
            context.session = started.session.clone();
            context.tenant = started.tenant.clone();
        }
        context
    }

    /// Returns true if the log has a prompt.
    pub fn is_asked(&self) -> bool {
        self.records.iter().any(|record| matches!(record.body, RecordBody::Prompted { .. }))
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

/// The head of a run: an entry in a list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunHead {
    /// Returns the id of the run.
    pub run_id: RunId,
    /// The kind of the run; none if the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RunKind>,
    /// The session; none if the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The tenant; none if the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// The run that started it, if it is a child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<RunId>,
    /// The parallel loop of which it is a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_of: Option<RunId>,
    /// The time of the first record.
    pub started_at: Timestamp,
    /// The time of the last record.
    pub updated_at: Timestamp,
    /// The status of the run.
    pub status: RunStatus,
    /// The first prompt, cut to 80 characters.
    #[serde(default)]
    pub task: String,
    /// The reason why the log cannot be read, with advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RunHead {
    /// Creates the head of a log from its records.
    pub fn of(run_id: RunId, records: &[Arc<Record>]) -> Self {
        use crate::Origin;
        let mut head = Self {
            run_id,
            kind: None,
            session: None,
            tenant: None,
            called_by: None,
            branch_of: None,
            started_at: records.first().map_or_else(Timestamp::default, |r| r.at),
            updated_at: records.last().map_or_else(Timestamp::default, |r| r.at),
            status: RunStatus::Running,
            task: String::new(),
            problem: None,
        };
        for record in records {
            match &record.body {
                RecordBody::RunStarted(s) => {
                    head.kind = Some(s.kind);
                    head.session = Some(s.session.clone());
                    head.tenant = Some(s.tenant.clone());
                    head.branch_of.clone_from(&s.parallel);
                    if let Origin::CalledBy { run, .. } = &s.origin {
                        head.called_by = Some(run.clone());
                    }
                }
                RecordBody::Prompted { message, .. } if head.task.is_empty() => {
                    head.task = task(message);
                }
                RecordBody::ParallelStarted { prompts, .. } => {
                    head.task = prompts.first().map(task).unwrap_or_default();
                }
                _ => {}
            }
        }
        if let Some(last) = records.last() {
            head.status = Self::status_after(&last.body);
        }
        head
    }

    /// Returns the status of a run whose last record is this one, as far as its log tells.
    pub fn status_after(last: &RecordBody) -> RunStatus {
        match last {
            RecordBody::RunStarted(_) => RunStatus::Begun,
            RecordBody::Suspended { .. } => RunStatus::Suspended,
            RecordBody::RunFinished(outcome) => outcome.status.into(),
            _ => RunStatus::Running,
        }
    }

    /// Returns the position in a list.
    pub fn place(&self) -> RunPlace {
        RunPlace { updated_at: self.updated_at, run: self.run_id.clone() }
    }

    /// Returns the head for a run whose lock is free: a running run counts as interrupted.
    pub fn not_worked_on(mut self) -> Self {
        if self.status == RunStatus::Running {
            self.status = RunStatus::Interrupted;
        }
        self
    }

    /// Returns the head for a log that is damaged after the records that were read.
    pub fn damaged(mut self, problem: impl Into<String>) -> Self {
        (self.status, self.problem) = (RunStatus::Unreadable, Some(problem.into()));
        self
    }

    /// Creates the head of a log that cannot be read.
    pub fn unreadable(run_id: RunId, problem: impl Into<String>) -> Self {
        Self {
            run_id,
            kind: None,
            session: None,
            tenant: None,
            called_by: None,
            branch_of: None,
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            status: RunStatus::Unreadable,
            task: String::new(),
            problem: Some(problem.into()),
        }
    }
}

fn task(message: &AgentMessage) -> String {
    let text = message.as_llm().map(crate::Message::text).unwrap_or_default();
    text.chars().take(TASK_CHARS).collect()
}

const TASK_CHARS: usize = 80;

/// The error of a journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// No run has this id.
    #[error("no run {run}")]
    UnknownRun {
        /// The run that was asked for.
        run: RunId,
    },
    /// The run exists already.
    #[error("run {run} exists already")]
    Exists {
        /// The run that was to be created.
        run: RunId,
    },
    /// Another process writes to the run.
    #[error("run {run} is in use by another process")]
    Locked {
        /// The run that is locked.
        run: RunId,
    },
    /// The log or its lock was taken from the run's writer, for instance because somebody deleted a file. The
    /// writer appends nothing more, so the run has no further effects.
    #[error("run {run} cannot go on: {problem} while it worked")]
    Taken {
        /// Returns the id of the run.
        run: RunId,
        /// The file that was changed, and the change.
        problem: String,
    },
    /// Other runs need the run, so it cannot be deleted.
    #[error("run {run} cannot be deleted: {} {} it", names(by), if by.len() == 1 { "needs" } else { "need" })]
    Needed {
        /// The run that was to be deleted.
        run: RunId,
        /// The runs that continue it, and the run that waits for its outcome.
        by: Vec<RunId>,
    },
    /// A message with this id waits for the run already, for instance the answer of somebody else.
    #[error("run {run} has a message {id} already")]
    Posted {
        /// The run that the message was for.
        run: RunId,
        /// The id of the message.
        id: String,
    },
    /// The journal does not support the action.
    #[error("this journal cannot {action}")]
    Unsupported {
        /// The action.
        action: &'static str,
    },
    /// The whole store was written by a newer version.
    #[error(
        "{place} has store format {found}, and this version reads up to {supported}: use a newer version"
    )]
    FutureStore {
        /// The location of the store.
        place: String,
        /// Its format.
        found: u32,
        /// The newest format that can be read.
        supported: u32,
    },
    /// The log was written by a newer version.
    #[error(
        "run {run} has log format {found}, and this version reads up to {supported}: use a newer version"
    )]
    FutureFormat {
        /// Returns the id of the run.
        run: RunId,
        /// Its format.
        found: u32,
        /// The newest format that can be read.
        supported: u32,
    },
    /// The log has a kind of run that this version does not know, or none.
    #[error("run {run} {}", unknown_kind(kind.as_deref()))]
    UnknownKind {
        /// Returns the id of the run.
        run: RunId,
        /// The kind in the log; none in logs of versions before runs had kinds.
        kind: Option<String>,
    },
    /// A record in the middle of the log is damaged.
    #[error("run {run} is damaged at record {record}: {problem}")]
    Corrupt {
        /// Returns the id of the run.
        run: RunId,
        /// The index of the record, from 0.
        record: u64,
        /// The damage.
        problem: String,
    },
    /// The id cannot be used, for instance because it holds a path separator.
    #[error("{id:?} cannot be a run id: use letters, digits, '-', '_' and inner '.'")]
    BadId {
        /// The id.
        id: String,
    },
    /// The storage failed: full, read-only or missing.
    #[error("cannot {action} {place}: {source}")]
    Storage {
        /// The action, for instance `write`.
        action: &'static str,
        /// The file or database.
        place: String,
        /// The cause.
        source: std::io::Error,
    },
}

impl JournalError {
    /// Returns the run that the error is about, if it names one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::UnknownRun { run }
            | Self::Exists { run }
            | Self::Locked { run }
            | Self::Taken { run, .. }
            | Self::Needed { run, .. }
            | Self::Posted { run, .. }
            | Self::FutureFormat { run, .. }
            | Self::UnknownKind { run, .. }
            | Self::Corrupt { run, .. } => Some(run),
            Self::Unsupported { .. }
            | Self::FutureStore { .. }
            | Self::BadId { .. }
            | Self::Storage { .. } => None,
        }
    }

    /// Returns true if another version wrote the log, so that its content may mean something else.
    pub fn is_of_another_version(&self) -> bool {
        matches!(self, Self::FutureFormat { .. } | Self::FutureStore { .. } | Self::UnknownKind { .. })
    }

    /// Returns advice for a person, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::UnknownRun { .. } => "`archon runs list` shows the runs there are",
            Self::Exists { .. } => "choose another id, or resume the run",
            Self::Locked { .. } => "wait for the other process, or stop it",
            Self::Taken { .. } => {
                "nothing more was done; put the file back if it is gone, look with `archon runs show`, then take the run up with `archon resume`; leave the files of a run alone while it works"
            }
            Self::Needed { .. } => "delete the runs that need it first",
            Self::Posted { .. } => "the first message counts; post another one under another id",
            Self::Unsupported { .. } => "use a journal that can",
            Self::FutureFormat { .. } | Self::FutureStore { .. } => {
                "use the version of archon that wrote it, or a newer one"
            }
            Self::UnknownKind { kind: None, .. } => {
                "it was written before the first release: delete it with `archon runs delete`, and start it again"
            }
            Self::UnknownKind { .. } => "use a newer version of archon: the one that wrote it, for instance",
            Self::Corrupt { .. } => {
                "`archon runs show` shows what is before the damage, and `archon runs fork --at TURN` goes on from there"
            }
            Self::BadId { .. } => "ids are made by `archon run`",
            Self::Storage { .. } => {
                "check that the directory exists, is writable and has free space; what a run has in its log is not lost, and the run can be resumed"
            }
        }
    }
}

fn unknown_kind(kind: Option<&str>) -> String {
    match kind {
        Some(kind) => format!("is of kind `{kind}`, which this version does not know"),
        None => "names no kind of run in its log".to_owned(),
    }
}

fn names(runs: &[RunId]) -> String {
    runs.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ")
}
