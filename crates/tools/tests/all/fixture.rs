//! Shared parts of the tests: a run without a model, tools that misbehave, and ways to call them.

use std::{
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Poll, Waker},
};

use archon_testkit::{SeededIds, VirtualClock};
use archon_tools::{FnTool, ToolEngine, ToolRegistry};
use archon_types::{
    CallId, Clock, CommandId, Context, Executed, Json, Prepared, Tool, ToolCall, ToolContext, ToolError,
    ToolResult, ToolSpec, Toolbox,
};
use serde_json::json;

pub(crate) fn context() -> Context {
    context_at(Arc::new(VirtualClock::new()))
}

pub(crate) fn context_at(clock: Arc<dyn Clock>) -> Context {
    Context::new("run".into(), "session".into(), clock, Arc::new(SeededIds::new(1)))
}

pub(crate) fn engine(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> ToolEngine {
    let registry = ToolRegistry::new();
    registry.register_all(tools).unwrap();
    ToolEngine::new(registry)
}

pub(crate) fn call_id() -> CallId {
    CallId::new(CommandId(1), 0)
}

/// Prepares and executes a call as a loop would.
pub(crate) async fn run_call(toolbox: &dyn Toolbox, call: &ToolCall, run: &Context) -> ToolResult {
    match toolbox.prepare(call_id(), call, run).await {
        Prepared::Ready(ready) => match toolbox.execute(ready, run).await {
            Executed::Done(result) => *result,
            other => panic!("{other:?}"),
        },
        Prepared::Refused(result) => *result,
        other => panic!("{other:?}"),
    }
}

/// Calls a tool past every guard; for tools that are done at once.
pub(crate) fn call_directly(tool: &dyn Tool, arguments: Json) -> Result<ToolResult, ToolError> {
    let context = ToolContext::new(context(), "call".into(), "tool");
    let mut call = tool.call(arguments, &context);
    match call.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the tool waits"),
    }
}

/// A tool that keeps the arguments of its calls.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    pub(crate) seen: Arc<Mutex<Vec<Json>>>,
}

impl Recorder {
    pub(crate) fn tool(&self, name: &str, parameters: Json) -> Arc<dyn Tool> {
        self.tool_with(ToolSpec::new(name, "Keeps what it was called with.", parameters))
    }

    pub(crate) fn tool_with(&self, spec: ToolSpec) -> Arc<dyn Tool> {
        let seen = self.seen.clone();
        Arc::new(FnTool::new(spec, move |arguments, _| {
            seen.lock().unwrap().push(arguments);
            async { Ok("done".into()) }
        }))
    }

    pub(crate) fn take(&self) -> Vec<Json> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

pub(crate) fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "A tool for a test, called by name.", json!({ "type": "object" }))
}

/// A tool without parameters whose future `work` makes.
pub(crate) fn tool<F, Fut>(spec: ToolSpec, work: F) -> Arc<dyn Tool>
where
    F: Fn(ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    Arc::new(FnTool::new(spec, move |_, context| work(context)))
}

/// Counts how often it was dropped.
#[derive(Clone, Default)]
pub(crate) struct DropCounter(Arc<AtomicUsize>);

impl DropCounter {
    pub(crate) fn guard(&self) -> DropGuard {
        DropGuard(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) struct DropGuard(DropCounter);

impl Drop for DropGuard {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A result as a test compares it: status, text, detail where it differs, metadata.
pub(crate) fn show(result: &ToolResult) -> String {
    let mut shown = format!("{:?}\n{}\n", result.status, result.text());
    if let Some(detail) = result.error_message.as_ref().filter(|detail| !result.text().ends_with(*detail)) {
        writeln!(shown, "detail: {detail}").unwrap();
    }
    writeln!(shown, "{}", Json::Object(result.metadata.clone())).unwrap();
    shown
}
