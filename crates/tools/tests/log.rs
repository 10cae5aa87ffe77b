//! The lines that a call writes to the application's log. This test has a process of its own, because the
//! set of wanted events is remembered for all threads: tests without a subscriber would switch the events
//! off.
#![allow(clippy::unwrap_used)]

use std::{
    io,
    sync::{Arc, Mutex},
};

use archon_testkit::{SeededIds, VirtualClock};
use archon_tools::{EngineOptions, IntoTool, ToolEngine, ToolRegistry, builtin::Calculator, tool};
use archon_types::{
    BoxFuture, CallId, CommandId, Context, Correction, Json, Prepared, Tool, ToolCall, ToolContext,
    ToolError, ToolResult, ToolSpec, Toolbox,
};
use expect_test::expect;
use serde_json::json;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Signs a user in, or pretends to.
#[tool]
async fn login(user: String, password: String) -> String {
    drop(password);
    user
}

/// Another name for it, which sets its arguments right.
struct Shouts(ToolSpec);

impl Tool for Shouts {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(std::future::ready(Ok("HI".into())))
    }

    fn correction(&self, _: &Json, _: &Context) -> Option<Correction> {
        let arguments = json!({ "user": "ann", "password": "hunter2" });
        Some(Correction::new("louder", arguments, "nobody was named"))
    }
}

// spec: TE-11, TE-27, TE-33
#[test]
fn each_call_is_logged_without_its_secrets() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let run = Context::new(
        "run".into(),
        "session".into(),
        Arc::new(VirtualClock::new()),
        Arc::new(SeededIds::new(1)),
    );
    tracing::subscriber::with_default(subscriber, || {
        let registry = ToolRegistry::new();
        registry.register(login).unwrap();
        registry.register(Calculator::new()).unwrap();
        let engine = ToolEngine::new(registry);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (tool, arguments) in [
            ("login", json!({ "user": "ann", "password": "hunter2" })),
            ("calculator", json!({ "expression": "1/0" })),
            ("calculator", json!({ "sum": 1 })),
        ] {
            runtime.block_on(engine.execute_tool_call(tool, arguments, &run));
        }
        let cut_off = ToolCall::from_json_text("c4", "login", r#"{"user": "ann", "password": "hunt"#);
        runtime.block_on(engine.prepare(CallId::new(CommandId(1), 0), &cut_off, &run));
        // Tried again by whoever asked for it.
        let again = ToolCall::new("c5", "calculator", json!({ "expression": "1+1" }));
        let prepared = runtime.block_on(engine.prepare(CallId::new(CommandId(1), 1), &again, &run));
        let Prepared::Ready(mut ready) = prepared else { panic!("{prepared:?}") };
        ready.started_before = 2;
        runtime.block_on(engine.execute(ready, &run));
        let options = EngineOptions::default().correcting(["louder"]);
        let engine = engine.with_options(options);
        let mut spec = login.into_tool().spec().clone();
        spec.name = "shouts".to_owned();
        let tool: Arc<dyn Tool> = Arc::new(Shouts(spec));
        engine.registry().register(tool).unwrap();
        runtime.block_on(engine.execute_tool_call("shouts", json!({}), &run));
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let text: Vec<&str> = text.lines().map(str::trim_start).collect();
    expect![[r#"
        INFO archon::tools: tool call inspected run="run" call="call_00010001" tool="login" validation="ready" validation_ms=0 arguments={"user":"ann","password":"****"}
        INFO archon::tools: tool call finished run="run" call="call_00010001" tool="login" attempt=1 execution_ms=0 outcome="success"
        INFO archon::tools: tool call inspected run="run" call="call_00010002" tool="calculator" validation="ready" validation_ms=0 arguments={"expression":"1/0"}
        WARN archon::tools: tool call failed run="run" call="call_00010002" tool="calculator" attempt=1 execution_ms=0 outcome="error" error="Division by zero"
        INFO archon::tools: tool call inspected run="run" call="call_00010003" tool="calculator" validation="validation_error" validation_ms=0 arguments={"sum":1}
        WARN archon::tools: tool call malformed run="run" call="c4" tool="login" error="EOF while parsing a string at line 1 column 33"
        INFO archon::tools: tool call inspected run="run" call="c4" tool="login" validation="malformed_arguments" validation_ms=0 arguments={}
        INFO archon::tools: tool call inspected run="run" call="c5" tool="calculator" validation="ready" validation_ms=0 arguments={"expression":"1+1"}
        INFO archon::tools: tool call finished run="run" call="c5" tool="calculator" attempt=3 execution_ms=0 outcome="success"
        WARN archon::tools: arguments corrected run="run" call="call_00010004" tool="shouts" correction="louder" arguments={"user":"ann","password":"****"}
        INFO archon::tools: tool call inspected run="run" call="call_00010004" tool="shouts" validation="ready" validation_ms=0 arguments={}
        INFO archon::tools: tool call finished run="run" call="call_00010004" tool="shouts" attempt=1 execution_ms=0 outcome="success""#]].assert_eq(&text.join("\n"));
}
