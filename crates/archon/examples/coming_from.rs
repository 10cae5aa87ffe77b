//! The program of the chapter "Coming from other frameworks": an agent with a tool, a person who is asked before the tool
//! acts, a typed answer, and a conversation that goes on in the next process. Its twins in other frameworks are in
//! `tests/peers`; `cargo xtask peers` runs them all. `cargo run -p archon-agents --example coming_from -- MODEL MESSAGE`

#![allow(clippy::print_stdout, reason = "a program prints")]

use archon::{
    Archon, RunOptions, SessionId,
    schemars::{self, JsonSchema},
    tool,
    types::{Answer, ApprovalRequest, Approver, Decision},
};

/// Pays a part of an order's price back.
#[tool(requires_confirmation, summary = "Refund {cents} cents of order {order}")]
async fn refund(order: String, cents: u64) -> String {
    format!("refunded {cents} cents of order {order}")
}

#[derive(serde::Deserialize, JsonSchema)]
struct Refunded {
    text: String,
    cents: u64,
}

struct Terminal;

impl Approver for Terminal {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        println!("{}? [y/N]", request.action_summary);
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        Decision::Now(match read.is_ok() && line.trim() == "y" {
            true => Answer::Approve,
            false => Answer::Cancel { reason: "The person said no.".into() },
        })
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let desk = Archon::builder().model(&args[1]).tool(refund).approver(Terminal).data_dir("desk").build()?;
    let options = RunOptions::in_session(SessionId::new("anna"));
    let answer = desk.run_typed_with::<Refunded>(&args[2], options).await?.value;
    println!("{} ({} cents)", answer.text, answer.cents);
    Ok(())
}
