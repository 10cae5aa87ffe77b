//! Identifiers as distinct types, so that a run's id cannot be used as a call's id.
//!
//! Ids are text: they appear in file names, logs and other systems. Relations between values are ids, never
//! references. A clone costs one reference count.

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

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self::new(id)
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self::new(id)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// A run, which has one append-only log.
    RunId,
    /// A session: the runs of a conversation.
    SessionId,
    /// An agent; it does not change over the agent's life.
    AgentId,
    /// Display name of a run, `{session}.{config}.{n}`.
    LoopId,
    /// A task.
    TaskId,
    /// A step of a task, unique within its task.
    SubTaskId,
    /// A tool call, as the model names it.
    ToolCallId,
    /// A message; globally unique.
    MessageId,
    /// A turn: one model response and the results of its tool calls.
    TurnId,
    /// A tenant, for which agents work; `:` separates levels, as in `team:eng:alice`.
    TenantId,
}

impl RunId {
    /// Returns the id of the run that a call of this run starts. It is always the same, so that a child run
    /// is found again after a crash.
    pub fn of_call(&self, call: CallId) -> Self {
        let name = format!("{}.{}-{}", self.0, call.command.0, call.index);
        match name.len() {
            // Journals take ids of up to 200 bytes.
            0..=180 => Self::new(name),
            _ => Self::new(format!("run_{:016x}", ContentHash::of(&(self, call)))),
        }
    }
}

/// A command of a machine, counted from 0 within one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CommandId(pub u64);

/// A tool call within a run: the command whose answer holds it, and its index there.
///
/// Models repeat their ids across turns, so those do not identify a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallId {
    /// The model command whose answer holds the call.
    pub command: CommandId,
    /// The index of the call in that answer, from 0.
    pub index: u32,
}

impl CallId {
    /// Creates the id of the call at `index` of the answer to `command`.
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
pub trait Ids: Send + Sync {
    /// Returns a new id: `prefix`, an underscore and a unique part.
    fn fresh(&self, prefix: &str) -> String;
}
