//! Identifiers as distinct types, so that a run's id cannot be used as a call's id.
//!
//! Ids are text, because file names, logs and other programs contain them. Values refer to each other by id,
//! never by reference. A clone only increments a reference count.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::content_hash::ContentHash;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates an id from a text, without a check.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// Returns the text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        super::from_text!($name = Self::new);

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// The id of a run. Each run has one append-only log.
    RunId,
    /// The id of a session. A session holds the runs of one conversation.
    SessionId,
    /// The id of an agent. The id does not change during the agent's lifetime.
    AgentId,
    /// The display name of a run: the session, the configuration or the kind of the run, and a number, as in
    /// `s.plan.1`.
    LoopId,
    /// The id of a task.
    TaskId,
    /// The id of a subtask, unique within its task.
    SubTaskId,
    /// The id of a tool call, as the model wrote it. Models repeat such ids; see [`CallId`].
    ToolCallId,
    /// The id of a message; globally unique.
    MessageId,
    /// The id of a turn: one answer of the model and the results of its tool calls.
    TurnId,
    /// The id of a tenant, on whose behalf agents work; `:` separates levels, as in `team:eng:alice`.
    TenantId,
}

impl RunId {
    /// Returns the id of the child run that `call` of this run starts. The id is deterministic, so that the
    /// child run is found again after a crash.
    pub fn of_call(&self, call: CallId) -> Self {
        let name = format!("{}.{}-{}", self.0, call.command.0, call.index);
        match name.len() {
            // Journals take ids of up to 200 bytes.
            0..=180 => Self::new(name),
            _ => Self::new(format!("run_{:016x}", ContentHash::of(&(self, call)))),
        }
    }
}

/// The id of a command: a piece of work that the state machine of a run asks for, such as a model call. The
/// commands of a run are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CommandId(pub u64);

/// The id of a call within a run: the command that led to the call (for a tool call, the model call), and the
/// index of the call among the calls of this command.
///
/// Models repeat their tool call ids across turns, so those ids do not identify a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallId {
    /// The id of the command that led to the call, for instance of the model call that asked for a tool.
    pub command: CommandId,
    /// The index of the call among the calls of the command, from 0.
    pub index: u32,
}

impl CallId {
    /// Creates the id of the call with the index `index` among the calls of `command`.
    pub fn new(command: CommandId, index: u32) -> Self {
        Self { command, index }
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.command.0, self.index)
    }
}

/// The source of new ids: random and time-sortable in production, seeded in tests.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use archon_types::Ids;
///
/// /// Numbers, for tests.
/// #[derive(Default)]
/// struct Counted(AtomicU64);
///
/// impl Ids for Counted {
///     fn fresh(&self, prefix: &str) -> String {
///         format!("{prefix}_{}", self.0.fetch_add(1, Ordering::Relaxed))
///     }
/// }
///
/// assert_eq!(Counted::default().fresh("run"), "run_0");
/// ```
pub trait Ids: Send + Sync {
    /// Returns a new id: `prefix`, an underscore and a unique part.
    fn fresh(&self, prefix: &str) -> String;
}
