//! The server that the browser tests of the dashboard are run against. It prints one line of JSON, the variables of
//! `tests/dashboard/README.md`, and serves on a free port of this machine until its standard input ends. With `--long` it
//! has a run of 100,000 records.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{io, sync::Arc, thread, time::Duration};

use anyhow::{Result, bail};
use archon::{
    RunId, Runs, SystemClock,
    memory::InMemoryStore,
    server::{
        AccessToken, AllowedHosts, Role, Scope, ServeOptions, Server, ServerOptions, TokenLimits, serve,
    },
    store::{InMemoryTaskStore, JsonlJournal},
    triggers::{Schedule, TriggerEngine, TriggerParts, TriggerTask},
    types::{CancellationToken, Clock, MemoryChange, MemoryEntry, MemoryStore, RunKind, StartRun, StartRuns},
};
use serde_json::json;
use tokio::net::TcpListener;

mod long_log;
mod plans;
mod walker;

#[tokio::main]
async fn main() -> Result<()> {
    let is_long = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--long") => true,
        Some(other) => bail!("`{other}` is not understood; usage: dashboard_server [--long]"),
    };
    // In files, as those of the command.
    let folder = tempfile::tempdir()?;
    let journal = JsonlJournal::open(folder.path())?;
    let runs = walker::runs(&journal)?;
    let plan = run_to_end(&runs, StartRun::new("Compare two towns").kind(RunKind::Plan)).await?;
    let mut long = None;
    if is_long {
        let short = run_to_end(&runs, StartRun::new("count 2")).await?;
        long = Some(long_log::write(&journal, &short).await?);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let end = CancellationToken::new();
    let tasks = tasks(&runs).await?;
    let server = server(&runs, &tasks, AllowedHosts::of_address(address, []), end.clone()).await?;
    let variables = json!({
        "DASHBOARD_LINK": format!("http://{address}{}", server.one_time_link("admin")?),
        "DASHBOARD_VIEWER_LINK": format!("http://{address}{}", server.one_time_link("viewer")?),
        "DASHBOARD_PLAN_RUN": plan,
        "DASHBOARD_LONG_RUN": long,
    });
    println!("{variables}");
    let at_end = end.clone();
    // A thread of its own, which the end of the program does not wait for.
    thread::spawn(move || {
        drop(io::copy(&mut io::stdin(), &mut io::sink()));
        at_end.cancel();
    });
    let options = ServeOptions::default();
    let served = async { anyhow::Ok(serve(server.router(), listener, &options, &end).await?) };
    let worked = async { Ok(tasks.serve(end.clone()).await?) };
    tokio::try_join!(served, worked)?;
    Ok(())
}

/// Starts a run that asks nobody, and waits for its end.
async fn run_to_end(runs: &Runs, request: StartRun) -> Result<RunId> {
    let run = runs.start(request).await?.run;
    drop(runs.reply(&run).await?);
    Ok(run)
}

/// Returns a server with a token for each of two roles, whose limits no test reaches.
async fn server(
    runs: &Runs,
    tasks: &TriggerEngine,
    hosts: AllowedHosts,
    end: CancellationToken,
) -> Result<Server> {
    let scope = Scope::new(Arc::new(runs.clone())).with_memories(Arc::new(memories().await?));
    let scope = scope
        .with_tasks(Arc::new(tasks.clone()))
        .with_description("walker", "It does what the last message says.");
    let limits = TokenLimits::default().with_requests_per_minute(100_000).with_starts_per_hour(10_000);
    let token = |role: Role| {
        let token = AccessToken::random(role.as_str(), role, scope.clone());
        token.map(|token| token.with_limits(limits.clone()))
    };
    let tokens = [token(Role::Admin)?, token(Role::Viewer)?];
    let mut options = ServerOptions::default().with_dashboard().with_end(end);
    // The tests use the second link when most of them are done.
    options.link_time = Duration::from_secs(60 * 60);
    Ok(Server::new(hosts, tokens, Arc::new(SystemClock), options))
}

/// Returns the engine of one task, whose time does not come during the tests.
async fn tasks(runs: &Runs) -> Result<TriggerEngine> {
    let (store, clock) = (Arc::new(InMemoryTaskStore::new()), Arc::new(SystemClock));
    let engine = TriggerEngine::new(Arc::new(runs.clone()), store, clock, TriggerParts::new());
    let new_year = Schedule::cron("0 8 1 1 *", "Asia/Shanghai")?;
    engine.create_task(TriggerTask::new("mail", new_year, "Summarize unread emails")).await?;
    Ok(engine)
}

async fn memories() -> Result<InMemoryStore> {
    let store = InMemoryStore::new();
    let texts = ["Anna likes tea", "Ben likes coffee", "The archive closes at noon"];
    let entry = |(number, text): (u32, &str)| MemoryEntry::new(format!("m{number}"), text, SystemClock.now());
    store.apply((1..).zip(texts).map(entry).map(MemoryChange::put).collect()).await?;
    Ok(store)
}
