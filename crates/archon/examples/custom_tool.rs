//! Three ways to write a tool: a function, a function that works with a database, and the trait for everything else.
//! Without a network: the model is scripted. `cargo run -p archon-agents --example custom_tool`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use archon::{
    Archon, Tool, ToolContext, ToolError, ToolResult,
    providers::{ScriptedProvider, Step},
    tool,
    types::{Answer, ApprovalRequest, Approver, BoxFuture, Decision, Json, ToolSpec},
};
use serde_json::json;

/// Adds two whole numbers and returns the sum.
#[tool(read_only)]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

/// Orders and what was paid back of them; stands for a pool of connections.
#[derive(Clone, Default)]
struct Database(Arc<Mutex<BTreeMap<String, u64>>>);

/// Pays a part of an order's price back. Ask for the order's number if you do not know it.
#[tool(requires_confirmation, summary = "Refund {cents} cents of order {order}")]
async fn refund(
    #[state] db: &Database,
    /// The order's number, for instance A-1021.
    order: String,
    cents: u64,
) -> Result<String, ToolError> {
    // `?` takes any error.
    let number: u32 = order.trim_start_matches("A-").parse()?;
    let mut refunds = db.0.lock().map_err(|_| ToolError::new("the database is damaged"))?;
    refunds.insert(order, cents);
    Ok(format!("paid back, receipt {number}-{}", refunds.len()))
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

/// Agrees to all that it is asked.
struct Agrees;

impl Approver for Agrees {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        println!("{} asks: {}", request.agent_name, request.action_summary);
        Decision::Now(Answer::Approve)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let model = ScriptedProvider::new([
        Step::call("a", "add", json!({"a": 19, "b": 23})),
        Step::call("b", "refund", json!({"order": "A-1021", "cents": 42})),
        Step::call("c", "count", json!({})),
        Step::text("It is 42, which I paid back, and I counted once."),
    ]);
    let db = Database::default();
    let agent = Archon::builder()
        .name("support desk")
        .provider(Arc::new(model), "scripted")
        .tool(add)
        .tool(refund(db.clone()))
        .tool(Counter::new())
        .approver(Agrees)
        .build()?;
    println!("{}", agent.run("Pay 19 + 23 cents of order A-1021 back. Count it.").await?.into_text()?);
    println!("paid back: {:?}", db.0.lock().map(|refunds| refunds.clone()).unwrap_or_default());
    Ok(())
}
