//! Kill a program that serves tasks, again and again: each occurrence and each event of another process has its run, once.

use std::{
    collections::BTreeSet,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use archon::{
    Archon, Runs, SystemClock,
    store::{JsonlJournal, SqliteTaskStore},
    triggers::{TriggerEngine, TriggerError, TriggerEvent, TriggerParts},
    types::{AgentMessage, Journal, RecordBody, RunFilter, RunService, RunStatus},
};
use archon_testkit::{Chance, FnProvider, cases, first_seed};
use serde_json::json;
use tokio::process::Command;

/// 2026-01-01T00:00:00Z.
const BEGIN: u64 = 1_767_225_600_000;

const MINUTE: u64 = 60_000;

/// The rate of the program's clock.
const RATE: u64 = 600;

/// 1,000 kills with `ARCHON_ACCEPT=full`.
// spec: TR-03, TR-04, TR-11, TR-12
#[tokio::test]
async fn tasks_of_a_program_that_is_killed_again_and_again_run_each_occurrence_and_event_once() {
    let dir = tempfile::tempdir().unwrap();
    let program = |now: u64| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_killable_triggers"));
        command.arg(dir.path()).arg(now.to_string()).stderr(Stdio::inherit());
        command
    };
    let (kills, mut now) = (cases(25, 1_000), BEGIN + 2 * MINUTE);
    // Creates the task, and runs its first occurrences.
    assert!(program(BEGIN).arg(now.to_string()).status().await.unwrap().success());
    let mut chance = Chance(first_seed());
    let (publisher, mut count) = (engine_of_another_process(dir.path()), 0);
    for number in 0..kills {
        // An event is refused if too many wait, since the program had little time.
        let mut publish = async |name: &str| {
            let order = TriggerEvent::new(format!("{number}-{name}"), "shop", "order", json!({}));
            match publisher.publish(&order).await {
                Ok(_) => count += 1,
                Err(error) => assert!(matches!(error, TriggerError::TooManyRequests { .. }), "{error}"),
            }
        };
        publish("dead").await;
        let started = Instant::now();
        let mut child = program(now).kill_on_drop(true).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(chance.below(100))).await;
        publish("alive").await;
        let life = Duration::from_millis(10 + chance.below(150));
        let early = tokio::time::timeout(life, child.wait()).await;
        assert!(early.is_err(), "the program ended by itself: {early:?}");
        child.kill().await.unwrap();
        now += u64::try_from(started.elapsed().as_millis()).unwrap() * RATE + 1;
    }
    let end = now + 5 * MINUTE;
    let ended = program(now).arg(end.to_string()).status().await.unwrap();
    assert!(ended.success());

    let (events, mut keys): (Vec<_>, Vec<_>) =
        keys_of_runs(dir.path()).await.into_iter().partition(|key| key.starts_with("trigger/orders/"));
    let distinct: BTreeSet<&String> = events.iter().collect();
    assert_eq!((events.len(), distinct.len()), (count, count), "an event is missing or doubled");
    keys.sort();
    let at = |key: &String| key.rsplit('/').next().unwrap().parse::<u64>().unwrap();
    let times: Vec<u64> = keys.iter().map(at).collect();
    for pair in times.windows(2) {
        assert_eq!(pair[1] - pair[0], MINUTE, "an occurrence is missing or doubled: {pair:?}");
    }
    assert!(*times.last().unwrap() + MINUTE > end);
    eprintln!("{kills} kills: {} occurrences and {count} events, each with one run", times.len());
}

/// Returns an engine that publishes events, and does not serve.
fn engine_of_another_process(dir: &Path) -> TriggerEngine {
    let model = Arc::new(FnProvider::new(|_, _| FnProvider::text("Not asked.")));
    let journal = Arc::new(JsonlJournal::open(dir).unwrap());
    let agent = Archon::builder().provider(model, "scripted").journal(journal).build().unwrap();
    let runs: Arc<dyn RunService> = Arc::new(Runs::new(agent));
    let tasks = Arc::new(SqliteTaskStore::open(dir.join("tasks.db")).unwrap());
    TriggerEngine::new(runs, tasks, Arc::new(SystemClock), TriggerParts::new())
}

/// Returns the keys of all runs, which have finished.
async fn keys_of_runs(dir: &Path) -> Vec<String> {
    let journal = JsonlJournal::open(dir).unwrap();
    let mut keys = Vec::new();
    for head in journal.list(&RunFilter::all()).await.unwrap() {
        assert_eq!(head.status, RunStatus::Finished, "{head:?}");
        let records = journal.read(&head.run_id).await.unwrap();
        let mark = records.iter().find_map(|record| match &record.body {
            RecordBody::MessageAdded { message: AgentMessage::Extension(mark), .. } => {
                Some(mark.data.clone())
            }
            _ => None,
        });
        keys.push(mark.unwrap()["key"].as_str().unwrap().to_owned());
    }
    keys
}
