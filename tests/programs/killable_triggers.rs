//! Serves a task that is due each minute, and one for events, for the tests that kill it.
//!
//! `killable_triggers DIR NOW [END]` serves the tasks in DIR from the time NOW on (Unix milliseconds), with a clock that
//! is 600 times as fast as a real one. With END it ends when each occurrence up to END, and each event, has had its run.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use archon::{
    Archon, Runs,
    store::{JsonlJournal, SqliteTaskStore},
    triggers::{
        EventFilter, ListedTask, MissedRuns, Schedule, TriggerEngine, TriggerError, TriggerParts, TriggerTask,
    },
    types::{BoxFuture, CancellationToken, Clock, RunService, TaskStore, Timestamp},
};
use archon_testkit::FnProvider;

const RATE: u32 = 600;

/// A clock that begins at a chosen time and is fast.
struct FastClock {
    begin: Timestamp,
    started: Instant,
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.begin + self.started.elapsed() * RATE
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(deadline.since(self.now()) / RATE))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, now, ..] = &args[..] else { bail!("usage: killable_triggers DIR NOW [END]") };
    let time = |text: &String| text.parse().map(Timestamp::from_millis).context("a time is no number");
    let (dir, end) = (PathBuf::from(dir), args.get(2).map(time).transpose()?);
    let clock: Arc<dyn Clock> = Arc::new(FastClock { begin: time(now)?, started: Instant::now() });

    let model = FnProvider::new(|_, _| FnProvider::text("Done."));
    let journal = Arc::new(JsonlJournal::open(&dir)?);
    let agent = Archon::builder()
        .provider(Arc::new(model), "scripted")
        .journal(journal)
        .clock(clock.clone())
        .agent_id("worker")
        .build()?;
    let runs = Arc::new(Runs::new(agent));
    let service: Arc<dyn RunService> = runs;
    let tasks = Arc::new(SqliteTaskStore::open(dir.join("tasks.db"))?);
    let engine = TriggerEngine::new(service, tasks.clone(), clock.clone(), TriggerParts::new());
    let every = Schedule::cron("* * * * *", "UTC")?;
    let minutely = TriggerTask::new("minutely", every, "Do it.").missed(MissedRuns::All);
    for task in [minutely, TriggerTask::new("orders", EventFilter::new("shop.*"), "Thank.")] {
        match engine.create_task(task).await {
            Ok(()) | Err(TriggerError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let (serving, stop) = (engine.clone(), CancellationToken::new());
    let until = stop.clone();
    let served = tokio::spawn(async move { serving.serve(until).await });
    let Some(end) = end else { return Ok(served.await??) };
    while engine.list_tasks(None).await?.iter().any(|listed| !is_done(listed, end))
        || !tasks.list().await?.requests.is_empty()
    {
        if served.is_finished() {
            bail!("the engine ended by itself");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    Ok(served.await??)
}

/// Returns true if a task has nothing to do up to a time.
fn is_done(listed: &ListedTask, end: Timestamp) -> bool {
    let is_idle = listed.state.current.is_none() && listed.state.waiting.is_empty();
    is_idle && (listed.task.id.as_str() == "orders" || listed.next.is_some_and(|next| next > end))
}
