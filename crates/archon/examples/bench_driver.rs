//! An agent with one tool, to be measured against a mock model server beside other frameworks, and beside `floor.rs`, the
//! least that does the same work. `driver/contract.rs` says what it takes and prints.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

#[path = "driver/contract.rs"]
mod driver;

use std::sync::Arc;

use anyhow::{Result, ensure};
use archon::{
    Archon, Event, RunOptions, Tool, ToolContext, ToolError,
    providers::{OpenAiCompatible, OpenAiOptions},
    tools::FnTool,
    types::{DeltaKind, ExecutionLimits, Sink, ToolAnnotations, ToolResult, ToolSpec},
};
use driver::{Args, Counters, PROMPT, SYSTEM, drive};

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse()?;
    let counters = Counters::new();
    let provider = Arc::new(OpenAiCompatible::new(&args.base_url, OpenAiOptions::default())?);
    let agent = |model: &str| {
        let mut limits = ExecutionLimits::default();
        limits.max_turns = 1000;
        limits.max_total_tokens = u64::MAX;
        let agent = Archon::builder()
            .provider(provider.clone(), model)
            .system(SYSTEM)
            .limits(limits)
            .tool(add_tool(counters.clone()))
            .build()?;
        Ok((agent, counters.clone()))
    };
    drive(&args, counters.clone(), agent, |(agent, counters)| one_run(agent, counters)).await
}

fn add_tool(counters: Arc<Counters>) -> impl Tool + use<> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    });
    let spec = ToolSpec::new("add", "Add two numbers", schema).with_annotations(ToolAnnotations::read_only());
    FnTool::new(spec, move |arguments: serde_json::Value, _: ToolContext| {
        let counters = counters.clone();
        async move {
            let number = |key: &str| {
                arguments[key]
                    .as_i64()
                    .ok_or_else(|| ToolError::InvalidArgs(format!("{key} is not a number")))
            };
            let sum = counters.add(number("a")?, number("b")?);
            Ok(ToolResult::success(sum.to_string()))
        }
    })
}

/// Counts the deltas of text.
struct Deltas(Arc<Counters>);

impl Sink for Deltas {
    fn emit(&self, event: Event) {
        if let Event::Delta(delta) = event
            && let DeltaKind::Text { .. } = delta.kind
        {
            self.0.count_delta();
        }
    }
}

async fn one_run(agent: Archon, counters: Arc<Counters>) -> Result<()> {
    let options = RunOptions::default().watched_by(Arc::new(Deltas(counters)));
    let outcome = agent.run_with(PROMPT, options).await?.into_outcome();
    ensure!(outcome.is_finished(), "{:?}: {}", outcome.status, outcome.error.unwrap_or_default());
    Ok(())
}
