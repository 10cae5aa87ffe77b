//! A run watched live: text as it arrives, tool calls as they start and end, and the id to resume by.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::io::Write as _;

use archon::{
    Archon, Event, RunOptions,
    tools::builtin,
    types::{DeltaKind, RecordBody},
};
use futures_util::StreamExt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let model = std::env::args().nth(1).unwrap_or("ollama:qwen3".into());
    let agent = Archon::builder().model(model).tool(builtin::Calculator::new()).build()?;
    let mut run = agent.start("What is 15% of 200?", RunOptions::default()).await?;
    while let Some(event) = run.next().await {
        match event {
            Event::Delta(delta) => {
                if let DeltaKind::Text { text } = delta.kind {
                    print!("{text}");
                    std::io::stdout().flush()?;
                }
            }
            Event::Record { record, .. } => {
                if let RecordBody::ToolCallFinished { result, .. } = &record.body {
                    println!("  tool: {}", result.text());
                }
            }
            _ => {}
        }
    }
    let reply = run.reply().await?;
    println!("\n{} is {:?}", reply.run(), reply.outcome().status);
    Ok(())
}
