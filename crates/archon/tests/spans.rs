//! Log lines name the run that they belong to, those of tools included. Alone in its process: which events
//! are wanted is remembered for all threads.
#![allow(clippy::unwrap_used)]

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use archon::{
    Archon, Context, OutcomeStatus, RunId, RunOptions, SystemClock, Toolbox,
    providers::{ScriptedProvider, Step},
    tool,
    types::{
        BoxFuture, CallId, Clock, ContextConfig, Effect, Encoded, Executed, Prepared, ReadyCall, ToolCall,
        ToolSpec,
    },
};
use archon_testkit::{Ended, SeededIds, VirtualClock};
use serde_json::json;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says something to the log, before and after others had their turn.
#[tool]
async fn noisy(text: String) -> String {
    tracing::info!("before {text}");
    tokio::task::yield_now().await;
    tracing::info!("after {text}");
    text
}

/// As `noisy`, on a thread of its own.
#[tool(blocking)]
async fn noisy_thread(text: String) -> String {
    tracing::info!("thread {text}");
    text
}

async fn work(name: &'static str) {
    let steps = vec![
        Step::call("c1", "noisy", json!({ "text": name })),
        Step::call("c2", "noisy_thread", json!({ "text": name })),
        Step::text("done"),
    ];
    let agent = Archon::builder()
        .provider(Arc::new(ScriptedProvider::new(steps)), "scripted")
        .tool(noisy)
        .tool(noisy_thread)
        .clock(Arc::new(SystemClock))
        .ids(Arc::new(SeededIds::new(1)))
        .build()
        .unwrap();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new(name));
    assert!(agent.run_with("work", options).await.ended().is_finished());
}

/// Vectors that are never made: the memory says so before the run asks its model.
#[cfg(feature = "memory")]
struct NoVectors;

#[cfg(feature = "memory")]
impl archon::types::Embedder for NoVectors {
    fn id(&self) -> &str {
        "none"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn embed<'a>(
        &'a self,
        _: &'a [String],
    ) -> archon::types::BoxFuture<'a, Result<Vec<Vec<f32>>, archon::types::MemoryError>> {
        tracing::warn!("no vector is made");
        let (embedder, problem) = ("none".to_owned(), "it makes none".to_owned());
        Box::pin(std::future::ready(Err(archon::types::MemoryError::Embedding { embedder, problem })))
    }
}

#[cfg(feature = "memory")]
async fn remember() {
    use archon::memory::{InMemoryStore, Memory};
    let clock = Arc::new(SystemClock);
    let store = InMemoryStore::new().collection(archon::types::Collection::new("user:x").unwrap()).unwrap();
    let memory = Memory::new(Arc::new(store), clock, Arc::new(SeededIds::new(3)));
    let memory = memory.with_embedder(Arc::new(NoVectors));
    let agent = Archon::builder()
        .provider(Arc::new(ScriptedProvider::texts(["done"])), "scripted")
        .memory(memory)
        .build()
        .unwrap();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("three"));
    assert!(agent.run_with("where is the key?", options).await.ended().is_finished());
}

/// Says something to the log while it plans.
#[cfg(feature = "planner")]
struct Noisy;

#[cfg(feature = "planner")]
impl archon::types::Planner for Noisy {
    async fn create_plan(
        &self,
        goal: &str,
        _: &archon::types::PlanningContext,
    ) -> Result<archon::types::Task, archon::types::PlanError> {
        tracing::info!("a plan is made");
        Ok(archon::types::Task::new("t", goal).with_subtasks(vec![archon::types::SubTask::new("a", "do it")]))
    }
}

#[cfg(feature = "planner")]
async fn plan() {
    let provider = ScriptedProvider::texts(["done", "done"]);
    let agent = Archon::builder().provider(Arc::new(provider), "scripted").build().unwrap();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("four"));
    assert!(agent.planning(Noisy).run_with("work", options).await.ended().is_finished());
}

/// A result that nearly fills the window.
async fn fill() {
    let steps = vec![Step::call("c1", "noisy", json!({ "text": "word ".repeat(2_000) })), Step::text("done")];
    let mut context = ContextConfig::new(1_500);
    context.system_prompt_tokens = 0;
    let agent = Archon::builder()
        .provider(Arc::new(ScriptedProvider::new(steps)), "scripted")
        .tool(noisy)
        .context(context)
        .ids(Arc::new(SeededIds::new(6)))
        .build()
        .unwrap();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("six"));
    assert!(agent.run_with("work", options).await.ended().is_finished());
}

/// Tools that do not end when they are cancelled. Each call cancels its run.
struct Stubborn(Arc<Encoded<Vec<ToolSpec>>>);

impl Toolbox for Stubborn {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.0.clone()
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        let ready = ReadyCall::new(id, call.clone(), Effect::ReadOnly);
        Box::pin(std::future::ready(Prepared::Ready(ready)))
    }

    fn execute<'a>(&'a self, _: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        run.cancel.cancel();
        Box::pin(std::future::pending())
    }
}

async fn stopped() {
    let clock = VirtualClock::new();
    let specs = vec![ToolSpec::new("stay", "Stays, for a test.", json!({ "type": "object" }))];
    let agent = Archon::builder()
        .provider(Arc::new(ScriptedProvider::new([Step::call("c1", "stay", json!({}))])), "scripted")
        .toolbox(Arc::new(Stubborn(Arc::new(Encoded::new(specs)))))
        .clock(Arc::new(clock.clone()))
        .ids(Arc::new(SeededIds::new(5)))
        .build()
        .unwrap();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("five"));
    let began = clock.now();
    let run = agent.start("work", options).await.unwrap();
    // The deadline of the run, and the time that a cancelled call has for its cleanup.
    clock.until_asleep(2).await;
    assert_eq!(clock.next_deadline(), Some(began + Duration::from_millis(500)));
    clock.advance(Duration::from_millis(500));
    assert_eq!(run.reply().await.ended().status, OutcomeStatus::Cancelled);
}

// spec: OB-03, OB-02, TE-30, C-10
#[test]
fn tool_log_lines_have_run_and_call() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // For all threads: one tool logs on its own.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        tokio::join!(work("one"), work("two"));
        #[cfg(feature = "memory")]
        remember().await;
        #[cfg(feature = "planner")]
        plan().await;
        stopped().await;
        fill().await;
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let names_its_run = |what: &str, run: &str| {
        let said: Vec<&str> = text.lines().filter(|line| line.ends_with(what)).collect();
        assert!(
            !said.is_empty() && said.iter().all(|line| line.contains(&format!("run{{run={run} "))),
            "{text}"
        );
    };
    if cfg!(feature = "memory") {
        names_its_run("no vector is made", "three");
    }
    if cfg!(feature = "planner") {
        names_its_run("a plan is made", "four");
    }
    let full = text.lines().find(|line| line.contains("Context at ") && line.contains("run=six"));
    assert!(full.is_some(), "{text}");
    let dropped = text.lines().find(|line| line.contains("a tool call did not end in time and is dropped"));
    assert!(dropped.is_some_and(|line| line.contains("WARN") && line.contains("run=five")), "{text}");
    for name in ["one", "two"] {
        let said: Vec<&str> = text.lines().filter(|line| line.ends_with(&format!(" {name}"))).collect();
        assert_eq!(said.len(), 3, "{text}");
        for (line, call) in said.iter().zip(["c1", "c1", "c2"]) {
            assert!(line.contains(&format!("run{{run={name} ")), "{line}");
            assert!(line.contains(&format!("tool_call{{run=\"{name}\" call=\"{call}\"")), "{line}");
        }
        let finished =
            |line: &&str| line.contains("tool call finished") && line.contains(&format!("run{{run={name} "));
        assert_eq!(text.lines().filter(finished).count(), 2, "{text}");
    }
}
