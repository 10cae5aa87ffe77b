//! A person is asked before something changes: here by a program that says yes to what it knows. Without a network: the
//! model is scripted. `cargo run -p archon-agents --example approval`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use archon::{
    Archon,
    providers::{ScriptedProvider, Step},
    tool,
    tools::{Ask, EngineOptions},
    types::{Answer, ApprovalRequest, Approver, Decision},
};
use serde_json::json;

/// Sends a message to somebody.
#[tool]
async fn send(to: String, text: String) -> String {
    format!("sent to {to}: {text}")
}

/// Says yes to messages to Anna. `types::AskLater` lets the run wait for `Archon::answer` instead.
struct OnlyAnna;

impl Approver for OnlyAnna {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        println!("asked: {}", request.action_summary);
        let answer = match request.details["arguments"]["to"] == "anna" {
            true => Answer::Approve,
            false => Answer::Cancel { reason: "to Anna only".to_owned() },
        };
        Decision::Now(answer)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let model = ScriptedProvider::new([
        Step::call("a", "send", json!({"to": "anna", "text": "Hi"})),
        Step::call("b", "send", json!({"to": "ben", "text": "Hi"})),
        Step::text("Anna was greeted, Ben was not."),
    ]);
    let mut engine = EngineOptions::default();
    engine.ask = Ask::BeforeChanges;
    let agent = Archon::builder()
        .provider(Arc::new(model), "scripted")
        .tool(send)
        .engine_options(engine)
        .approver(OnlyAnna)
        .build()?;
    println!("{}", agent.run("Greet Anna and Ben").await?.into_text()?);
    Ok(())
}
