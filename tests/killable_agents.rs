//! A run that calls sub-agents and kills its own process at a chosen record of any of its runs, and another
//! process that takes it up.
//!
//! `killable_agents DIR jsonl|sqlite start|resume [KILL_AT]` works on the run `victim` in DIR. With KILL_AT
//! the process gets SIGKILL from itself right after that record, counted from 0 over all runs. Every side
//! effect is a line in `DIR/effects`.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result, bail};
use archon::{
    Archon, RunOptions, SubAgentTool, ToolContext, ToolError,
    store::{JsonlJournal, SqliteJournal},
    tools::FnTool,
    types::{
        BoxFuture, Durability, Effect, Journal, JournalError, Message, ModelEvent, OpenMode, OpenRun,
        ProviderError, Record, Request, RunHead, RunId, RunWriter, ToolAnnotations, ToolCall, ToolResult,
        ToolSpec, Usage,
    },
};
use archon_testkit::FnProvider;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, kind, mode) = match &args[..] {
        [dir, kind, mode, ..] => (PathBuf::from(dir), kind.as_str(), mode.as_str()),
        _ => bail!("usage: killable_agents DIR jsonl|sqlite start|resume [KILL_AT]"),
    };
    let kill_at = args.get(3).map(|n| n.parse()).transpose().context("KILL_AT")?;
    let inner: Arc<dyn Journal> = match kind {
        "jsonl" => Arc::new(JsonlJournal::open(&dir)?),
        "sqlite" => Arc::new(SqliteJournal::open(dir.join("runs.db"))?),
        other => bail!("{other}: jsonl or sqlite"),
    };
    let worker = Archon::builder()
        .provider(Arc::new(FnProvider::new(worker)), "scripted")
        .tool(effect_tool(&dir, "look", Effect::ReadOnly))
        .tool(effect_tool(&dir, "send", Effect::SideEffect))
        .build()?;
    let boss = Archon::builder()
        .provider(Arc::new(FnProvider::new(boss)), "scripted")
        .tool(SubAgentTool::new("worker", worker))
        .tool(effect_tool(&dir, "send", Effect::SideEffect))
        .journal(Arc::new(KillingJournal { inner, kill_at, written: Arc::default() }))
        .build()?;
    let run = RunId::new("victim");
    let outcome = match mode {
        "start" => {
            let mut options = RunOptions::default();
            options.run = Some(run);
            boss.run_with("Have it done.", options).await?
        }
        "resume" => boss.resume(run).await?.outcome().await?,
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

/// A journal whose process dies right after a chosen record, whichever run it belongs to.
struct KillingJournal {
    inner: Arc<dyn Journal>,
    kill_at: Option<u64>,
    written: Arc<AtomicU64>,
}

struct KillingWriter {
    inner: Box<dyn RunWriter>,
    kill_at: Option<u64>,
    written: Arc<AtomicU64>,
}

impl Journal for KillingJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer } = self.inner.open(run, mode).await?;
            let (kill_at, written) = (self.kill_at, self.written.clone());
            Ok(OpenRun { records, writer: Box::new(KillingWriter { inner: writer, kill_at, written }) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<RunHead>, JournalError>> {
        self.inner.list()
    }
}

impl RunWriter for KillingWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            for record in records {
                self.inner.append(std::slice::from_ref(record), durability).await?;
                if Some(self.written.fetch_add(1, Ordering::Relaxed)) == self.kill_at {
                    let me = rustix::process::getpid();
                    let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
                    std::future::pending::<()>().await;
                }
            }
            Ok(())
        })
    }
}
