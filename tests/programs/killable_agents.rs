//! A run that calls sub-agents and kills its own process at a chosen record of any of its runs, and another
//! process that takes it up.
//!
//! `killable_agents DIR jsonl|sqlite start|resume [KILL_AT]` works on the run `victim` in DIR. With KILL_AT
//! the process gets SIGKILL from itself right after that record, counted from 0 over all runs. Every side
//! effect is a line in `DIR/effects`.

#![allow(clippy::print_stdout, reason = "a program prints")]

mod killing_journal;

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use archon::{
    Archon, RunOptions, SubAgentTool, ToolContext, ToolError,
    tools::FnTool,
    types::{
        Effect, Message, ModelEvent, ProviderError, Request, RunId, ToolAnnotations, ToolCall, ToolResult,
        ToolSpec, Usage,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

use killing_journal::KillingJournal;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, kind, mode) = match &args[..] {
        [dir, kind, mode, ..] => (PathBuf::from(dir), kind.as_str(), mode.as_str()),
        _ => bail!("usage: killable_agents DIR jsonl|sqlite start|resume [KILL_AT]"),
    };
    let kill_at = args.get(3).map(|n| n.parse()).transpose().context("KILL_AT")?;
    let worker = Archon::builder()
        .provider(Arc::new(FnProvider::new(worker)), "scripted")
        .tool(effect_tool(&dir, "look", Effect::ReadOnly))
        .tool(effect_tool(&dir, "send", Effect::SideEffect))
        .build()?;
    let boss = Archon::builder()
        .provider(Arc::new(FnProvider::new(boss)), "scripted")
        .tool(SubAgentTool::new("worker", worker))
        .tool(effect_tool(&dir, "send", Effect::SideEffect))
        .journal(Arc::new(KillingJournal::open(&dir, kind, kill_at)?))
        .build()?;
    let run = RunId::new("victim");
    let outcome = match mode {
        "start" => {
            let mut options = RunOptions::default();
            options.run = Some(run);
            boss.run_with("Have it done.", options).await.ended()
        }
        "resume" => boss.resume(run).await?.reply().await.ended(),
        other => bail!("{other}: start or resume"),
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

type Answer = Vec<Result<ModelEvent, ProviderError>>;

fn answers(request: &Request) -> usize {
    request.messages.iter().filter(|m| matches!(&***m, Message::Assistant(_))).count()
}

fn metered(mut answer: Answer) -> Answer {
    if let Some(Ok(ModelEvent::Done(message))) = answer.last_mut() {
        message.usage = Usage { input: 10, output: 5, ..Usage::default() };
    }
    answer
}

/// One worker, then two side by side, then an effect of its own.
fn boss(_: usize, request: &Request) -> Answer {
    let work = |task: &str| ToolCall::new(format!("call_{task}"), "worker", json!({"task": task}));
    metered(match answers(request) {
        0 => FnProvider::calls(vec![work("a")]),
        1 => FnProvider::calls(vec![work("b"), work("c")]),
        2 => FnProvider::calls(vec![ToolCall::new("call_send", "send", json!({"what": "boss"}))]),
        _ => FnProvider::text("It is done."),
    })
}

/// Looks and sends, then looks again, and then says that its task is done.
fn worker(_: usize, request: &Request) -> Answer {
    let task = request.messages.iter().next().map(|m| m.text()).unwrap_or_default();
    let call = |kind: &str, n| ToolCall::new(format!("call_{kind}"), kind, json!({"what": task, "n": n}));
    metered(match answers(request) {
        0 => FnProvider::calls(vec![call("look", 0), call("send", 0)]),
        1 => FnProvider::calls(vec![call("look", 1)]),
        _ => FnProvider::text(&format!("{task} is done.")),
    })
}

fn effect_tool(dir: &Path, name: &'static str, effect: Effect) -> impl archon::Tool + use<> {
    let schema = json!({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]});
    let mut annotations = ToolAnnotations::default();
    annotations.effect = effect;
    let spec =
        ToolSpec::new(name, format!("Leaves a line that says {name}."), schema).with_annotations(annotations);
    let path = dir.join("effects");
    FnTool::new(spec, move |arguments: serde_json::Value, _: ToolContext| {
        let path = path.clone();
        async move {
            let line = format!("{name} {}\n", arguments["what"].as_str().unwrap_or_default());
            let write =
                || OpenOptions::new().create(true).append(true).open(&path)?.write_all(line.as_bytes());
            write().map_err(|e: std::io::Error| ToolError::Failed(format!("{}: {e}", path.display())))?;
            Ok(ToolResult::success(format!("{name} done")))
        }
    })
}
