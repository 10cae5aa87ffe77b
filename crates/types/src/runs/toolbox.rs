//! The interface through which a loop uses tools: prepare a call, ask a person if needed, execute it.

use std::{any::Any, sync::Arc};

use futures_core::future::BoxFuture;

use crate::{
    messages::{ToolCall, ToolResult},
    tools::{ApprovalRequest, Effect, ProcessGroup, ToolSpec},
    values::{CallId, Encoded, SessionId},
};

use super::context::Context;

/// A set of tools whose calls pass guards: checks before and after each call.
///
/// These methods never fail or panic: each error of a model or a tool becomes a result that the model reads.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{
///     BoxFuture, CallId, Context, Encoded, Executed, Prepared, ReadyCall, ToolCall, ToolSpec, Toolbox,
/// };
///
/// /// Prints the calls of another toolbox. The methods with a default should be passed on too.
/// struct Printed(Arc<dyn Toolbox>);
///
/// impl Toolbox for Printed {
///     fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
///         self.0.specs()
///     }
///
///     fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared> {
///         self.0.prepare(id, call, run)
///     }
///
///     fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
///         println!("{}: {}", run.run, ready.call.name);
///         self.0.execute(ready, run)
///     }
/// }
/// ```
pub trait Toolbox: Send + Sync {
    /// Returns the specs of the tools that can be called now, in a stable order.
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>>;

    /// Returns the spec of the tool with this name, if it is a tool of a [`ToolSource`](crate::ToolSource).
    /// [`specs`](Self::specs) does not have such tools. Default: `None`.
    fn sourced_spec(&self, name: &str) -> Option<ToolSpec> {
        let _ = name;
        None
    }

    /// Checks a call, and returns if it may run, is refused, or needs the answer of a person. Executes nothing.
    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared>;

    /// Executes a prepared call. The caller of this method logs the start before and the result after.
    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed>;

    /// Ends process groups that calls of this run started before the run's own process died, and returns the
    /// groups that still exist. Groups that may belong to another program are left alone and not returned.
    /// Default: does nothing, for tools that start no processes.
    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        run: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        let _ = (groups, run);
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Restores the state of the tool `tool` from a `result` when a session is resumed; see
    /// [`Tool::recall`](crate::Tool::recall).
    fn recall(&self, session: &SessionId, tool: &str, result: &ToolResult) {
        let _ = (session, tool, result);
    }
}

/// The result of [`Toolbox::prepare`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Prepared {
    /// The call may run.
    Ready(ReadyCall),
    /// The call does not run; the model gets this result.
    Refused(Box<ToolResult>),
    /// A person must decide.
    Ask(Box<ApprovalRequest>),
}

/// The result of [`Toolbox::execute`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Executed {
    /// The call ended.
    Done(Box<ToolResult>),
    /// The call waits for a person, because a sub-agent or the tool itself asked a question
    /// ([`ApprovalRequest::is_of_tool`]).
    Suspended(Box<ApprovalRequest>),
}

/// A call that passed every guard, with data that its toolbox needs to execute it.
pub struct ReadyCall {
    /// The id of the call in the run.
    pub id: CallId,
    /// The call as the model sent it, or with arguments that a person edited or the tool corrected
    /// ([`Tool::correction`](crate::Tool::correction)).
    pub call: ToolCall,
    /// The effect that a second execution of the call would have. It is logged with the start of the call.
    pub effect: Effect,
    /// True if the call may run in parallel with other calls of its turn.
    pub concurrency_safe: bool,
    /// The number of earlier starts of the call, set by code that retries the call. Default 0.
    pub started_before: u32,
    /// Data of the toolbox, for instance the tool that was looked up.
    pub notes: Option<Box<dyn Any + Send + Sync>>,
}

impl ReadyCall {
    /// Creates a ready call without data of the toolbox.
    pub fn new(id: CallId, call: ToolCall, effect: Effect) -> Self {
        Self { id, call, effect, concurrency_safe: false, started_before: 0, notes: None }
    }
}

crate::debug_fields!(ReadyCall: id, call, effect);
