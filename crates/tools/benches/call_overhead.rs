//! Measures the time that the engine adds to a call that does nothing, and the time of 64 concurrent calls:
//! `cargo bench -p archon-tools --bench call_overhead`. The goals: 5 µs per call at the median above the
//! bare call, with a schema that was compiled when the tool was registered; and 1.25 times the time of the
//! slowest call for calls that may run together. The benchmark fails if a goal is missed. The load of the
//! machine is printed with the results.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use archon_testkit::{SeededIds, VirtualClock};
use archon_tools::{ToolEngine, ToolRegistry, tool};
use archon_types::{CallId, CommandId, Context, Executed, Prepared, Tool, ToolCall, ToolContext, Toolbox};
use serde_json::json;

/// Takes arguments and does nothing with them.
#[tool(read_only)]
async fn no_op(path: String, line: Option<u32>) -> String {
    drop((path, line));
    String::new()
}

/// Takes so many milliseconds.
#[tool(read_only)]
async fn wait(ms: u64) -> String {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    String::new()
}

const CALLS: usize = 200_000;

/// The slowest of the calls side by side, milliseconds; the others take less.
const SLOWEST: u64 = 50;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let registry = ToolRegistry::new();
    registry.register(no_op).unwrap();
    registry.register(wait).unwrap();
    let engine = ToolEngine::new(registry);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    println!("load: {}", load.trim());
    let overhead = runtime.block_on(overhead(&engine));
    let mut ratios = [(); 3].map(|()| runtime.block_on(side_by_side(&engine)));
    ratios.sort_by(f64::total_cmp);
    assert!(overhead <= Duration::from_micros(5), "missed: 5 µs for the guards");
    assert!(
        ratios[1] <= 1.25,
        "missed: 64 calls in 1.25 times the time of the slowest, in two of three tries"
    );
}

fn run() -> Context {
    Context::new("run".into(), "session".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

/// The median time of the guards.
async fn overhead(engine: &ToolEngine) -> Duration {
    let run = run();
    let arguments = json!({ "path": "src/main.rs", "line": 12 });
    let call = ToolCall::new("call_1", "no_op", arguments.clone());
    let context = ToolContext::new(run.clone(), "call_1".into(), "no_op");
    let tool = no_op();
    let (mut bare, mut guarded) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    // In turns, so that whatever else the machine does meets both alike.
    for _ in 0..CALLS {
        let began = Instant::now();
        black_box(tool.call(arguments.clone(), &context).await.unwrap());
        bare.push(began.elapsed());

        let began = Instant::now();
        black_box(through(engine, CallId::new(CommandId(1), 0), &call, &run).await);
        guarded.push(began.elapsed());
    }
    let (bare, guarded) = (Percentiles::of(bare), Percentiles::of(guarded));
    println!("bare                {bare}");
    println!("through the engine  {guarded}");
    let overhead = guarded.p50.saturating_sub(bare.p50);
    println!("overhead            p50 {overhead:?}");
    overhead
}

/// The time of calls together, divided by the time of the slowest call alone.
async fn side_by_side(engine: &ToolEngine) -> f64 {
    let run = run();
    let calls: Vec<_> = (0..64)
        .map(|n| ToolCall::new(format!("call_{n}"), "wait", json!({ "ms": SLOWEST - n % 10 })))
        .collect();
    let alone = Instant::now();
    black_box(through(engine, CallId::new(CommandId(2), 0), &calls[0], &run).await);
    let alone = alone.elapsed();
    let together = Instant::now();
    let started = calls.iter().enumerate().map(|(index, call)| {
        through(engine, CallId::new(CommandId(3), u32::try_from(index).unwrap()), call, &run)
    });
    black_box(futures_util::future::join_all(started).await);
    let together = together.elapsed();
    println!("64 calls side by side {together:?}, the slowest alone {alone:?}");
    together.as_secs_f64() / alone.as_secs_f64()
}

/// As a loop makes a call.
async fn through(engine: &ToolEngine, id: CallId, call: &ToolCall, run: &Context) -> Executed {
    let Prepared::Ready(ready) = engine.prepare(id, call, run).await else { panic!("refused") };
    engine.execute(ready, run).await
}

struct Percentiles {
    p50: Duration,
    p99: Duration,
    mean: Duration,
}

impl Percentiles {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| times[times.len() * percent / 100];
        let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap();
        Self { p50: at(50), p99: at(99), mean }
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:?}  p99 {:?}  mean {:?}", self.p50, self.p99, self.mean)
    }
}
