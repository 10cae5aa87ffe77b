//! The time of a record of a run without watchers and with 200, which is printed for `docs/benchmarks.md` and has a wide
//! limit.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use archon::{
    Runs,
    server::{ServerOptions, TokenLimits},
    store::InMemoryJournal,
    types::{ContextConfig, ExecutionLimits, Journal, StartRuns, ToolCall},
};
use archon_testkit::{Ended, FnProvider, cases};
use futures_util::future::join_all;
use serde_json::json;

use crate::world::{Site, World, with_usage};

/// A server of runs with this number of turns.
fn site(turns: usize, journal: Arc<dyn Journal>) -> Site {
    let model = FnProvider::new(move |number, _| match number < turns {
        true => with_usage(FnProvider::calls(vec![ToolCall::new(format!("c{number}"), "wait", json!({}))])),
        false => with_usage(FnProvider::text("done")),
    });
    let most = u32::try_from(turns).unwrap() + 1;
    let limits = ExecutionLimits::default().with_max_turns(most).with_max_repeats(most);
    let world = World::new();
    let walker = world.builder("walker").provider(Arc::new(model), "scripted").journal(journal);
    let walker = walker.limits(limits).context(None::<ContextConfig>).build().unwrap();
    let limits = TokenLimits::default().with_requests_per_minute(100_000).with_watchers(1_000);
    world.site_of(Runs::new(walker), ServerOptions::default(), limits)
}

/// Returns the number of records of a run, and the time of each of those after its watchers came.
async fn watched_run(site: &Site, turns: usize, watchers: usize) -> (usize, Duration) {
    let run = site.start("go").await;
    site.world.gate.entered().await;
    let before = site.runs.records(&run, None).await.unwrap().records.len();
    let mut tasks = Vec::new();
    for _ in 0..watchers {
        let mut frames = site.watch(&run, None).await;
        tasks.push(tokio::spawn(async move {
            let mut records = 0;
            while let Some(frame) = frames.frame().await {
                records += usize::from(frame.starts_with("id: "));
            }
            records
        }));
    }
    let begun = Instant::now();
    (0..turns).for_each(|_| site.world.gate.open());
    assert!(site.runs.reply(&run).await.ended().is_finished());
    let time = begun.elapsed();
    let records = site.runs.records(&run, None).await.unwrap().records.len();
    for seen in join_all(tasks).await {
        assert_eq!(seen.unwrap(), records);
    }
    (records, time / u32::try_from(records - before).unwrap())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The number of streams in the second half of the comparison.
const WATCHERS: usize = 200;

/// Returns the longest time of a record with watchers: twice the time without them, and a time for each stream, since the
/// streams share the processors with the run. A server that reads the log again for each stream and record, or that wakes
/// each stream for each other one, takes longer.
fn longest(alone: Duration) -> Duration {
    alone * 2 + Duration::from_micros(100) * u32::try_from(WATCHERS).unwrap()
}

/// The times are printed with `--nocapture`. They are judged in the full length only, where they are medians.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_watchers_get_every_record_of_a_run_and_delay_it_little() {
    let turns = usize::try_from(cases(10, 200)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let memory: Arc<dyn Journal> = Arc::new(InMemoryJournal::new());
    let journals = [("memory", memory)].into_iter();
    #[cfg(feature = "jsonl")]
    let journals = {
        let files: Arc<dyn Journal> = Arc::new(archon::store::JsonlJournal::open(folder.path()).unwrap());
        journals.chain([("files", files)])
    };
    for (name, journal) in journals {
        let (mut alone, mut watched, mut records) = (Vec::new(), Vec::new(), 0);
        for _ in 0..cases(1, 9) {
            for (watchers, times) in [(0, &mut alone), (WATCHERS, &mut watched)] {
                // The model counts its answers, so that each run has a model of its own.
                let site = site(turns, journal.clone());
                let (count, time) = watched_run(&site, turns, watchers).await;
                records = count;
                times.push(time);
            }
        }
        let (alone, watched) = (median(alone), median(watched));
        let ratio = watched.as_secs_f64() / alone.as_secs_f64();
        println!(
            "{name}: {alone:?} for each of {records} records; with {WATCHERS} watchers {watched:?}, {ratio:.2} times"
        );
        let is_judged = cases(0, 1) > 0;
        assert!(!is_judged || watched <= longest(alone), "{name}: more than {:?}", longest(alone));
    }
    drop(folder);
}
