//! Measures the cost of the loop itself: `cargo bench -p archon-agents --bench loop_cost`.
//!
//! The model is in the process and answers at once with a call of a tool that only adds, so what is measured is the
//! loop: the machine, the journal in memory, the guards, the events and the text of the request. Prints the time of
//! a turn around turn 10 (goal: 50 µs at the median), what a byte that is sent costs around turn 1,000 beside turn
//! 10 (goal: at most 1.3 times), the memory of 1,000 agents that wait for their model (goal: 60 MB), and how long it
//! takes until a run of 100,000 records can go on: its log read and folded (goal: under a second; with the feature
//! `sqlite` from SQLite, too). It fails if a goal is missed; all of them leave room for a busy machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and stops where it fails")]

use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use archon::{
    Archon, Journal, RunId, RunOptions, Tool, ToolContext,
    react_loop::{History, Machine, Next, ReactMachine, ReactTask, fold},
    store::JsonlJournal,
    tools::FnTool,
    types::{
        AssistantMessage, BoxStream, CancellationToken, Content, ContextConfig, Durability, Effect, Encoded,
        ExecutionLimits, Message, ModelEvent, OpenMode, PromptSource, Provider, ProviderError, Record,
        RecordBody, Request, RunConfig, RunStarted, StopReason, Timestamp, ToolAnnotations, ToolCall,
        ToolResult, ToolSpec,
    },
};
use archon_testkit::FnProvider;
use futures_util::stream;

const RUNS: usize = 20;
const TURNS: usize = 1_005;
const IDLE: usize = 1_000;
const LONG: usize = 100_000;
const RESUMES: usize = 7;

fn main() {
    println!("load average {}", load());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut missed = Vec::new();
    // First, while the process has touched little memory of its own.
    missed.extend(runtime.block_on(idle_agents()));
    missed.extend(runtime.block_on(turns()));
    missed.extend(runtime.block_on(resume()));
    println!("load average {}", load());
    assert!(missed.is_empty(), "missed: {missed:?}");
}

/// The names of the goals that are not reached.
fn missed<const N: usize>(goals: [(bool, &'static str); N]) -> Vec<&'static str> {
    goals.into_iter().filter(|(reached, _)| !reached).map(|(_, goal)| goal).collect()
}

async fn turns() -> Vec<&'static str> {
    let mut early = Vec::new();
    let mut late = Vec::new();
    for _ in 0..RUNS {
        let model = Arc::new(Adding::default());
        let outcome =
            agent(model.clone()).run("Add the numbers until you are done.").await.unwrap().into_outcome();
        assert!(outcome.is_finished(), "{outcome:?}");
        let requests = std::mem::take(&mut *model.requests.lock().unwrap());
        early.extend(turns_around(10, &requests));
        late.extend(turns_around(1_000, &requests));
    }
    let (early_time, early_byte) = medians(&mut early);
    let (late_time, late_byte) = medians(&mut late);
    println!("a turn around turn 10: {early_time:?} at the median of {}", early.len());
    println!("a turn around turn 1,000: {late_time:?} at the median of {}", late.len());
    println!(
        "a byte that is sent: {early_byte:.2} ns around turn 10, {late_byte:.2} ns around turn 1,000, {:.2} times",
        late_byte / early_byte
    );
    missed([
        (early_time <= Duration::from_micros(50), "a turn around turn 10 in 50 µs"),
        (
            late_byte <= 1.3 * early_byte,
            "a byte around turn 1,000 for 1.3 times of what it costs around turn 10",
        ),
    ])
}

/// The turns of one run near the `middle` one: how long from one request to the next, and the bytes of the first.
fn turns_around(middle: usize, requests: &[(Instant, usize)]) -> Vec<(Duration, usize)> {
    let near = &requests[middle - 3..=middle + 3];
    near.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[0].1)).collect()
}

fn medians(turns: &mut [(Duration, usize)]) -> (Duration, f64) {
    let mut per_byte: Vec<f64> =
        turns.iter().map(|(time, bytes)| time.as_nanos() as f64 / *bytes as f64).collect();
    per_byte.sort_by(f64::total_cmp);
    turns.sort();
    (turns[turns.len() / 2].0, per_byte[per_byte.len() / 2])
}

async fn idle_agents() -> Vec<&'static str> {
    let model = Arc::new(Silent::default());
    let before = resident_bytes();
    let mut agents = Vec::new();
    let mut runs = Vec::new();
    for _ in 0..IDLE {
        let agent = agent(model.clone());
        runs.push(agent.start("Wait for the answer.", RunOptions::default()).await.unwrap());
        agents.push(agent);
    }
    while model.asked.load(SeqCst) < IDLE {
        tokio::task::yield_now().await;
    }
    let after = resident_bytes();
    println!(
        "{IDLE} agents that wait for their model: {:.1} MB, the whole process {:.1} MB",
        (after - before) as f64 / 1e6,
        after as f64 / 1e6
    );
    drop(runs);
    missed([(after - before <= 60_000_000, "1,000 agents that wait in 60 MB")])
}

async fn resume() -> Vec<&'static str> {
    let mut slow = Vec::new();
    let records = long_log();
    let dir = tempfile::tempdir().unwrap();
    let files: Box<dyn Journal> = Box::new(JsonlJournal::open(dir.path()).unwrap());
    let journals = [
        ("files", files),
        #[cfg(feature = "sqlite")]
        ("SQLite", Box::new(archon::store::SqliteJournal::open(dir.path().join("runs.db")).unwrap())),
    ];
    for (kind, journal) in journals {
        let run = RunId::new("long");
        let mut open = journal.open(&run, OpenMode::Create).await.unwrap();
        for some in records.chunks(1_000) {
            open.writer.append(some, Durability::Buffered).await.unwrap();
        }
        drop(open);
        let mut took = Vec::new();
        for _ in 0..RESUMES {
            let begin = Instant::now();
            let open = journal.open(&run, OpenMode::Existing).await.unwrap();
            let machine = fold(&run, &open.records, History::default()).unwrap();
            took.push(begin.elapsed());
            assert!(machine.ended().is_none() && open.records.len() == records.len());
        }
        took.sort();
        println!(
            "{kind}: {} records are read and folded in {:?} at the median of {RESUMES}",
            records.len(),
            took[RESUMES / 2]
        );
        slow.extend(missed([(took[RESUMES / 2] <= Duration::from_secs(1), "100,000 records in a second")]));
    }
    slow
}

/// The log of a run that has called the tool so often that it has 100,000 records, compactions among them.
fn long_log() -> Vec<Arc<Record>> {
    let mut config = RunConfig::default();
    (config.limits.max_turns, config.limits.max_total_tokens) = (u32::MAX, u64::MAX);
    config.context = Some(ContextConfig::default());
    config.tools = Arc::new(Encoded::new(vec![add().spec().clone()]));
    let started = RunStarted::new("long".into(), "s".into(), "a".into(), "l".into(), config);
    let mut log = Log {
        machine: ReactMachine::new(&started, Timestamp::from_millis(0), History::default()),
        records: Vec::new(),
    };
    log.push(RecordBody::RunStarted(Box::new(started)));
    while log.records.len() < LONG {
        let next = match log.machine.next() {
            Next::AwaitPrompt => {
                let message = Message::user("Add the numbers.", Timestamp::default()).into();
                RecordBody::MessageAdded { message, source: PromptSource::Prompt }
            }
            Next::Do(ReactTask::AskModel { command, attempt, turn }) => {
                let request_hash = format!("{turn:016x}");
                log.push(RecordBody::ModelCallStarted { command, attempt, turn, request_hash });
                let call =
                    ToolCall::new(format!("call_{turn:024}"), "add", serde_json::json!({"a": turn, "b": 1}));
                let content = vec![Content::text("I will add the next number."), Content::from(call)];
                let message =
                    AssistantMessage { content, stop_reason: StopReason::ToolUse, ..Default::default() };
                RecordBody::ModelCallFinished { command, attempt, message: Box::new(message) }
            }
            Next::Do(ReactTask::RunCalls) => {
                let call = log.machine.calls()[0].id;
                log.push(RecordBody::ToolCallStarted {
                    call,
                    attempt: 0,
                    effect: Effect::ReadOnly,
                    child_run: None,
                });
                RecordBody::ToolCallFinished { call, result: Arc::new(ToolResult::success("42")) }
            }
            Next::Append(body) => body,
            other => panic!("{other:?}"),
        };
        log.push(next);
    }
    log.records
}

/// What a driver would have recorded.
struct Log {
    machine: ReactMachine,
    records: Vec<Arc<Record>>,
}

impl Log {
    fn push(&mut self, body: RecordBody) {
        let seq = self.records.len() as u64;
        let record = Arc::new(Record { seq, at: Timestamp::from_millis(seq), body });
        if seq > 0 {
            self.machine.apply(&record);
        }
        self.records.push(record);
    }
}

fn agent(model: Arc<dyn Provider>) -> Archon {
    let mut limits = ExecutionLimits::default();
    limits.max_turns = 10_000;
    limits.max_total_tokens = u64::MAX;
    Archon::builder()
        .provider(model, "in-process")
        .system("You are a calculator. Use the tool.")
        .limits(limits)
        .tool(add())
        .build()
        .unwrap()
}

fn add() -> impl Tool + use<> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    });
    let spec = ToolSpec::new("add", "Add two numbers", schema).with_annotations(ToolAnnotations::read_only());
    FnTool::new(spec, |arguments: serde_json::Value, _: ToolContext| async move {
        let sum = arguments["a"].as_i64().unwrap_or(0) + arguments["b"].as_i64().unwrap_or(0);
        Ok(ToolResult::success(sum.to_string()))
    })
}

/// Writes each request out as a provider does, notes when it came, and asks for one more addition.
#[derive(Default)]
struct Adding {
    requests: Mutex<Vec<(Instant, usize)>>,
}

impl Provider for Adding {
    fn id(&self) -> &str {
        "adding"
    }

    fn stream(
        &self,
        request: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let came = Instant::now();
        let mut body = String::with_capacity(request.messages.encoded_len() + 1024);
        request.messages.encode_into("bench", &mut body, |message: &Message, text| {
            text.push_str(&serde_json::to_string(message).unwrap());
        });
        let mut requests = self.requests.lock().unwrap();
        requests.push((came, body.len()));
        let turn = requests.len();
        drop(requests);
        let events = if turn < TURNS {
            let arguments = serde_json::json!({"a": turn, "b": 1});
            FnProvider::calls(vec![ToolCall::new(format!("call_{turn}"), "add", arguments)])
        } else {
            FnProvider::text("Done.")
        };
        Box::pin(stream::iter(events))
    }
}

/// Never answers.
#[derive(Default)]
struct Silent {
    asked: AtomicUsize,
}

impl Provider for Silent {
    fn id(&self) -> &str {
        "silent"
    }

    fn stream(
        &self,
        _: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        self.asked.fetch_add(1, SeqCst);
        Box::pin(stream::pending())
    }
}

/// Memory that the process holds now; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// One, five and fifteen minutes.
fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
