//! Measures tasks that start runs: `cargo bench -p archon-agents --features sqlite,triggers --bench tasks`.
//!
//! Prints the processor time of an engine with 10,000 tasks that wait (goal: at most 1 % of a core), and the time until 1,000
//! tasks that are due at once have started their runs, in order (goal: 5 s). The tasks are in SQLite, and the runs in
//! files. It fails if a goal is missed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and stops where it fails")]

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use archon::{
    Archon, Runs, SystemClock,
    store::{JsonlJournal, SqliteTaskStore},
    triggers::{Schedule, TriggerEngine, TriggerParts, TriggerTask},
    types::{
        CancellationToken, Clock, Journal, RunFilter, RunService, StoredTask, TaskChange, TaskStore,
        Timestamp,
    },
};
use archon_testkit::FnProvider;
use serde_json::json;

const WAITING: usize = 10_000;
const DUE: usize = 1_000;
/// The time for which the engine with tasks that wait is measured.
const LOOK: Duration = Duration::from_secs(20);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let share = runtime.block_on(waiting());
    let (started, all) = runtime.block_on(due());
    println!("{WAITING} tasks that wait: {:.3} % of a core", share * 100.0);
    println!("{DUE} tasks that are due at once: all started after {started:?}, all ended after {all:?}");
    assert!(share <= 0.01, "the tasks that wait cost more than 1 % of a core");
    assert!(started <= Duration::from_secs(5), "the tasks that are due did not start within 5 s");
}

/// Returns the share of a core that an engine takes while its tasks wait.
async fn waiting() -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let far = SystemClock.now() + Duration::from_secs(86_400);
    let engine = engine(dir.path(), WAITING, |number| far + Duration::from_secs(number as u64 % 3_600)).await;
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let (engine, stop) = (engine.clone(), stop.clone());
        async move { engine.serve(stop).await }
    });
    assert_eq!(engine.list_tasks(None).await.unwrap().len(), WAITING);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = processor_time();
    tokio::time::sleep(LOOK).await;
    let share = (processor_time() - before).as_secs_f64() / LOOK.as_secs_f64();
    stop.cancel();
    serving.await.unwrap().unwrap();
    share
}

/// Returns the times until all runs have started, and until all have ended.
async fn due() -> (Duration, Duration) {
    let dir = tempfile::tempdir().unwrap();
    let past = SystemClock.now();
    // Each a millisecond after the one before, so that there is an order.
    let begin = Timestamp::from_millis(past.as_millis() - 10_000);
    let engine = engine(dir.path(), DUE, |number| begin + Duration::from_millis(number as u64)).await;
    let journal = JsonlJournal::open(dir.path()).unwrap();
    let stop = CancellationToken::new();
    let begin = Instant::now();
    let serving = tokio::spawn({
        let (engine, stop) = (engine.clone(), stop.clone());
        async move { engine.serve(stop).await }
    });
    let heads = async |done: fn(usize, usize) -> bool| loop {
        let listed = engine.list_tasks(None).await.unwrap();
        let runs = listed.iter().filter(|task| task.state.runs == 1).count();
        let ended = listed.iter().filter(|task| task.state.runs == 1 && task.state.current.is_none()).count();
        if done(runs, ended) {
            return begin.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let started = heads(|runs, _| runs == DUE).await;
    let all = heads(|_, ended| ended == DUE).await;
    stop.cancel();
    serving.await.unwrap().unwrap();
    let mut runs = journal.list(&RunFilter::all()).await.unwrap();
    runs.sort_by_key(|head| head.started_at);
    let numbers: Vec<usize> =
        runs.iter().map(|head| head.task.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    let far = numbers.iter().enumerate().map(|(place, number)| place.abs_diff(*number)).max();
    // Runs that start within one millisecond have no order.
    assert!(
        numbers.len() == DUE && far.is_some_and(|far| far < 64),
        "the runs did not start in order: {far:?}"
    );
    (started, all)
}

/// Returns an engine with tasks that are due once, each at its time.
async fn engine(dir: &Path, count: usize, at: impl Fn(usize) -> Timestamp) -> TriggerEngine {
    let model = Arc::new(FnProvider::new(|_, _| FnProvider::text("Done.")));
    let journal = Arc::new(JsonlJournal::open(dir).unwrap());
    let agent = Archon::builder().provider(model, "scripted").journal(journal).build().unwrap();
    let runs: Arc<dyn RunService> = Arc::new(Runs::new(agent));
    let tasks = SqliteTaskStore::open(dir.join("tasks.db")).unwrap();
    // Defined by the store, since the engine refuses a task that is over.
    let define = |number: usize| {
        let task =
            TriggerTask::new(format!("task-{number:05}"), Schedule::Once(at(number)), format!("Do {number}"));
        TaskChange::Define(StoredTask::new(task.id.clone(), serde_json::to_value(&task).unwrap(), json!({})))
    };
    tasks.change((0..count).map(define).collect()).await.unwrap();
    TriggerEngine::new(runs, Arc::new(tasks), Arc::new(SystemClock), TriggerParts::new())
}

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in brackets, may have spaces. User and system time are the fields 14 and 15, in hundredths.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
