//! The origin of a run and the triggers of its turns.

use serde::{Deserialize, Serialize};

use crate::values::{CallId, RunId};

/// The origin of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// The first run of a session.
    Prompt,
    /// The run continues another run of the session, whose messages are not repeated here.
    Continues {
        /// The run that is continued.
        run: RunId,
        /// The number of its records that count.
        records: u64,
        /// The kind of the continuation.
        continuation: ContinuationKind,
    },
    /// A tool call of another run started it.
    CalledBy {
        /// The caller.
        run: RunId,
        /// Its call.
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
    /// The same request again in an equal context.
    Rerun {
        /// RFC 3339 time in UTC, or any other mark.
        tag: String,
    },
    /// An alternative from a branching point.
    Branch {
        /// RFC 3339 time in UTC, or any other mark.
        tag: String,
    },
}

/// The trigger of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnTrigger {
    /// A person's prompt.
    #[default]
    User,
    /// A parent agent's call.
    SubAgent,
    /// Tool results, a steering message, or a run that continues another.
    Continuation,
    /// The first turn of a branch.
    Branch,
}

impl TurnTrigger {
    /// Returns the trigger of a run's first turn: a branch wins over any other continuation, which wins over
    /// `configured`. Later turns are always [`TurnTrigger::Continuation`].
    pub fn first(origin: &Origin, configured: Self) -> Self {
        match origin {
            Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. } => Self::Branch,
            Origin::Continues { .. } => Self::Continuation,
            _ => configured,
        }
    }
}
