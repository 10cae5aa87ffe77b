//! Two ways to write a tool: a function, and the trait where a tool keeps something. Without a network: the model is
//! scripted. `cargo run -p archon --example custom_tool`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use archon::{
    Archon, Tool, ToolContext, ToolError, ToolResult,
    providers::{ScriptedProvider, Step},
    tool,
    types::{BoxFuture, Json, ToolSpec},
};
use serde_json::json;

/// Adds two whole numbers and returns the sum.
#[tool(read_only)]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

/// Counts how often it was called.
struct Counter {
    spec: ToolSpec,
    calls: AtomicU64,
}

impl Counter {
    fn new() -> Self {
        let nothing = json!({"type": "object", "properties": {}});
        Self {
            spec: ToolSpec::new("count", "Says how often it was called.", nothing),
            calls: AtomicU64::new(0),
        }
    }
}

impl Tool for Counter {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, _: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(std::future::ready(Ok(ToolResult::success(calls.to_string()))))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let model = ScriptedProvider::new([
        Step::call("a", "add", json!({"a": 19, "b": 23})),
        Step::call("b", "count", json!({})),
        Step::text("It is 42, and I counted once."),
    ]);
    let counter: Arc<dyn Tool> = Arc::new(Counter::new());
    let agent = Archon::builder().provider(Arc::new(model), "scripted").tool(add).tools([counter]).build()?;
    println!("{}", agent.run("What is 19 + 23? Count it.").await?.answer);
    Ok(())
}
