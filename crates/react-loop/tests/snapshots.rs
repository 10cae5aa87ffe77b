//! Tests of the snapshots of the workspace that the loop takes around calls.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
};

use archon_react_loop::{ReactAgent, ReactAgentOptions};
use archon_testkit::{FnProvider, MortalJournal, SeededIds, VirtualClock, poll_until_idle};
use archon_types::{
    Agent, BoxFuture, CallId, Context, Effect, Encoded, Executed, Message, Prepared, ReadyCall, RecordBody,
    SnapshotPlace, ToolCall, ToolMode, ToolResult, ToolSpec, Toolbox, WorkspaceSnapshots,
};
use serde_json::json;

/// What happened, in order.
type Order = Arc<Mutex<Vec<String>>>;

/// A toolbox in which calls of `read` are read-only, and all others change something.
struct Tools(Order);

impl Toolbox for Tools {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        Arc::default()
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        let effect = if call.name == "read" { Effect::ReadOnly } else { Effect::Idempotent };
        Box::pin(async move { Prepared::Ready(ReadyCall::new(id, call.clone(), effect)) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, _: &'a Context) -> BoxFuture<'a, Executed> {
        self.0.lock().unwrap().push(ready.call.name.clone());
        Box::pin(async { Executed::Done(Box::new(ToolResult::success("done"))) })
    }
}

/// Numbers its snapshots, from `tree0`. Those from `fails_at` on fail.
struct Source(Order, Mutex<usize>, usize);

impl WorkspaceSnapshots for Source {
    fn prepare(&self) {
        self.0.lock().unwrap().push("prepare".to_owned());
    }

    fn take(&self, before: Option<String>) -> BoxFuture<'static, Result<String, String>> {
        let mut next = self.1.lock().unwrap();
        let tree = format!("tree{next}");
        *next += 1;
        let is_taken = *next <= self.2;
        self.0.lock().unwrap().push(format!("{tree} after {}", before.as_deref().unwrap_or("none")));
        Box::pin(async move { if is_taken { Ok(tree) } else { Err("undo is off".to_owned()) } })
    }
}

/// A gate for snapshots. A snapshot that waits at it goes on when the gate is opened.
#[derive(Default)]
struct Lock {
    is_open: AtomicBool,
    waiting: Mutex<Option<Waker>>,
}

impl Lock {
    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
        if let Some(waker) = self.waiting.lock().unwrap().take() {
            waker.wake();
        }
    }
}

/// Takes as long for a snapshot as the gate is shut, as for the first one of a large workspace.
struct Slow(Order, Arc<Lock>);

impl WorkspaceSnapshots for Slow {
    fn take(&self, _: Option<String>) -> BoxFuture<'static, Result<String, String>> {
        self.0.lock().unwrap().push("snapshot".to_owned());
        let lock = self.1.clone();
        Box::pin(poll_fn(move |context| {
            *lock.waiting.lock().unwrap() = Some(context.waker().clone());
            if lock.is_open.load(Ordering::SeqCst) {
                Poll::Ready(Ok("tree".to_owned()))
            } else {
                Poll::Pending
            }
        }))
    }
}

/// An agent whose model calls the tools of each turn, and then answers.
fn agent(turns: &[&[&'static str]], journal: &MortalJournal, order: &Order) -> ReactAgent {
    let turns: Vec<Vec<_>> = turns
        .iter()
        .map(|tools| {
            (0..).zip(*tools).map(|(n, tool)| ToolCall::new(format!("{tool}{n}"), *tool, json!({"n": n})))
        })
        .map(Iterator::collect)
        .collect();
    let model = FnProvider::new(move |_, request| {
        let turn = request.messages.iter().filter(|m| matches!(&***m, Message::Assistant(_))).count();
        turns.get(turn).map_or_else(|| FnProvider::text("ready"), |calls| FnProvider::calls(calls.clone()))
    });
    let mut options = ReactAgentOptions::new("m");
    options.tool_mode = Some(ToolMode::Native);
    ReactAgent::new(Arc::new(model), Arc::new(journal.clone()), options)
        .with_toolbox(Arc::new(Tools(order.clone())))
}

fn context() -> Context {
    Context::new("r".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

fn snapshots(journal: &MortalJournal) -> Vec<(SnapshotPlace, u32, Option<String>)> {
    let of = |body: &RecordBody| match body {
        RecordBody::WorkspaceSnapshot(snapshot) => {
            Some((snapshot.place, snapshot.turn, snapshot.tree.clone()))
        }
        _ => None,
    };
    journal.log("r").iter().filter_map(|record| of(&record.body)).collect()
}

#[tokio::test]
async fn run_takes_a_snapshot_before_the_first_effect_of_a_turn_and_after_the_last() {
    let (journal, order) = (MortalJournal::default(), Order::default());
    let turns: [&[&str]; 3] = [&["read"], &["write", "edit"], &["write"]];
    let agent =
        agent(&turns, &journal, &order).with_snapshots(Arc::new(Source(order.clone(), Mutex::new(0), 9)));
    agent.run("work", &context()).await;
    let expected = ["prepare", "read", "tree0 after none", "write", "edit", "tree1 after tree0"];
    let more = ["tree2 after none", "write", "tree3 after tree2"];
    assert_eq!(*order.lock().unwrap(), [&expected[..], &more[..]].concat());
    let (before, after) = (SnapshotPlace::Before, SnapshotPlace::After);
    let tree = |n: u32| Some(format!("tree{n}"));
    assert_eq!(
        snapshots(&journal),
        [(before, 1, tree(0)), (after, 1, tree(1)), (before, 2, tree(2)), (after, 2, tree(3))]
    );
}

#[tokio::test]
async fn run_whose_first_snapshot_is_slow_has_its_answer_before_and_its_first_effect_after() {
    let (journal, order, lock) = (MortalJournal::default(), Order::default(), Arc::<Lock>::default());
    let source = Arc::new(Slow(order.clone(), lock.clone()));
    let agent = agent(&[&["write"]], &journal, &order).with_snapshots(source);
    let context = context();
    let mut run = Box::pin(agent.run("work", &context));
    assert!(poll_until_idle(&mut run).is_none(), "the run waits for the snapshot");
    let has = |is: fn(&RecordBody) -> bool| journal.log("r").iter().any(|record| is(&record.body));
    assert!(has(|body| matches!(body, RecordBody::ModelCallFinished { .. })), "the answer waits, too");
    assert!(!has(|body| matches!(body, RecordBody::ToolCallStarted { .. })), "the call does not wait");
    assert_eq!(*order.lock().unwrap(), ["snapshot"]);
    lock.open();
    let outcome = poll_until_idle(&mut run).expect("the run ends");
    assert_eq!(outcome.last_text(), Some("ready"));
    assert_eq!(*order.lock().unwrap(), ["snapshot", "write", "snapshot"]);
}

#[tokio::test]
async fn run_without_a_source_of_snapshots_records_none() {
    let (journal, order) = (MortalJournal::default(), Order::default());
    agent(&[&["write"]], &journal, &order).run("work", &context()).await;
    assert!(snapshots(&journal).is_empty());
}

#[tokio::test]
async fn run_whose_snapshot_fails_records_it_once_and_goes_on() {
    let (journal, order) = (MortalJournal::default(), Order::default());
    let turns: [&[&str]; 2] = [&["write"], &["write"]];
    let agent =
        agent(&turns, &journal, &order).with_snapshots(Arc::new(Source(order.clone(), Mutex::new(0), 0)));
    let outcome = agent.run("work", &context()).await;
    assert_eq!(outcome.last_text(), Some("ready"));
    assert_eq!(snapshots(&journal), [(SnapshotPlace::Before, 0, None)]);
}

/// The process dies after each number of records.
#[tokio::test]
async fn resume_after_a_kill_takes_no_snapshot_after_the_work_that_was_cut_off() {
    for appends in 0..16 {
        let (journal, order) = (MortalJournal::default(), Order::default());
        let turns: [&[&str]; 2] = [&["write"], &["write"]];
        let source = || Arc::new(Source(order.clone(), Mutex::new(0), 99));
        let agent = agent(&turns, &journal, &order).with_snapshots(source());
        journal.die_after(appends, true);
        agent.run("work", &context()).await;
        journal.live();
        if journal.log("r").len() < 2 {
            continue;
        }
        let _ = agent.resume(&context()).await;
        let mut is_open = false;
        for record in journal.log("r") {
            match &record.body {
                RecordBody::Resumed => is_open = false,
                RecordBody::WorkspaceSnapshot(snapshot) => {
                    assert_eq!(is_open, snapshot.place == SnapshotPlace::After, "{appends}");
                    is_open = !is_open;
                }
                RecordBody::ToolCallStarted { .. } => assert!(is_open, "{appends}"),
                _ => {}
            }
        }
        assert!(!is_open, "{appends}");
    }
}
