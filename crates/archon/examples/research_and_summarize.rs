//! Research and summarize: a tool made of three others. It searches for a topic, reads as many pages as `depth` says, beside
//! each other, and joins what they say. The model makes one call, and reads one result. Without a network: the pages and the
//! model are scripted. `cargo run -p archon-agents --features composite --example research_and_summarize`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use archon::{
    Archon, ToolEngine, ToolError, ToolRegistry,
    providers::{ScriptedProvider, Step},
    tool,
    tools::{Composite, CompositeTool, IntoTool, OnNodeFailure, ToolNode},
};
use serde_json::json;

#[allow(dead_code, reason = "a test tells the story, too")]
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    print!("{}", story().await?);
    Ok(())
}

/// The tool's result and the agent's answer.
pub(crate) async fn story() -> anyhow::Result<String> {
    let model = ScriptedProvider::new([
        Step::call("r", "research_and_summarize", json!({"topic": "tides", "depth": 3})),
        Step::reply(|request| {
            let read = request.messages.iter().last().map(|message| message.text()).unwrap_or_default();
            Step::text(format!("I read:\n{read}"))
        }),
    ]);
    let agent =
        Archon::builder().provider(Arc::new(model), "scripted").tool(research_and_summarize()?).build()?;
    Ok(agent.run("What do pages say about tides?").await?.into_text()? + "\n")
}

/// The tool: `find` gives each address to `page`, which is called once for each, and `page` gives all texts to `sum`.
fn research_and_summarize() -> anyhow::Result<CompositeTool> {
    let registry = ToolRegistry::new();
    registry.register_all([web_search.into_tool(), web_fetch.into_tool(), summarize.into_tool()])?;
    let mut research = Composite::new(
        "research_and_summarize",
        "Finds pages about a topic, reads the first ones, and sums up what they say.",
    );
    research
        .add_node(
            ToolNode::new("find", "web_search")
                .parameter("query", "topic")
                .parameter("limit", "depth")
                .gives("/results", "page", "url"),
        )?
        .add_node(
            ToolNode::new("page", "web_fetch")
                .for_each("url", "/url")
                // A page that cannot be read is left out.
                .on_failure(OnNodeFailure::Continue)
                .gives("", "sum", "pages"),
        )?
        .add_node(ToolNode::new("sum", "summarize"))?;
    let problems = |problems: Vec<archon::tools::CompositeProblem>| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(lines.join("; "))
    };
    research.into_tool(ToolEngine::new(registry)).map_err(problems)
}

/// Finds pages about a query.
#[tool(read_only, concurrency_safe)]
async fn web_search(query: String, limit: u32) -> String {
    let results: Vec<_> =
        (1..=limit).map(|n| json!({"url": format!("https://example.org/{query}/{n}")})).collect();
    json!({ "results": results }).to_string()
}

/// Reads a page.
#[tool(read_only, concurrency_safe)]
async fn web_fetch(url: String) -> Result<String, ToolError> {
    match url.ends_with("/2") {
        true => Err(ToolError::new("404 Not Found")),
        false => Ok(format!("{url}: The moon pulls the water.")),
    }
}

/// Joins what pages say. With a real model this is a tool that asks one.
#[tool(read_only)]
async fn summarize(pages: Vec<String>) -> String {
    pages.join("\n")
}
