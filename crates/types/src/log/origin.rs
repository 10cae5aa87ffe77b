//! The origin of a run and the triggers of its turns.

use serde::{Deserialize, Serialize};

use crate::values::{CallId, RunId};

/// The [`kind`](crate::ExtensionMessage::kind) of the extension message in the log of a run that a task started. The
/// data of this message has the id of the task in `task_id`, and the text `trigger` in `source`.
pub const TRIGGER_MESSAGE: &str = "trigger";

/// The prefix of the idempotency keys of runs that a task starts. A server refuses such a key from a client; otherwise
/// the client could start its own run in the place of the task's run.
pub const TRIGGER_KEYS: &str = "trigger/";

/// The origin of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// A prompt started the run, which is the first run of its session.
    Prompt,
    /// The run continues another run of the session. The messages of that run are not repeated in this log.
    Continues {
        /// The run that is continued.
        run: RunId,
        /// The number of records of the continued run that this run reads, from the first record on.
        records: u64,
        /// The kind of the continuation.
        continuation: ContinuationKind,
    },
    /// A tool call of another run started this run.
    CalledBy {
        /// The calling run.
        run: RunId,
        /// The call in the calling run.
        call: CallId,
    },
}

/// The kind of a continuation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContinuationKind {
    /// The next prompt of a conversation.
    #[default]
    Default,
    /// The prompt of the continued run again, with the same conversation before it.
    Rerun {
        /// The time of the continuation (RFC 3339, UTC), or any other label.
        tag: String,
    },
    /// A fork: the run goes on from a point of the continued run, as an alternative to the records after that
    /// point.
    Branch {
        /// The time of the continuation (RFC 3339, UTC), or any other label.
        tag: String,
    },
}

/// The trigger of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnTrigger {
    /// The prompt of a person.
    #[default]
    User,
    /// The call of a parent agent.
    SubAgent,
    /// Tool results or a steering message; also the first turn of a run that continues another run.
    Continuation,
    /// The first turn of a run that continues with [`ContinuationKind::Branch`].
    Branch,
}

impl TurnTrigger {
    /// Returns the trigger of a run's first turn: `Branch` for a [`ContinuationKind::Branch`], `Continuation`
    /// for any other continuation, and `configured` for a run that continues no other run. The trigger of
    /// later turns is always [`TurnTrigger::Continuation`].
    pub fn first(origin: &Origin, configured: Self) -> Self {
        match origin {
            Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. } => Self::Branch,
            Origin::Continues { .. } => Self::Continuation,
            _ => configured,
        }
    }
}
