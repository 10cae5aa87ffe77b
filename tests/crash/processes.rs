//! Processes that tools start: they end with their call, and those that outlived the death of the run's own
//! process are ended before the run goes on.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "the other process says how far it is, and the figure is printed")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use archon::{
    Archon, OutcomeStatus, RunId, RunOptions, Tool, ToolContext, ToolError,
    react_loop::{conversation, is_paired},
    store::{InMemoryJournal, JsonlJournal, SqliteJournal},
    tools::{FnTool, process::spawn_group},
    types::{Effect, Journal, Message, RecordBody, ToolAnnotations, ToolCall, ToolResult, ToolSpec},
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader as AsyncBufReader},
    sync::mpsc,
};

/// A leader that ignores SIGTERM, and one that is gone while a process of its group goes on.
const SCRIPTS: [&str; 2] = [
    "trap '' TERM; echo $$ > pid; echo ready; while :; do sleep 100; done",
    "sh -c 'echo $$ > pid; exec sleep 1000' & while ! [ -s pid ]; do sleep 0.01; done; echo ready",
];

/// A process that is there and has not ended.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| state != 'Z')
}

fn spec(name: &str, effect: Effect) -> ToolSpec {
    let mut annotations = ToolAnnotations::default();
    (annotations.effect, annotations.concurrency_safe) = (effect, true);
    ToolSpec::new(name, "Starts a process.", json!({"type": "object"})).with_annotations(annotations)
}

/// Starts a shell and waits until it says that it is ready.
async fn start(
    script: &str,
    dir: &Path,
    context: &ToolContext,
) -> Result<(tokio::process::Child, u32), ToolError> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).current_dir(dir);
    let mut child = spawn_group(&command, context).await?;
    let id = child.id().expect("it runs");
    let mut lines = AsyncBufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next_line().await.expect("a line").as_deref(), Some("ready"));
    Ok((child, id))
}

/// Serves for ever when it is called first, and when it is called again says what is left of that.
fn serve(dir: &Path, script: usize) -> Arc<dyn Tool> {
    let dir = dir.to_owned();
    Arc::new(FnTool::new(
        spec("serve", Effect::ReadOnly),
        move |_: serde_json::Value, context: ToolContext| {
            let dir = dir.clone();
            async move {
                if let Ok(pid) = fs::read_to_string(dir.join("pid")) {
                    let state = if is_alive(&pid) { "alive" } else { "gone" };
                    return Ok(ToolResult::success(format!("the process of before is {state}")));
                }
                let _child = start(SCRIPTS[script], &dir, &context).await?;
                println!("\n> ready");
                std::future::pending().await
            }
        },
    ))
}

fn agent(dir: &Path, kind: &str, tool: Arc<dyn Tool>) -> Archon {
    let journal: Arc<dyn Journal> = match kind {
        "jsonl" => Arc::new(JsonlJournal::open(dir).expect("the journal opens")),
        _ => Arc::new(SqliteJournal::open(dir.join("runs.db")).expect("the journal opens")),
    };
    let provider = FnProvider::new(|_, request| {
        match request.messages.iter().any(|m| matches!(&**m, Message::Assistant(_))) {
            true => FnProvider::text("done"),
            false => FnProvider::calls(vec![ToolCall::new("c", "serve", json!({}))]),
        }
    });
    let builder = Archon::builder().provider(Arc::new(provider), "scripted").tools([tool]);
    builder.journal(journal).build().expect("an agent")
}

#[tokio::test]
#[ignore = "the other process of the test below"]
async fn other_process() {
    let of = |name: &str| std::env::var(name).expect("started by the test below");
    let dir = PathBuf::from(of("OTHER_DIR"));
    let tool = serve(&dir, of("OTHER_SCRIPT").parse().expect("a number"));
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("r1"));
    agent(&dir, &of("OTHER_JOURNAL"), tool).run_with("Serve.", options).await.ended();
}

/// Kills a process whose run has a child, and takes the run up.
async fn check_survivor(kind: &str, script: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut other = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "crash::processes::other_process", "--ignored", "--nocapture"])
        .envs([("OTHER_JOURNAL", kind), ("OTHER_SCRIPT", &script.to_string())])
        .env("OTHER_DIR", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut said = BufReader::new(other.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(said.any(|line| line == "> ready"), "{kind}, {script}: it did not start");
    other.kill().expect("SIGKILL");
    other.wait().expect("it is dead");
    let pid = fs::read_to_string(dir.path().join("pid")).expect("a number");
    assert!(is_alive(&pid), "{kind}, {script}: nothing survived");

    let agent = agent(dir.path(), kind, serve(dir.path(), script));
    let outcome = agent.resume("r1".into()).await.expect("it goes on").reply().await.ended();
    assert!(outcome.is_finished(), "{outcome:?}");
    let records = agent.journal().read(&"r1".into()).await.expect("the log");
    let spawned = records.iter().position(|r| matches!(r.body, RecordBody::ProcessStarted { .. }));
    let resumed = records.iter().position(|r| matches!(r.body, RecordBody::Resumed));
    assert!(spawned.is_some() && spawned < resumed, "{kind}, {script}");
    let result = records.iter().find_map(|r| match &r.body {
        RecordBody::ToolCallFinished { result, .. } => Some(result.text()),
        _ => None,
    });
    assert_eq!(result.as_deref(), Some("the process of before is gone"), "{kind}, {script}");
}

// spec: S-14
#[tokio::test]
async fn kill_and_resume_ends_the_processes_of_before_first() {
    for kind in ["jsonl", "sqlite"] {
        for script in 0..SCRIPTS.len() {
            check_survivor(kind, script).await;
        }
    }
}

/// How many calls run side by side; each second one's process ignores SIGTERM.
const CALLS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_fifty_calls_and_all_their_processes() {
    let (started, mut pids) = mpsc::unbounded_channel();
    let tool =
        FnTool::new(spec("work", Effect::SideEffect), move |n: serde_json::Value, context: ToolContext| {
            let started = started.clone();
            async move {
                let deaf = if n["n"].as_u64().unwrap_or(0).is_multiple_of(2) { "trap '' TERM;" } else { "" };
                let script = format!("{deaf} echo ready; while :; do sleep 100; done");
                let (_child, pid) = start(&script, Path::new("/"), &context).await?;
                started.send(pid).expect("the test waits");
                std::future::pending::<Result<ToolResult, ToolError>>().await
            }
        });
    let provider = FnProvider::new(|n, _| match n {
        0 => FnProvider::calls(
            (0..CALLS).map(|n| ToolCall::new(format!("c{n}"), "work", json!({"n": n}))).collect(),
        ),
        _ => FnProvider::text("done"),
    });
    let journal = Arc::new(InMemoryJournal::new());
    let builder =
        Archon::builder().provider(Arc::new(provider), "scripted").tools([Arc::new(tool) as Arc<dyn Tool>]);
    let agent = builder.journal(journal.clone()).build().expect("an agent");
    let handle = agent.start("Work.", RunOptions::default()).await.expect("it starts");
    let run = handle.run_id().clone();
    let mut all = Vec::new();
    while all.len() < CALLS {
        all.push(pids.recv().await.expect("another process").to_string());
    }
    assert!(all.iter().all(|pid| is_alive(pid)));
    let began = Instant::now();
    handle.cancel();
    let outcome = handle.reply().await.ended();
    println!("{CALLS} calls with processes were cancelled within {} ms", began.elapsed().as_millis());
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    assert_eq!(all.iter().filter(|pid| is_alive(pid)).count(), 0);
    let records = journal.read(&run).await.expect("the log");
    let ended = records.iter().filter(|r| matches!(r.body, RecordBody::ToolCallFinished { .. })).count();
    assert_eq!(ended, CALLS, "each call has one result");
    let messages: Vec<Message> =
        conversation(&*journal, &run).await.expect("it folds").iter().map(|m| (**m).clone()).collect();
    assert!(is_paired(&messages));
    let outcome = agent.resume(run).await.expect("it goes on").reply().await.ended();
    assert!(outcome.is_finished(), "{outcome:?}");
}
