//! A run that kills its own process at a chosen record, and another process that takes it up.
//!
//! `killable DIR jsonl|sqlite start|resume [KILL_AT]` works on the run `victim` in DIR. With KILL_AT the process
//! gets SIGKILL from itself right after it appended that record (from 0). Every side effect is a line
//! in `DIR/effects`, written by a tool that is not told whether it runs for the first time.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

mod killing_journal;

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use archon::{
    Archon, RunOptions, Tool, ToolContext, ToolError,
    tools::FnTool,
    types::{
        Effect, Message, ModelEvent, ModelPrice, ProviderError, Request, RunId, ToolAnnotations, ToolCall,
        ToolResult, ToolSpec, Usage,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

use killing_journal::KillingJournal;

/// Tool turns of the run.
const TURNS: usize = 30;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, kind, mode) = match &args[..] {
        [dir, kind, mode, ..] => (PathBuf::from(dir), kind.as_str(), mode.as_str()),
        _ => bail!("usage: killable DIR jsonl|sqlite start|resume [KILL_AT]"),
    };
    let kill_at = args.get(3).map(|n| n.parse()).transpose().context("KILL_AT")?;
    let journal = KillingJournal::open(&dir, kind, kill_at)?;
    let agent = Archon::builder()
        .provider(Arc::new(FnProvider::new(script)), "scripted")
        .price(ModelPrice::new(1_000_000, 1_000_000))
        .tools(tools(&dir))
        .journal(Arc::new(journal))
        .build()?;
    let run = RunId::new("victim");
    let outcome = match mode {
        "start" => {
            let mut options = RunOptions::default();
            options.run = Some(run);
            agent.run_with("Do all the steps.", options).await.ended()
        }
        "resume" => agent.resume(run).await?.reply().await.ended(),
        other => bail!("{other}: start or resume"),
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

/// Thirty turns, each with a call of every kind, and then the answer. The turn follows from the request
/// alone, so a second process goes on where the first one was.
fn script(_: usize, request: &Request) -> Answer {
    let turn = request.messages.iter().filter(|m| matches!(&***m, Message::Assistant(_))).count();
    if turn >= TURNS {
        return metered(turn, FnProvider::text("All steps are done."));
    }
    let call = |kind: &str| {
        // The same ids in every turn, as some models do.
        ToolCall::new(format!("call_{kind}"), kind, json!({"step": turn}))
    };
    metered(turn, FnProvider::calls(vec![call("look"), call("put"), call("send")]))
}

type Answer = Vec<Result<ModelEvent, ProviderError>>;

/// Each turn takes tokens of its own number, so a sum says which turns are in it.
fn metered(turn: usize, mut answer: Answer) -> Answer {
    if let Some(Ok(ModelEvent::Done(message))) = answer.last_mut() {
        message.usage = Usage { input: 100 + turn as u64, output: 5, ..Usage::default() };
    }
    answer
}

fn tools(dir: &Path) -> Vec<Arc<dyn Tool>> {
    [("look", Effect::ReadOnly), ("put", Effect::Idempotent), ("send", Effect::SideEffect)]
        .into_iter()
        .map(|(name, effect)| Arc::new(effect_tool(dir, name, effect)) as Arc<dyn Tool>)
        .collect()
}

fn effect_tool(dir: &Path, name: &'static str, effect: Effect) -> impl Tool + use<> {
    let schema = json!({"type": "object", "properties": {"step": {"type": "integer"}}, "required": ["step"]});
    let mut annotations = ToolAnnotations::default();
    annotations.effect = effect;
    let spec =
        ToolSpec::new(name, format!("Leaves a line that says {name}."), schema).with_annotations(annotations);
    let path = dir.join("effects");
    FnTool::new(spec, move |arguments: serde_json::Value, _: ToolContext| {
        let path = path.clone();
        async move {
            let step = arguments["step"].as_u64().unwrap_or_default();
            let line = format!("{name} {step}\n");
            let write =
                || OpenOptions::new().create(true).append(true).open(&path)?.write_all(line.as_bytes());
            write().map_err(|e: std::io::Error| ToolError::Failed(format!("{}: {e}", path.display())))?;
            Ok(ToolResult::success(format!("{name} {step} done")))
        }
    })
}
