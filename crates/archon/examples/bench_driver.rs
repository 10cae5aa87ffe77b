//! One agent framework's side of a benchmark against a mock model server.
//!
//! Takes `--base-url URL --model M --runs N --concurrency C [--trace]`, makes one warm-up run, then N
//! runs with at most C at once, and prints one line of JSON: wall and CPU seconds, peak resident
//! memory, turns, failures, text deltas, and with `--trace` the time of each tool call.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use archon::{
    Archon, Event, RunOptions, Tool, ToolContext, ToolError,
    providers::{OpenAiCompatible, OpenAiOptions},
    tools::FnTool,
    types::{DeltaKind, ExecutionLimits, Sink, ToolAnnotations, ToolResult, ToolSpec},
};

const SYSTEM: &str = "You are a calculator. Use the tool.";
const PROMPT: &str = "Add the numbers until you are done.";
const WARM_UP: &str = "mock-t1-p1-k1";
/// Trace points that are kept at most.
const TRACED: u64 = 4000;

#[derive(Default)]
struct Counters {
    adds: AtomicU64,
    deltas: AtomicU64,
    trace: Mutex<Option<Vec<(i64, f64, f64)>>>,
}

impl Sink for Counters {
    fn emit(&self, event: Event) {
        if let Event::Delta(delta) = event
            && let DeltaKind::Text { .. } = delta.kind
        {
            self.deltas.fetch_add(1, Relaxed);
        }
    }
}

impl Counters {
    fn added(&self, a: i64, start: Instant) {
        if self.adds.fetch_add(1, Relaxed) < TRACED
            && let Some(trace) = self.trace.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            trace.push((a, start.elapsed().as_secs_f64() * 1e6, cpu_seconds() * 1e6));
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse()?;
    let counters = Arc::new(Counters::default());
    let start = Instant::now();
    let provider = Arc::new(OpenAiCompatible::new(&args.base_url, OpenAiOptions::default())?);
    let agent = |model: &str| {
        let counters = counters.clone();
        let mut limits = ExecutionLimits::default();
        limits.max_turns = 1000;
        limits.max_total_tokens = u64::MAX;
        Archon::builder()
            .provider(provider.clone(), model)
            .system(SYSTEM)
            .limits(limits)
            .tool(add_tool(counters, start))
            .build()
    };
    one_run(&agent(WARM_UP)?, &counters).await.context("the warm-up run failed")?;
    counters.adds.store(0, Relaxed);
    counters.deltas.store(0, Relaxed);
    if args.trace {
        *counters.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    }
    measure(&args, agent(&args.model)?, counters).await
}

fn add_tool(counters: Arc<Counters>, start: Instant) -> impl Tool + use<> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    });
    let spec = ToolSpec::new("add", "Add two numbers", schema).with_annotations(ToolAnnotations::read_only());
    FnTool::new(spec, move |arguments: serde_json::Value, _: ToolContext| {
        let counters = counters.clone();
        async move {
            let number = |key: &str| {
                arguments[key]
                    .as_i64()
                    .ok_or_else(|| ToolError::InvalidArgs(format!("{key} is not a number")))
            };
            let (a, b) = (number("a")?, number("b")?);
            counters.added(a, start);
            Ok(ToolResult::success((a + b).to_string()))
        }
    })
}

async fn one_run(agent: &Archon, counters: &Arc<Counters>) -> Result<()> {
    let options = RunOptions::default().watched_by(counters.clone());
    let outcome = agent.run_with(PROMPT, options).await?;
    ensure!(outcome.is_finished(), "{:?}: {}", outcome.status, outcome.error.unwrap_or_default());
    Ok(())
}

async fn measure(args: &Args, agent: Archon, counters: Arc<Counters>) -> Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let workers: Vec<_> = (0..args.concurrency.min(args.runs))
        .map(|_| {
            let (agent, counters, next, runs) = (agent.clone(), counters.clone(), next.clone(), args.runs);
            tokio::spawn(async move {
                let mut failed = 0u64;
                while next.fetch_add(1, Relaxed) < runs {
                    if let Err(error) = one_run(&agent, &counters).await {
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

struct Args {
    base_url: String,
    model: String,
    runs: u64,
    concurrency: u64,
    trace: bool,
}

impl Args {
    fn parse() -> Result<Self> {
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
