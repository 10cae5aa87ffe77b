//! Work beside a history of many runs, for the test of what that costs.
//!
//! `history make jsonl|sqlite DIR RUNS` writes a history of so many runs, each in a session of its own, and of three more
//! that wait for a person. `history prompt jsonl|sqlite DIR FIRST COUNT` says something in COUNT of the sessions.
//! `history approvals jsonl|sqlite DIR COUNT` looks COUNT times for what waits.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use archon::{
    Archon, OutcomeStatus, RunOptions, Tool, ToolContext,
    store::{JsonlJournal, MemoryJournal, SqliteJournal},
    tools::FnTool,
    types::{
        AskLater, Durability, Journal, Json, Message, ModelEvent, OpenMode, ProviderError, Record,
        RecordBody, Request, RunFilter, RunId, SessionId, ToolAnnotations, ToolCall, ToolResult, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider};
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
    let provider = Arc::new(FnProvider::new(answer));
    Ok(Archon::builder()
        .provider(provider, "scripted")
        .tool(pay())
        .approver(Arc::new(AskLater))
        .journal(journal)
        .build()?)
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
    let journal = Arc::new(MemoryJournal::new());
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("run"));
    agent(journal.clone())?.run_with(task, options).await.ended();
    Ok(journal.read(&RunId::new("run")).await?)
}

/// Copies of two runs, ten minutes apart.
async fn make(journal: &dyn Journal, runs: u64) -> Result<()> {
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
    // The first list of logs makes their index.
    journal.list(&RunFilter::all().limit(1)).await?;
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

async fn approvals(journal: Arc<dyn Journal>, count: u64) -> Result<()> {
    let agent = agent(journal)?;
    for _ in 0..count {
        let open = agent.approvals(None).await?.len() as u64;
        ensure!(open == WAITING, "{open} questions");
    }
    println!("{WAITING} questions");
    Ok(())
}
