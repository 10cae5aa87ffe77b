//! Two ways to answer, and a judge. `cargo run -p archon-agents --example parallel -- ollama:qwen3 "Why is the sky blue?"`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::sync::Arc;

use archon::{Archon, RunOptions};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let model = args.next().unwrap_or("ollama:qwen3".into());
    let task = args.next().unwrap_or("Why is the sky blue?".into());
    let agent = Archon::builder().model(model.clone()).build()?;
    let brief = Archon::builder().model(model.clone()).system("Answer in one sentence.").build()?;
    let thorough = Archon::builder().model(model).system("Explain step by step.").build()?;

    let both = agent.parallel([brief, thorough], Arc::new(agent.judge()))?;
    let chosen = both.run(task).await?;
    for warning in &chosen.choice.warnings {
        eprintln!("warning: {warning}");
    }
    println!("{}", chosen.reply.into_text()?);
    println!("chosen: {:?}, because: {}", chosen.choice.selected, chosen.choice.reason.unwrap_or_default());

    // The session goes on with the answer that was chosen.
    let next = agent.run_with("Say it to a child.", RunOptions::in_session(chosen.session)).await?;
    println!("{}", next.into_text()?);
    Ok(())
}
