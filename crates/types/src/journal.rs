//! Journals: where logs are kept. One writer per run, any number of readers.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    AgentMessage, Inbox, Record, RecordBody, RunFilter, RunId, RunKind, RunPlace, RunStatus, SessionId,
    TenantId, Timestamp,
};

/// Keeps the logs of runs.
pub trait Journal: Send + Sync {
    /// Takes the run's writer lock and reads what is there.
    ///
    /// A record that was cut off by a crash at the end of the log is dropped here.
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>>;

    /// Reads a log without the lock. The last record may already be old when this returns.
    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>>;

    /// As much of a log as can be trusted: every record before the damage, if there is any.
    ///
    /// A journal that does not tell damaged logs apart, which is the default, reads the whole log or none.
    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move { Ok(Salvaged { records: self.read(run).await?, ..Salvaged::default() }) })
    }

    /// The runs that a filter lets through, the last written first. Logs that cannot be read are listed with a `problem`.
    ///
    /// A filter that names a session, or [`RunStatus::Suspended`] alone, or a limit, is to cost what it finds, not what
    /// there is.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>>;

    /// The head of one run, as it stands in a list.
    ///
    /// By default the whole log is read, and a list of the session tells whether somebody works on the run. A journal
    /// that can find it in the first and last records alone does that, and then does not see damage between them. A log
    /// that cannot be read at all is an error, as in [`salvage`](Self::salvage).
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

    /// Removes a run and everything kept for it. A damaged run can be removed too.
    ///
    /// Removing is refused while somebody writes to the run ([`JournalError::Locked`]) and while other
    /// runs need it ([`JournalError::Needed`]): those that continue it read its records, and a run
    /// whose unfinished call started it would not know what it did. A run that is created while this
    /// looks for such runs may be missed.
    ///
    /// A journal that cannot remove runs, which is the default, says [`JournalError::Unsupported`].
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        let _ = run;
        Box::pin(std::future::ready(Err(JournalError::Unsupported { action: "delete runs" })))
    }

    /// Where others leave messages to this journal's runs; by default nowhere.
    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        None
    }
}

/// How much could be read of a log.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// The records before the damage; all of them when there is none.
    pub records: Vec<Arc<Record>>,
    /// What is wrong with the log, if anything.
    pub damage: Option<JournalError>,
    /// Bytes of a torn last line, which do not count as damage; 0 for a log that ended in order, and
    /// for journals that cut off torn ends themselves.
    pub torn_bytes: u64,
}

impl Salvaged {
    /// The records of a log without damage.
    ///
    /// # Errors
    /// The damage.
    pub fn whole(self) -> Result<Vec<Arc<Record>>, JournalError> {
        self.damage.map_or(Ok(self.records), Err)
    }

    /// The first `count` records, or all if there are fewer.
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

/// Appends to one run's log. Dropping it gives the lock back.
pub trait RunWriter: Send {
    /// Appends records in order. With [`Durability::Synced`] they survive a power cut once this returns.
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>>;
}

/// Whether a run is begun or taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The run must not exist.
    Create,
    /// The run must exist.
    Existing,
}

/// A run that was opened for writing.
pub struct OpenRun {
    /// What was in the log; empty for a new run.
    pub records: Vec<Arc<Record>>,
    /// Appends to it.
    pub writer: Box<dyn RunWriter>,
}

impl std::fmt::Debug for OpenRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenRun").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

/// How safe appended records must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Handed to the operating system: survives the death of the process.
    Buffered,
    /// On the medium: survives a power cut.
    Synced,
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunHead {
    /// The run.
    pub run_id: RunId,
    /// The kind of the run; unknown where the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RunKind>,
    /// Its session; unknown where the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// On whose behalf it is; unknown where the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// The run that called it, if it works for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<RunId>,
    /// The parallel loop that it is a branch of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_of: Option<RunId>,
    /// When it began.
    pub started_at: Timestamp,
    /// When its last record was written.
    pub updated_at: Timestamp,
    /// The state that the run is in.
    pub status: RunStatus,
    /// The first prompt, shortened.
    #[serde(default)]
    pub task: String,
    /// Why the log cannot be read, and what can be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RunHead {
    /// The head of a log, from its records.
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

    /// How a run is whose last record is this one, as far as its log tells.
    pub fn status_after(last: &RecordBody) -> RunStatus {
        match last {
            RecordBody::RunStarted(_) => RunStatus::Begun,
            RecordBody::Suspended { .. } => RunStatus::Suspended,
            RecordBody::RunFinished(outcome) => outcome.status.into(),
            _ => RunStatus::Running,
        }
    }

    /// Where it stands in a list.
    pub fn place(&self) -> RunPlace {
        RunPlace { updated_at: self.updated_at, run: self.run_id.clone() }
    }

    /// The same where nobody holds the run's lock: what was under way was interrupted.
    pub fn not_worked_on(mut self) -> Self {
        if self.status == RunStatus::Running {
            self.status = RunStatus::Interrupted;
        }
        self
    }

    /// The same for a log that is damaged behind the records that it is of.
    pub fn damaged(mut self, problem: impl Into<String>) -> Self {
        (self.status, self.problem) = (RunStatus::Unreadable, Some(problem.into()));
        self
    }

    /// The head of a log that cannot be read.
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

/// Why a journal did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// There is no such run.
    #[error("no run {run}")]
    UnknownRun {
        /// The run that was asked for.
        run: RunId,
    },
    /// The run is there already.
    #[error("run {run} exists already")]
    Exists {
        /// The run that was to be created.
        run: RunId,
    },
    /// Somebody else writes to the run.
    #[error("run {run} is in use by another process")]
    Locked {
        /// The run that is locked.
        run: RunId,
    },
    /// Somebody took the log, or the lock on it, from the run's writer. The writer appends nothing more, so no effect
    /// follows.
    #[error("run {run} cannot go on: {problem} while it worked")]
    Taken {
        /// The run.
        run: RunId,
        /// Which file was changed, and how.
        problem: String,
    },
    /// Other runs need the run, so it cannot be deleted.
    #[error("run {run} cannot be deleted: {} {} it", names(by), if by.len() == 1 { "needs" } else { "need" })]
    Needed {
        /// The run that was to be deleted.
        run: RunId,
        /// Who needs it: the runs that continue it, and the one that waits for its outcome.
        by: Vec<RunId>,
    },
    /// The journal does not do such things.
    #[error("this journal cannot {action}")]
    Unsupported {
        /// What it was asked for.
        action: &'static str,
    },
    /// The whole store was written by a newer version.
    #[error(
        "{place} has store format {found}, and this version reads up to {supported}: use a newer version"
    )]
    FutureStore {
        /// Where it is.
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
        /// The run.
        run: RunId,
        /// Its format.
        found: u32,
        /// The newest format that can be read.
        supported: u32,
    },
    /// The log names a kind of run that this version does not know, or none.
    #[error("run {run} {}", unknown_kind(kind.as_deref()))]
    UnknownKind {
        /// The run.
        run: RunId,
        /// The kind that its log names; none in logs of versions before runs had kinds.
        kind: Option<String>,
    },
    /// A record in the middle of the log is damaged.
    #[error("run {run} is damaged at record {record}: {problem}")]
    Corrupt {
        /// The run.
        run: RunId,
        /// Which record, from 0.
        record: u64,
        /// What is wrong.
        problem: String,
    },
    /// The id cannot be used, for instance because it holds a path separator.
    #[error("{id:?} cannot be a run id: use letters, digits, '-', '_' and inner '.'")]
    BadId {
        /// The id.
        id: String,
    },
    /// The storage failed: full, read-only, gone.
    #[error("cannot {action} {place}: {source}")]
    Storage {
        /// What was tried, for instance `write`.
        action: &'static str,
        /// Where.
        place: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl JournalError {
    /// The run that it is about, if it names one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::UnknownRun { run }
            | Self::Exists { run }
            | Self::Locked { run }
            | Self::Taken { run, .. }
            | Self::Needed { run, .. }
            | Self::FutureFormat { run, .. }
            | Self::UnknownKind { run, .. }
            | Self::Corrupt { run, .. } => Some(run),
            Self::Unsupported { .. }
            | Self::FutureStore { .. }
            | Self::BadId { .. }
            | Self::Storage { .. } => None,
        }
    }

    /// Whether the log was written by another version: nothing in it can be trusted to mean what it seems to.
    pub fn is_of_another_version(&self) -> bool {
        matches!(self, Self::FutureFormat { .. } | Self::FutureStore { .. } | Self::UnknownKind { .. })
    }

    /// What a person can do about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::UnknownRun { .. } => "`archon runs list` shows the runs there are",
            Self::Exists { .. } => "choose another id, or resume the run",
            Self::Locked { .. } => "wait for the other process, or stop it",
            Self::Taken { .. } => {
                "nothing more was done; put the file back if it is gone, look with `archon runs show`, then take the run up with `archon resume`; leave the files of a run alone while it works"
            }
            Self::Needed { .. } => "delete the runs that need it first",
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
