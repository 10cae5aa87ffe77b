//! What two programs share so that their cost can be compared: the same arguments, the same work, the same printed line.
//!
//! Takes `--base-url URL --model M --runs N --concurrency C [--trace]`, makes one warm-up run, then N runs with at most C
//! at once, and prints one line of JSON: wall and CPU seconds, peak resident memory, turns, failures, text deltas, and
//! with `--trace` the time of each tool call.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};

pub(crate) const SYSTEM: &str = "You are a calculator. Use the tool.";
pub(crate) const PROMPT: &str = "Add the numbers until you are done.";
const WARM_UP: &str = "mock-t1-p1-k1";
/// Trace points that are kept at most.
const TRACED: u64 = 4000;

/// What the runs did.
pub(crate) struct Counters {
    adds: AtomicU64,
    deltas: AtomicU64,
    start: Instant,
    trace: Mutex<Option<Vec<(i64, f64, f64)>>>,
}

impl Counters {
    pub(crate) fn new() -> Arc<Self> {
        let (adds, deltas, trace) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(None));
        Arc::new(Self { adds, deltas, start: Instant::now(), trace })
    }

    /// The work of the tool.
    pub(crate) fn add(&self, a: i64, b: i64) -> i64 {
        if self.adds.fetch_add(1, Relaxed) < TRACED
            && let Some(trace) = self.trace.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            trace.push((a, self.start.elapsed().as_secs_f64() * 1e6, cpu_seconds() * 1e6));
        }
        a + b
    }

    pub(crate) fn count_delta(&self) {
        self.deltas.fetch_add(1, Relaxed);
    }

    fn reset(&self, args: &Args) {
        self.adds.store(0, Relaxed);
        self.deltas.store(0, Relaxed);
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = args.trace.then(Vec::new);
    }
}

/// Measures runs of what `agent` makes for a model.
pub(crate) async fn drive<A, R>(
    args: &Args,
    counters: Arc<Counters>,
    agent: impl Fn(&str) -> Result<A>,
    run: impl Fn(A) -> R + Copy + Send + 'static,
) -> Result<()>
where
    A: Clone + Send + 'static,
    R: Future<Output = Result<()>> + Send,
{
    run(agent(WARM_UP)?).await.context("the warm-up run failed")?;
    counters.reset(args);
    let agent = agent(&args.model)?;
    let next = Arc::new(AtomicU64::new(0));
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let workers: Vec<_> = (0..args.concurrency.min(args.runs))
        .map(|_| {
            let (agent, next, runs) = (agent.clone(), next.clone(), args.runs);
            tokio::spawn(async move {
                let mut failed = 0u64;
                while next.fetch_add(1, Relaxed) < runs {
                    if let Err(error) = run(agent.clone()).await {
                        if failed == 0 {
                            eprintln!("a run failed: {error:#}");
                        }
                        failed += 1;
                    }
                }
                failed
            })
        })
        .collect();
    let mut failures = 0;
    for worker in workers {
        failures += worker.await.unwrap_or(1);
    }
    let mut line = serde_json::json!({
        "wall_s": wall.elapsed().as_secs_f64(),
        "cpu_s": cpu_seconds() - cpu,
        "peak_rss_kib": peak_rss_kib(),
        "turns": counters.adds.load(Relaxed) + args.runs - failures,
        "failures": failures,
        "deltas": counters.deltas.load(Relaxed),
    });
    if let Some(trace) = counters.trace.lock().unwrap_or_else(PoisonError::into_inner).take() {
        line["trace"] = serde_json::json!(trace);
    }
    println!("{line}");
    Ok(())
}

pub(crate) struct Args {
    pub(crate) base_url: String,
    model: String,
    runs: u64,
    concurrency: u64,
    trace: bool,
}

impl Args {
    pub(crate) fn parse() -> Result<Self> {
        let (base_url, model) = (String::new(), WARM_UP.to_owned());
        let mut args = Self { base_url, model, runs: 1, concurrency: 1, trace: false };
        let mut given = std::env::args().skip(1);
        while let Some(key) = given.next() {
            if key == "--trace" {
                args.trace = true;
                continue;
            }
            let value = given.next().with_context(|| format!("{key} needs a value"))?;
            match key.as_str() {
                "--base-url" => args.base_url = value,
                "--model" => args.model = value,
                "--runs" => args.runs = value.parse().context("--runs")?,
                "--concurrency" => args.concurrency = value.parse().context("--concurrency")?,
                _ => bail!("unknown argument {key}"),
            }
        }
        ensure!(!args.base_url.is_empty(), "--base-url is needed");
        Ok(args)
    }
}

/// User and system time of this process and its threads.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The largest resident size so far; 0 where the system does not tell.
fn peak_rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
