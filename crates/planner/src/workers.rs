//! Chooses the agents that execute subtasks, and limits their tools to those that a subtask names.

use std::sync::Arc;

use archon_types::{
    Agent, BoxFuture, CallId, Context, Encoded, Executed, Prepared, ProcessGroup, ReadyCall, SessionId,
    SubTask, ToolCall, ToolResult, ToolSpec, Toolbox,
};

/// Chooses the agent that executes a subtask.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_planner::Workers;
/// use archon_types::{Agent, SubTask};
///
/// /// Gives subtasks without a tool to a writer.
/// struct Two {
///     writer: Arc<dyn Agent>,
///     worker: Arc<dyn Agent>,
/// }
///
/// impl Workers for Two {
///     fn worker(&self, _subtask: &SubTask, tool: Option<&str>) -> Arc<dyn Agent> {
///         match tool {
///             None => self.writer.clone(),
///             Some(_) => self.worker.clone(),
///         }
///     }
/// }
/// ```
pub trait Workers: Send + Sync {
    /// Returns the agent for a subtask. If `tool` is given, the agent should see no other tool; see
    /// [`OnlyTool`].
    fn worker(&self, subtask: &SubTask, tool: Option<&str>) -> Arc<dyn Agent>;
}

impl<F: Fn(&SubTask, Option<&str>) -> Arc<dyn Agent> + Send + Sync> Workers for F {
    fn worker(&self, subtask: &SubTask, tool: Option<&str>) -> Arc<dyn Agent> {
        self(subtask, tool)
    }
}

/// Uses one agent for every subtask.
pub struct OneWorker(pub Arc<dyn Agent>);

impl Workers for OneWorker {
    fn worker(&self, _: &SubTask, _: Option<&str>) -> Arc<dyn Agent> {
        self.0.clone()
    }
}

/// A toolbox that shows and calls only one tool of another toolbox.
pub struct OnlyTool {
    inner: Arc<dyn Toolbox>,
    name: String,
}

impl OnlyTool {
    /// Creates a toolbox with only the tool `name` of `inner`.
    pub fn new(inner: Arc<dyn Toolbox>, name: impl Into<String>) -> Self {
        Self { inner, name: name.into() }
    }
}

impl Toolbox for OnlyTool {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        let specs = self.inner.specs();
        Arc::new(Encoded::new(specs.iter().filter(|spec| spec.name == self.name).cloned().collect()))
    }

    fn sourced_spec(&self, name: &str) -> Option<ToolSpec> {
        if name == self.name { self.inner.sourced_spec(name) } else { None }
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared> {
        if call.name == self.name {
            return self.inner.prepare(id, call, run);
        }
        let text =
            format!("this step offers only the tool {}; the tool {} cannot be called", self.name, call.name);
        Box::pin(async move { Prepared::Refused(Box::new(ToolResult::error(text))) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        self.inner.execute(ready, run)
    }

    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        run: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        self.inner.end_processes(groups, run)
    }

    fn recall(&self, session: &SessionId, tool: &str, result: &ToolResult) {
        self.inner.recall(session, tool, result);
    }
}
