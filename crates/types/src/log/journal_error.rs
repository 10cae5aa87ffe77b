//! The errors of journals.

use crate::values::RunId;

/// The error of a journal, of its inbox or of its index of open questions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// No run has this id.
    #[error("run {run} does not exist")]
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
    /// The log or its lock was taken from the run's writer, for instance because a file was deleted. The
    /// writer appends no more records, so the run has no further effects.
    #[error("run {run} was stopped: {problem}")]
    Taken {
        /// The id of the run.
        run: RunId,
        /// The changed file and the change.
        problem: String,
    },
    /// Other runs need the run, so it cannot be deleted.
    #[error("run {run} cannot be deleted: {} {} it", names(by), if by.len() == 1 { "needs" } else { "need" })]
    Needed {
        /// The run that was to be deleted.
        run: RunId,
        /// The runs that need the run to delete: runs that continue it, and its calling run, which still
        /// waits for the outcome.
        by: Vec<RunId>,
    },
    /// The inbox of the run already has a message with this id, for instance the answer of another person.
    #[error("the inbox of run {run} already has a message with the id {id}")]
    Posted {
        /// The run that the message was for.
        run: RunId,
        /// The id of the message.
        id: String,
    },
    /// The journal does not support the action.
    #[error("this journal cannot {action}")]
    Unsupported {
        /// The action after `cannot`, as in "delete runs".
        action: &'static str,
    },
    /// Another version of Archon wrote the store, in a format that this version does not read.
    #[error("{place} has store format {found}, and this version reads format {supported}")]
    UnsupportedStore {
        /// The location of the store.
        place: String,
        /// The store's format.
        found: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
    /// Another version of Archon wrote the log, in a format that this version does not read.
    #[error("run {run} has log format {found}, and this version reads format {supported}")]
    UnsupportedFormat {
        /// The id of the run.
        run: RunId,
        /// The log's format.
        found: u32,
        /// The format that this version reads.
        supported: u32,
    },
    /// The log has a record of a type, or an event of a plan or a team, that this version does not know.
    #[error(
        "record {record} of run {run} has the type `{name}`, which this version does not know (log format {format})"
    )]
    UnknownRecord {
        /// The id of the run.
        run: RunId,
        /// The index of the record in the log, from 0.
        record: u64,
        /// The type of the record; for an event of a plan or a team with the event, such as `plan: planned`.
        name: String,
        /// The log format that this version reads, [`LOG_FORMAT`](crate::LOG_FORMAT).
        format: u32,
    },
    /// The log names a kind of run that this version does not know, or it names no kind.
    #[error("run {run} {}", unknown_kind(kind.as_deref()))]
    UnknownKind {
        /// The id of the run.
        run: RunId,
        /// The kind in the log; `None` if the log names no kind.
        kind: Option<String>,
    },
    /// A record in the middle of the log is damaged.
    #[error("run {run} is damaged at record {record}: {problem}")]
    Corrupt {
        /// The id of the run.
        run: RunId,
        /// The index of the record in the log, from 0.
        record: u64,
        /// The text that describes the damage.
        problem: String,
    },
    /// The text cannot be used as a run id, for instance because it has a path separator.
    #[error("{id:?} cannot be a run id: use letters, digits, '-', '_' and inner '.'")]
    BadId {
        /// The text that was given as a run id.
        id: String,
    },
    /// The storage failed, for instance because it is full, read-only or missing.
    #[error("cannot {action} {place}: {source}")]
    Storage {
        /// The action after `cannot`, as in "write".
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
            | Self::UnsupportedFormat { run, .. }
            | Self::UnknownRecord { run, .. }
            | Self::UnknownKind { run, .. }
            | Self::Corrupt { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Returns true if another version of Archon wrote the log or the store, so this version may misread the
    /// data.
    pub fn is_of_another_version(&self) -> bool {
        matches!(
            self,
            Self::UnsupportedFormat { .. }
                | Self::UnsupportedStore { .. }
                | Self::UnknownRecord { .. }
                | Self::UnknownKind { .. }
        )
    }

    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::UnknownRun { .. } => "`archon runs list` lists the existing runs",
            Self::Exists { .. } => "choose another id, or resume the run",
            Self::Locked { .. } => "wait for the other process, or stop it",
            Self::Taken { .. } => {
                "the run has had no further effects; restore the file if it is missing, check the run with `archon runs show`, then resume it with `archon resume`; do not change the files of a run while it works"
            }
            Self::Needed { .. } => "delete the runs that need it first",
            Self::Posted { .. } => "the first message counts; post another message under another id",
            Self::Unsupported { .. } => "use a journal that supports this action",
            Self::UnsupportedFormat { found, supported, .. } if found < supported => {
                "the log was written before the first release: start the task again; `archon runs delete` removes the log"
            }
            Self::UnsupportedStore { found, supported, .. } if found < supported => {
                "the store was written before the first release: move its file away, and start the tasks again"
            }
            Self::UnsupportedFormat { .. } | Self::UnsupportedStore { .. } => {
                "use the version of archon that wrote it, or a newer one"
            }
            Self::UnknownKind { kind: None, .. } => {
                "the log was written before the first release: delete it with `archon runs delete`, and start the task again"
            }
            Self::UnknownKind { .. } | Self::UnknownRecord { .. } => {
                "use the version of archon that wrote the log, or a newer one"
            }
            Self::Corrupt { .. } => {
                "`archon runs show` shows what is before the damage, and `archon runs fork --at TURN` goes on from there"
            }
            Self::BadId { .. } => "use an id that `archon runs list` shows",
            Self::Storage { .. } => {
                "check that the directory exists, is writable and has free space; the records in a run's log are not lost, and the run can be resumed"
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
