//! The one door to tools: a call is prepared, perhaps asked about, and then executed.

use std::{any::Any, fmt, sync::Arc};

use futures_core::future::BoxFuture;

use crate::{
    ApprovalRequest, CallId, Context, Effect, Encoded, ProcessGroup, SessionId, ToolCall, ToolResult,
    ToolSpec,
};

/// A set of tools behind guards.
///
/// Nothing that a model or a tool does makes these methods fail or panic: whatever goes wrong is a
/// result that the model can read.
pub trait Toolbox: Send + Sync {
    /// The tools that can be called now, in a stable order.
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>>;

    /// Checks a call without any effect on the world.
    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared>;

    /// Runs a call that was ready. The caller records the start before, and the result after.
    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed>;

    /// Ends process groups that calls of this run started before the process that drove it died, and
    /// returns those that are still there. Groups that cannot be told from somebody else's are left alone
    /// and not returned. A toolbox whose tools start no processes, which is the default, does nothing.
    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        run: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        let _ = (groups, run);
        Box::pin(std::future::ready(Vec::new()))
    }

    /// A session is taken up in which a call of the named tool came to `result`; see [`Tool::recall`](crate::Tool::recall).
    fn recall(&self, session: &SessionId, tool: &str, result: &ToolResult) {
        let _ = (session, tool, result);
    }
}

/// What came of looking at a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Prepared {
    /// It may run.
    Ready(ReadyCall),
    /// It will not run; the model gets this result.
    Refused(Box<ToolResult>),
    /// A person decides.
    Ask(Box<ApprovalRequest>),
}

/// What came of running a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Executed {
    /// It ended.
    Done(Box<ToolResult>),
    /// It waits for a person, for instance a sub-agent that asked something.
    Suspended(Box<ApprovalRequest>),
}

/// A call that passed every guard, with what its toolbox wants to remember until it runs.
pub struct ReadyCall {
    /// The call's place in the run.
    pub id: CallId,
    /// The call as the model sent it.
    pub call: ToolCall,
    /// What a second run would do; recorded with the start.
    pub effect: Effect,
    /// May run beside the other calls of its turn.
    pub concurrency_safe: bool,
    /// The toolbox's own notes, for instance the tool that was looked up.
    pub notes: Option<Box<dyn Any + Send + Sync>>,
}

impl ReadyCall {
    /// A ready call without notes.
    pub fn new(id: CallId, call: ToolCall, effect: Effect) -> Self {
        Self { id, call, effect, concurrency_safe: false, notes: None }
    }
}

impl fmt::Debug for ReadyCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyCall")
            .field("id", &self.id)
            .field("call", &self.call)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}
