//! The program of the chapter "Coming from other frameworks", written with rig. Arguments: MODEL MESSAGE. Checked by
//! reading the source of rig 0.44 only, and not yet built.

use rig::{
    agent::{AgentHook, DispatchAction, DispatchEvent, HookContext},
    core::effect::EffectKind,
    prelude::*,
    providers::openai::{OpenAIConfig, Route},
    rig_tool,
    tool::ToolExecutionError,
};

/// Pays a part of an order's price back.
#[rig_tool]
fn refund(order: String, cents: u64) -> Result<String, ToolExecutionError> {
    Ok(format!("refunded {cents} cents of order {order}"))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refunded {
    text: String,
    cents: u64,
}

struct Terminal;

impl AgentHook for Terminal {
    async fn on_dispatch(&self, _: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        let EffectKind::ToolCall { name, args } = event.kind else { return DispatchAction::proceed() };
        println!("{name} {args}? [y/N]");
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        match read.is_ok() && line.trim() == "y" {
            true => DispatchAction::proceed(),
            false => DispatchAction::skip("The person said no."),
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let model = OpenAIConfig::from_env()?.with_route(Route::Chat).client().completion(&args[1]);
    let desk = AgentBuilder::new(model).tool(Refund).add_hook(Terminal).default_max_turns(8).build();
    let mut history: Vec<Message> = match std::fs::read("desk.json") {
        Ok(json) => serde_json::from_slice(&json)?,
        Err(_) => Vec::new(),
    };
    let answer = desk.prompt_typed::<Refunded>(args[2].as_str()).history(history.clone()).await?;
    history.extend(answer.messages);
    std::fs::write("desk.json", serde_json::to_vec(&history)?)?;
    println!("{} ({} cents)", answer.output.text, answer.output.cents);
    Ok(())
}
