//! Identifiers as types of their own, so that a run's id can never stand where a call's id is meant.
//!
//! Ids are text: they appear in file names, logs and other systems. Relations between values are
//! ids, never references. Cloning one is a reference count.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::ContentHash;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text as it is; nothing is checked or generated.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The text of the id.
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
    /// One run: one append-only log.
    RunId,
    /// An ordered tree of runs: a conversation.
    SessionId,
    /// An agent; stable for its whole life.
    AgentId,
    /// Display name of a run, `{session}.{config}.{n}`.
    LoopId,
    /// A goal that is worked on.
    TaskId,
    /// A step of a task, unique within its task.
    SubTaskId,
    /// A tool call, as the model named it.
    ToolCallId,
    /// A message, unique everywhere.
    MessageId,
    /// A turn: one model response and the results of its tool calls.
    TurnId,
    /// On whose behalf an agent acts; `:` separates levels, as in `team:eng:alice`.
    TenantId,
}

impl RunId {
    /// The run that a call of this run starts. The same every time, so that whoever takes the caller up
    /// after a crash finds the run that is there.
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

/// A tool call within a run: the command that asked for it and the model's id for it.
///
/// Models repeat ids across turns, so the id alone does not name a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallId {
    /// The model command whose answer holds the call.
    pub command: CommandId,
    /// The call's place in that answer, from 0.
    pub index: u32,
}

impl CallId {
    /// The call at `index` of the answer to `command`.
    pub fn new(command: CommandId, index: u32) -> Self {
        Self { command, index }
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.command.0, self.index)
    }
}

/// Identity as an input: production draws random, time-sortable ids, tests draw seeded ones.
pub trait Ids: Send + Sync {
    /// A fresh id: `prefix`, an underscore and a part that no other call ever returned.
    fn fresh(&self, prefix: &str) -> String;
}
