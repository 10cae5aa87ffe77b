//! A trip that a small model plans and works on, step by step: the plan is held to a schema that lets no circle through.
//!
//! Any server of the OpenAI-compatible protocol that holds answers to a schema will do, for instance llama.cpp's:
//! `cargo run -p archon-agents --features planner --example trip -- http://127.0.0.1:8080/v1 gemma-3-270m`
//!
//! `docs/trip-to-paris.md` shows what it printed with a model of 270 million parameters.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use anyhow::{Context, ensure};
use archon::{
    Archon, Outcome, OutcomeStatus,
    planner::{LlmPlanner, LlmPlannerOptions, PlanFormat, fold, render},
    providers::{OpenAiCompatible, OpenAiOptions},
    types::RequestOptions,
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let url = words.next().context("the address of a server, up to and including /v1")?;
    let model = words.next().context("the name of a model")?;
    let goal = words.next().unwrap_or_else(|| "Plan a 3-day trip to Paris".to_owned());

    let provider = Arc::new(OpenAiCompatible::new(&url, OpenAiOptions::default())?);
    let mut short = RequestOptions::default();
    (short.temperature, short.max_tokens) = (Some(0.0), Some(48));
    let agent = Archon::builder().provider(provider.clone(), &model).request_options(short).build()?;

    // Four subtasks, each of which can only need those before it.
    let mut options = LlmPlannerOptions::default();
    options.outline = Some(4);
    options.request.temperature = Some(0.0);
    options.request.max_tokens = Some(400);
    let planner = LlmPlanner::new(provider, &model).with_options(options);
    let planning = agent.planning(planner);

    // A plan that failed is shown as one that did not.
    let outcome = Outcome::of_result(planning.run(&goal).await)?;
    let log = agent.journal().read(&outcome.run).await?;
    let machine = fold(&log).context("the log of a plan")?;
    println!("{}", render(&machine.task(), PlanFormat::Text));
    for node in machine.nodes() {
        let said = node.result.as_ref().map(|result| result.text()).unwrap_or_default();
        println!("[{}] {}", node.subtask.id, said.trim());
    }
    println!(
        "\n{}\n({} tokens in all)",
        outcome.last_text().unwrap_or_default().trim(),
        outcome.spending().tokens
    );
    ensure!(
        outcome.status == OutcomeStatus::Finished,
        "the plan did not come to its end: {:?}",
        outcome.error
    );
    Ok(())
}
