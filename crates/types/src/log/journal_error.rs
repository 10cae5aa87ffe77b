//! The errors of journals.

use crate::values::RunId;

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
        /// The id of the run.
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
    /// The whole store was written by another version.
    #[error("{place} has store format {found}, and this version reads format {supported}")]
    UnsupportedStore {
        /// The location of the store.
        place: String,
        /// Its format.
        found: u32,
        /// The newest format that can be read.
        supported: u32,
    },
    /// The log was written by another version.
    #[error("run {run} has log format {found}, and this version reads format {supported}")]
    UnsupportedFormat {
        /// The id of the run.
        run: RunId,
        /// Its format.
        found: u32,
        /// The format that can be read.
        supported: u32,
    },
    /// The log has a record of a type that this version does not know.
    #[error(
        "run {run} has a record `{name}` at {record}, which this version does not know (log format {format})"
    )]
    UnknownRecord {
        /// The id of the run.
        run: RunId,
        /// The index of the record, from 0.
        record: u64,
        /// The type of the record.
        name: String,
        /// The log format that this version reads, [`LOG_FORMAT`](crate::LOG_FORMAT).
        format: u32,
    },
    /// The log has a kind of run that this version does not know, or none.
    #[error("run {run} {}", unknown_kind(kind.as_deref()))]
    UnknownKind {
        /// The id of the run.
        run: RunId,
        /// The kind in the log; none if the log names none.
        kind: Option<String>,
    },
    /// A record in the middle of the log is damaged.
    #[error("run {run} is damaged at record {record}: {problem}")]
    Corrupt {
        /// The id of the run.
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
            | Self::UnsupportedFormat { run, .. }
            | Self::UnknownRecord { run, .. }
            | Self::UnknownKind { run, .. }
            | Self::Corrupt { run, .. } => Some(run),
            Self::Unsupported { .. }
            | Self::UnsupportedStore { .. }
            | Self::BadId { .. }
            | Self::Storage { .. } => None,
        }
    }

    /// Returns true if another version wrote the log, so that its content may mean something else.
    pub fn is_of_another_version(&self) -> bool {
        matches!(
            self,
            Self::UnsupportedFormat { .. }
                | Self::UnsupportedStore { .. }
                | Self::UnknownRecord { .. }
                | Self::UnknownKind { .. }
        )
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
            Self::UnsupportedFormat { found, supported, .. } if found < supported => {
                "it was written before the first release: start the task again; `archon runs delete` removes it"
            }
            Self::UnsupportedStore { found, supported, .. } if found < supported => {
                "it was written before the first release: move the file away, and start the tasks again"
            }
            Self::UnsupportedFormat { .. } | Self::UnsupportedStore { .. } => {
                "use the version of archon that wrote it, or a newer one"
            }
            Self::UnknownKind { kind: None, .. } => {
                "it was written before the first release: delete it with `archon runs delete`, and start it again"
            }
            Self::UnknownKind { .. } | Self::UnknownRecord { .. } => {
                "use a newer version of archon: the one that wrote it, for instance"
            }
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
