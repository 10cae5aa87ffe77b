//! Log lines name the run that they belong to, those of tools included. Alone in its process: which events
//! are wanted is remembered for all threads.
#![allow(clippy::unwrap_used)]

use std::{
    io,
    sync::{Arc, Mutex},
};

use archon::{
    Archon, RunId, RunOptions, SystemClock,
    providers::{ScriptedProvider, Step},
    tool,
};
use archon_testkit::{Ended, SeededIds};
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

// spec: OB-03, OB-02
#[test]
fn what_a_tool_logs_names_its_run_and_its_call() {
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
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
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
