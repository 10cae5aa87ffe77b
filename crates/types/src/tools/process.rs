//! The processes that tool calls start. They are logged, so that a process that resumes a run can end those
//! that still run, and no others.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::values::CallId;

use super::tool_error::ToolError;

/// A process group, identified so that a later group with the same number is not confused with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProcessGroup {
    /// The number of the group, which is the process id of its leader.
    pub id: u32,
    /// The start time of the leader, in the system's format: on Linux the boot id and the clock ticks since
    /// boot, as in `0b1cf0b2-…/123456`. The start time differs for two processes with the same id. Empty if
    /// the system does not report the time; such a group is not ended when the run is resumed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub leader_started: String,
}

impl ProcessGroup {
    /// Creates a group from its number and the start time of its leader.
    pub fn new(id: u32, started: impl Into<String>) -> Self {
        Self { id, leader_started: started.into() }
    }
}

/// Registers the processes of one tool call: logs them, and ends them when the call ends.
///
/// ```
/// use archon_types::{BoxFuture, Processes, ToolError};
///
/// /// Prints process groups, for a tool that runs without a log.
/// struct Printed;
///
/// impl Processes for Printed {
///     fn register<'a>(&'a self, leader: u32) -> BoxFuture<'a, Result<(), ToolError>> {
///         println!("process group {leader}");
///         Box::pin(std::future::ready(Ok(())))
///     }
/// }
/// ```
pub trait Processes: Send + Sync {
    /// Registers the process group with the leader `leader`. Once this returns, the group is in the log.
    fn register<'a>(&'a self, leader: u32) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Logs a process group that the call uses but does not own, such as a server for many calls. The group
    /// continues when the call ends. If the run's own process dies during the call, the group is ended before
    /// the run is resumed.
    fn uses<'a>(&'a self, group: &'a ProcessGroup) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = group;
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Logs the process groups that the calls of a run start.
///
/// ```
/// use archon_types::{BoxFuture, CallId, ProcessGroup, ProcessLog};
///
/// /// Prints process groups, for a run without a log.
/// struct Printed;
///
/// impl ProcessLog for Printed {
///     fn spawned<'a>(&'a self, call: CallId, group: ProcessGroup) -> BoxFuture<'a, bool> {
///         println!("call {call} started process group {}", group.id);
///         Box::pin(std::future::ready(true))
///     }
/// }
/// ```
pub trait ProcessLog: Send + Sync {
    /// Appends [`RecordBody::ProcessStarted`](crate::RecordBody::ProcessStarted). Returns false, without
    /// appending, if the call has ended.
    fn spawned<'a>(&'a self, call: CallId, group: ProcessGroup) -> BoxFuture<'a, bool>;
}
