//! An agent with one tool. `cargo run -p archon-agents --example hello -- ollama:qwen3 "What is 19 + 23?"`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use archon::{Archon, tool};

/// Adds two whole numbers and returns the sum.
#[tool(read_only)]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (model, task) = (args.next().unwrap_or("ollama:qwen3".into()), args.next());
    let agent = Archon::builder().model(model).tool(add).build()?;
    let reply = agent.run(task.unwrap_or("What is 19 + 23?".into())).await?;
    println!("{}", reply.into_text()?);
    Ok(())
}
