//! A goal that becomes a plan, drawn and followed, without a network: the model and the planner are scripted.
//! `cargo run -p archon-agents --features planner --example plan`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use archon::{
    Archon,
    planner::{PlanFormat, ScriptedPlanner, fold, render},
    providers::ScriptedProvider,
    tool,
    types::SubTask,
};
use serde_json::json;

/// Says how far two towns are from each other, in kilometres.
#[tool(read_only)]
async fn distance(from: String, to: String) -> String {
    let km = if from == "Lyon" || to == "Lyon" { 393 } else { 344 };
    km.to_string()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let to = |town: &str| Some(json!({ "from": "Paris", "to": town }));
    let planner = ScriptedPlanner::new(vec![
        SubTask::new("lyon", "How far is Lyon?").with_tool("distance", to("Lyon")),
        SubTask::new("london", "How far is London?").with_tool("distance", to("London")),
        SubTask::new("compare", "Which one is nearer to Paris?").after(["lyon", "london"]),
    ]);
    let model = ScriptedProvider::texts(["London, by 49 km."]);
    let agent = Archon::builder().provider(Arc::new(model), "scripted").tool(distance).build()?;
    // With a real model: `agent.planner()`.
    let planning = agent.planning(planner);

    let reply = planning.run("Is Lyon or London nearer to Paris?").await?;
    let log = agent.journal().read(reply.run()).await?;
    if let Some(machine) = fold(&log) {
        println!("{}", render(&machine.task(), PlanFormat::Text));
    }
    println!("{}", reply.into_text()?);
    Ok(())
}
