//! Work beside a history of many runs, for the test of what that costs.
//!
//! `history make jsonl|sqlite DIR RUNS` writes a history of so many runs, each in a session of its own, and of three more
//! that wait for a person. `history prompt jsonl|sqlite DIR FIRST COUNT` says something in COUNT of the sessions.
//! `history approvals jsonl|sqlite DIR COUNT` looks COUNT times for what waits.
//! `history session jsonl|sqlite DIR RUNS` makes a session of so many runs, whose window is full after a few of them, and
//! `history say jsonl|sqlite DIR COUNT` says COUNT things in it.
//! `history message jsonl|sqlite DIR COUNT` sends COUNT messages to an assistant.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use archon::{
    Archon, ArchonBuilder, OutcomeStatus, RunOptions, SystemClock, Tool, ToolContext,
    orchestrator::{Assistant, InMemoryPoolIndex, Incoming},
    store::{InMemoryJournal, JsonlJournal, SqliteJournal},
    tools::FnTool,
    types::{
        AskLater, ContextConfig, Durability, Journal, Json, Message, ModelEvent, OpenMode, ProviderError,
        Record, RecordBody, Request, RunFilter, RunId, SessionId, TenantId, Timestamp, ToolAnnotations,
        ToolCall, ToolResult, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use serde_json::json;

/// How many runs wait.
const WAITING: u64 = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, store, dir, numbers @ ..] = &args[..] else { bail!("history WHAT STORE DIR N...") };
    let journal = open(store, Path::new(dir))?;
    let numbers = numbers.iter().map(|n| n.parse()).collect::<Result<Vec<u64>, _>>().context("N")?;
    match (what.as_str(), &numbers[..]) {
        ("make", [runs]) => make(&*journal, *runs).await,
        ("prompt", [first, count]) => prompt(journal, *first, *count).await,
        ("approvals", [count]) => approvals(journal, *count).await,
        ("session", [runs]) => session(journal, *runs).await,
        ("say", [count]) => say(&with_small_window(journal).build()?, *count).await,
        ("message", [count]) => message(journal, *count).await,
        _ => bail!("there is no {what} of {numbers:?}"),
    }
}

fn open(store: &str, dir: &Path) -> Result<Arc<dyn Journal>> {
    Ok(match store {
        "jsonl" => Arc::new(JsonlJournal::open(dir)?),
        "sqlite" => Arc::new(SqliteJournal::open(dir.join("runs.db"))?),
        other => bail!("{other}: jsonl or sqlite"),
    })
}

fn agent(journal: Arc<dyn Journal>) -> Result<Archon> {
    Ok(builder(journal).build()?)
}

fn builder(journal: Arc<dyn Journal>) -> ArchonBuilder {
    let provider = Arc::new(FnProvider::new(answer));
    Archon::builder().provider(provider, "scripted").tool(pay()).approver(Arc::new(AskLater)).journal(journal)
}

fn with_small_window(journal: Arc<dyn Journal>) -> ArchonBuilder {
    let mut window = ContextConfig::new(400);
    (window.system_prompt_tokens, window.min_interval_ms, window.keep_recent) = (0, 0, 4);
    builder(journal).context(window)
}

fn answer(_: usize, request: &Request) -> Vec<Result<ModelEvent, ProviderError>> {
    match request.messages.last().map(|message| &**message) {
        Some(Message::User(_)) if request.messages.last().is_some_and(|m| m.text() == "Pay.") => {
            FnProvider::calls(vec![ToolCall::new("call_1", "pay", json!({}))])
        }
        _ => FnProvider::text("Done."),
    }
}

fn pay() -> impl Tool {
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = true;
    let spec = ToolSpec::new("pay", "Pays.", json!({"type": "object"})).with_annotations(annotations);
    FnTool::new(spec, |_: Json, _: ToolContext| async { Ok(ToolResult::success("paid")) })
}

/// The records of a run of this task.
async fn records(task: &str) -> Result<Vec<Arc<Record>>> {
    let journal = Arc::new(InMemoryJournal::new());
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("run"));
    agent(journal.clone())?.run_with(task, options).await.ended();
    Ok(journal.read(&RunId::new("run")).await?)
}

/// Copies of two runs, ten minutes apart.
async fn make(journal: &dyn Journal, runs: u64) -> Result<()> {
    // The first list of logs makes their index, which is kept from then on.
    journal.list(&RunFilter::all().limit(1)).await?;
    let (ended, waiting) = (records("Hello.").await?, records("Pay.").await?);
    let mut waits = 0;
    for n in 0..runs {
        copy(journal, &ended, &format!("run_{n}"), &format!("s{n}"), 2 * n).await?;
        // In the middle of the others, as far from each other as there is room.
        if waits < WAITING && n * (WAITING + 1) >= (waits + 1) * runs {
            copy(journal, &waiting, &format!("waiting_{n}"), &format!("w{n}"), 2 * n + 1).await?;
            waits += 1;
        }
    }
    Ok(())
}

async fn copy(journal: &dyn Journal, of: &[Arc<Record>], run: &str, session: &str, place: u64) -> Result<()> {
    let later = Duration::from_secs(300 * place);
    let records = of.iter().map(|record| {
        let mut record = (**record).clone();
        record.at = record.at + later;
        if let RecordBody::RunStarted(started) = &mut record.body {
            (started.run, started.session) = (RunId::new(run), SessionId::new(session));
        }
        Arc::new(record)
    });
    let records: Vec<_> = records.collect();
    let mut open = journal.open(&RunId::new(run), OpenMode::Create).await?;
    Ok(open.writer.append(&records, Durability::Buffered).await?)
}

async fn prompt(journal: Arc<dyn Journal>, first: u64, count: u64) -> Result<()> {
    let agent = agent(journal)?;
    for n in first..first + count {
        let session = SessionId::new(format!("s{n}"));
        let outcome = agent.run_with("And now?", RunOptions::in_session(session)).await.ended();
        ensure!(outcome.status == OutcomeStatus::Finished, "{outcome:?}");
    }
    Ok(())
}

/// A minute apart, long ago.
async fn session(journal: Arc<dyn Journal>, runs: u64) -> Result<()> {
    journal.list(&RunFilter::all().limit(1)).await?;
    let clock = VirtualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let agent = with_small_window(journal).clock(Arc::new(clock.clone())).build()?;
    for _ in 0..runs {
        say(&agent, 1).await?;
        clock.advance(Duration::from_secs(60));
    }
    Ok(())
}

async fn say(agent: &Archon, count: u64) -> Result<()> {
    for _ in 0..count {
        let options = RunOptions::in_session(SessionId::new("long"));
        let reply = agent.run_with("Say how far the work on the long report is. ".repeat(8), options).await?;
        reply.into_text()?;
    }
    Ok(())
}

async fn message(journal: Arc<dyn Journal>, count: u64) -> Result<()> {
    let archon = agent(journal)?;
    let pool = archon.pool(Arc::new(InMemoryPoolIndex::default()));
    let assistant = Assistant::new("You are Koi.", Arc::new(archon), pool, Arc::new(SystemClock));
    for _ in 0..count {
        let reply = assistant.handle_message(Incoming::person(TenantId::new("anna"), "Hello.")).await?;
        ensure!(reply.text == "Done.", "{reply:?}");
    }
    Ok(())
}

async fn approvals(journal: Arc<dyn Journal>, count: u64) -> Result<()> {
    let agent = agent(journal)?;
    for _ in 0..count {
        let open = agent.approvals(None).await?.len() as u64;
        ensure!(open == WAITING, "{open} questions");
    }
    println!("{WAITING} questions");
    Ok(())
}
