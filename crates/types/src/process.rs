//! Processes that tool calls start: how they are named in a log, so that whoever takes a run up ends those that
//! outlived it, and nobody else's.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{CallId, ToolError};

/// A process group, with what tells it from a later one of the same number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProcessGroup {
    /// The number of the group, which is that of the process that leads it.
    pub id: u32,
    /// When the leader was started, in the system's words: on Linux the boot's id and the clock ticks since
    /// then, as in `0b1cf0b2-…/123456`. Two processes of one number never have it in common. Empty where
    /// the system does not say; such a group is not ended by a later process.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started: String,
}

impl ProcessGroup {
    /// A group by its number and its leader's start.
    pub fn new(id: u32, started: impl Into<String>) -> Self {
        Self { id, started: started.into() }
    }
}

/// Keeps the processes of one tool call: writes them down, and ends them with the call.
pub trait Processes: Send + Sync {
    /// Takes charge of the group that the process `leader` leads. Once this returns it stands in the log.
    fn register<'a>(&'a self, leader: u32) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// Writes the process groups of a run's calls into its log.
pub trait ProcessLog: Send + Sync {
    /// Appends [`RecordBody::ToolSpawned`](crate::RecordBody::ToolSpawned); false if the call is over and
    /// nothing was appended.
    fn spawned<'a>(&'a self, call: CallId, group: ProcessGroup) -> BoxFuture<'a, bool>;
}
