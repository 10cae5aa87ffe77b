//! An agent that hands parts of its work to another, which has its own instructions and turns and spends
//! from the same budget. `cargo run -p archon-agents --example sub_agent -- ollama:qwen3`

#![allow(clippy::print_stdout, reason = "a program prints")]

use archon::{Archon, SubAgentTool, tools::builtin, types::ExecutionLimits};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let model = std::env::args().nth(1).unwrap_or("ollama:qwen3".into());
    let accountant = Archon::builder()
        .model(model.clone())
        .name("accountant")
        .system("You calculate with the calculator and answer with the figure alone.")
        .tool(builtin::Calculator::new())
        .build()?;
    let accountant = SubAgentTool::new("accountant", accountant)
        .with_description("Calculates. Say in the task which figures there are and what is to be found out.")
        .with_max_turns(5);
    let mut limits = ExecutionLimits::default();
    limits.max_total_tokens = 50_000; // For both agents together.
    let clerk = Archon::builder().model(model).tool(accountant).limits(limits).build()?;
    let reply = clerk.run("What do 19 chairs at 45.90 cost, and what with 15% off?").await?;
    let answer = reply.into_answer()?;
    println!("{answer}");
    println!(
        "{} tokens, {} more by the accountant",
        answer.usage().total(),
        answer.outcome().child_spending.tokens
    );
    Ok(())
}
