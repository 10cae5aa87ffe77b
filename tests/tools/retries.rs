//! Calls whose tools fail in a way that may pass: tried again after a while, each try in the log.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use archon::{
    Archon, Journal, RunId, RunOptions, ToolError, ToolResult,
    react_loop::replay,
    store::InMemoryJournal,
    types::{
        CircuitBreaker, Delta, DeltaKind, Durability, Effect, Event, Hooks, Message, OpenMode, OutcomeStatus,
        Record, RecordBody, RetryConfig, Timestamp, ToolAnnotations, ToolCall,
    },
    views::ErrorContext,
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::shared::stage::{Show, Stage, acts, call};

fn network(effect: Effect) -> ToolAnnotations {
    let mut annotations = ToolAnnotations::default();
    (annotations.effect, annotations.network) = (effect, true);
    annotations
}

fn reset() -> ToolError {
    ToolError::Failed("connection reset".into())
}

/// A model that calls `flaky` in each of so many turns and then answers.
fn stage(turns: usize) -> Stage {
    let stage = Stage::new(move |_, request| {
        let n = request.messages.iter().filter(|m| matches!(***m, Message::ToolResult(_))).count();
        match n < turns {
            true => call(&format!("c{n}"), "flaky", json!({ "n": n })),
            false => FnProvider::text("done"),
        }
    });
    stage.with(|b| b.clock(Arc::new(VirtualClock::jumping())))
}

/// What became of each start of a call, with the seconds since the first record.
fn lines(show: &Show) -> String {
    let records = show.sink.records();
    let began = records[0].at;
    let after = |at: Timestamp| at.since(began).as_millis() / 100;
    let line = |r: &Arc<archon::types::Record>| {
        let what = match &r.body {
            RecordBody::ToolCallStarted { call, attempt, .. } => format!("{call} start {attempt}"),
            RecordBody::ToolCallFailed { call, attempt, result, .. } => {
                format!("{call} failed {attempt}: {}", result.text())
            }
            RecordBody::ToolCallFinished { call, result } => format!("{call} ended: {}", result.text()),
            RecordBody::ToolCallRefused { call, result } => format!("{call} refused: {}", result.text()),
            _ => return None,
        };
        Some(format!("{:03} {what}\n", after(r.at)))
    };
    records.iter().filter_map(line).collect()
}

fn check(show: &Show, expected: Expect) {
    expected.assert_eq(&lines(show));
}

/// The progress texts of a call.
fn note(event: Event) -> Option<String> {
    match event {
        Event::Delta(Delta { kind: DeltaKind::ToolProgress { text, .. }, .. }) => Some(text),
        _ => None,
    }
}

// spec: A-28, ER-05, ER-08, TE-20
#[tokio::test]
async fn a_tool_that_fails_at_random_is_retried_with_backoff_and_the_task_is_done() {
    let (flaky, runs) = acts("flaky", network(Effect::ReadOnly), |n, _| match n {
        0 | 1 | 3 => Err(reset()),
        n => Ok(format!("fact {n}").into()),
    });
    let (outcome, show) = stage(3).with(|b| b.tool(flaky)).play("Find three facts.").await;
    assert_eq!((outcome.status, outcome.last_text().unwrap_or_default()), (OutcomeStatus::Finished, "done"));
    assert_eq!((runs.load(Ordering::SeqCst), outcome.turns), (6, 4));
    // The delays double and vary by a fifth: about 1 and 2 seconds.
    check(
        &show,
        expect![[r#"
            000 0.0 start 0
            000 0.0 failed 0: Error: connection reset
            010 0.0 start 1
            010 0.0 failed 1: Error: connection reset
            031 0.0 start 2
            031 0.0 ended: fact 2
            031 1.0 start 0
            031 1.0 failed 0: Error: connection reset
            042 1.0 start 1
            042 1.0 ended: fact 4
            042 2.0 start 0
            042 2.0 ended: fact 5
        "#]],
    );
    // What the results say of it, and what those hear who watch the run.
    let of_result = |r: &Arc<Record>| match &r.body {
        RecordBody::ToolCallFinished { result, .. } => {
            Some(["attempts", "retry_count", "last_error"].map(|key| result.metadata.get(key).cloned()))
        }
        _ => None,
    };
    let counted: Vec<_> = show.sink.records().iter().filter_map(of_result).collect();
    let once = |n: i32| [Some(json!(n)), Some(json!(n - 1)), Some(json!("connection reset"))];
    assert_eq!(counted, [once(3), once(2), [Some(json!(1)), None, None]]);
    let notes: Vec<String> = show.sink.events().into_iter().filter_map(note).collect();
    let said = |n| format!("Retry {n} after: connection reset\n");
    assert_eq!(notes, [said(1), said(2), said(1)]);
    let run = outcome.run.clone();
    assert!(replay(&show.journal, &run).await.unwrap().is_identical());
    let errors = ErrorContext::of(&show.journal.read(&run).await.unwrap());
    let told: Vec<_> = errors.iter().map(|e| (e.error_type.as_str(), e.recovery_attempts)).collect();
    assert_eq!(told, [("execution_error", 0), ("execution_error", 1), ("execution_error", 0)]);
}

// spec: ER-05, ER-08
#[tokio::test]
async fn tool_retry_skips_side_effects_and_permanent_failures() {
    let mut plain = ToolAnnotations::default();
    plain.effect = Effect::ReadOnly;
    let cases: [(ToolAnnotations, ToolError, usize); 7] = [
        (network(Effect::SideEffect), reset(), 1),
        (plain.clone(), reset(), 1),
        (network(Effect::ReadOnly), ToolError::InvalidArgs("no such city".into()), 1),
        (network(Effect::ReadOnly), ToolError::PermissionDenied("no".into()), 1),
        (network(Effect::Idempotent), reset(), 3),
        // Whoever is slow twice is not asked a third time.
        (plain, ToolError::Timeout(Duration::from_secs(1)), 2),
        (ToolAnnotations::default(), ToolError::Timeout(Duration::from_secs(1)), 1),
    ];
    for (n, (annotations, error, expected)) in cases.into_iter().enumerate() {
        let (flaky, runs) = acts("flaky", annotations, move |_, _| Err(error.clone()));
        let (outcome, show) = stage(1).with(|b| b.tool(flaky)).play("Try.").await;
        assert!(outcome.is_finished(), "the model reads the failure and goes on");
        assert_eq!((runs.load(Ordering::SeqCst), show.results().len()), (expected, 1), "case {n}");
    }
    let (flaky, runs) = acts("flaky", network(Effect::ReadOnly), |_, _| Err(reset()));
    stage(1).with(|b| b.tool(flaky).tool_retry(RetryConfig::none())).play("Try.").await;
    assert_eq!(runs.load(Ordering::SeqCst), 1, "retries can be switched off");
    let (flaky, runs) = acts("flaky", network(Effect::ReadOnly), |_, _| Err(reset()));
    let breaker = CircuitBreaker::new(2, Duration::from_secs(60));
    stage(1).with(|b| b.tool(flaky).circuit_breaker(breaker)).play("Try.").await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "the breaker has the last word");
}

// spec: ER-06, ER-08
#[tokio::test]
async fn calls_that_wait_are_not_tried_again_once_their_tool_is_left_alone() {
    let mut annotations = network(Effect::ReadOnly);
    annotations.concurrency_safe = true;
    let (flaky, runs) = acts("flaky", annotations, |_, _| Err(reset()));
    let stage = Stage::new(|n, _| match n {
        0 => FnProvider::calls(
            (0..3).map(|n| ToolCall::new(format!("c{n}"), "flaky", json!({ "n": n }))).collect(),
        ),
        _ => FnProvider::text("done"),
    });
    let breaker = CircuitBreaker::new(3, Duration::from_secs(60));
    let clock = Arc::new(VirtualClock::jumping());
    let (outcome, show) =
        stage.with(|b| b.tool(flaky).circuit_breaker(breaker).clock(clock)).play("Try.").await;
    assert!(outcome.is_finished());
    assert_eq!(
        (runs.load(Ordering::SeqCst), show.results().len()),
        (3, 3),
        "each ran once and has its result"
    );
    assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
}

// spec: ER-08, R-09
#[tokio::test]
async fn a_steer_or_a_cancel_ends_the_wait_with_the_failure_that_there_was() {
    for cancels in [false, true] {
        let clock = VirtualClock::new();
        let (flaky, runs) = acts("flaky", network(Effect::ReadOnly), |_, _| Err(reset()));
        let heard = Heard::default();
        let show = stage(1)
            .with(|b| b.tool(flaky).clock(Arc::new(clock.clone())).hooks(Arc::new(heard.clone())))
            .raise();
        let mut options = RunOptions::default();
        options.run = Some(RunId::new("r"));
        let handle = show.agent.start("Try.", options).await.unwrap();
        // The run's deadline sleeps, and the wait for the next try.
        clock.until_asleep(2).await;
        match cancels {
            true => handle.cancel(),
            false => {
                handle.steer("Never mind.").await.unwrap();
                clock.advance(Duration::from_secs(2));
            }
        }
        let outcome = handle.reply().await.ended();
        let expected = if cancels { OutcomeStatus::Cancelled } else { OutcomeStatus::Finished };
        assert_eq!((outcome.status, runs.load(Ordering::SeqCst)), (expected, 1));
        let log = show.journal.read(&RunId::new("r")).await.unwrap();
        let refused = log.iter().find_map(|r| match &r.body {
            RecordBody::ToolCallRefused { result, .. } => Some(result.text()),
            _ => None,
        });
        assert_eq!(refused.as_deref(), Some("Error: connection reset"));
        assert_eq!(heard.0.lock().unwrap()[..], ["before", "after: Error: connection reset"]);
        assert!(replay(&show.journal, &RunId::new("r")).await.unwrap().is_identical());
    }
}

/// What the hooks of tools were told.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Hooks for Heard {
    async fn before_tool(&self, _: &ToolCall) -> bool {
        self.0.lock().unwrap().push("before".to_owned());
        true
    }

    async fn after_tool(&self, _: &ToolCall, result: &ToolResult) {
        self.0.lock().unwrap().push(format!("after: {}", result.text()));
    }
}

// spec: ER-08, S-14
#[tokio::test]
async fn tool_retry_count_survives_a_kill_at_any_record() {
    let build = |journal: &InMemoryJournal| {
        let (flaky, runs) = acts("flaky", network(Effect::Idempotent), |_, _| Err(reset()));
        let show = stage(1).with(|b| b.tool(flaky).journal(Arc::new(journal.clone()))).raise();
        (show, runs)
    };
    let journal = InMemoryJournal::new();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("r"));
    build(&journal).0.says("Try.", options).await;
    let whole = journal.read(&RunId::new("r")).await.unwrap();
    assert_eq!((starts(&whole), last_result(&whole)), (TRIES, "Error: connection reset".to_owned()));
    for kept in 2..whole.len() {
        let journal = InMemoryJournal::new();
        let mut open = journal.open(&RunId::new("r"), OpenMode::Create).await.unwrap();
        open.writer.append(&whole[..kept], Durability::Synced).await.unwrap();
        drop(open);
        let (show, runs) = build(&journal);
        let agent: &Archon = &show.agent;
        let outcome = agent.resume(RunId::new("r")).await.unwrap().reply().await.ended();
        assert!(outcome.is_finished(), "{kept}");
        let resumed = journal.read(&RunId::new("r")).await.unwrap();
        // A start that the crash cut off counts as a try, and it is made again if it was the last one.
        let cut_off = matches!(whole[kept - 1].body, RecordBody::ToolCallStarted { .. });
        let extra = usize::from(cut_off && starts(&whole[..kept]) == TRIES);
        assert_eq!(starts(&resumed), TRIES + extra, "{kept}");
        assert_eq!(starts(&whole[..kept]) + runs.load(Ordering::SeqCst), TRIES + extra, "{kept}");
        assert_eq!(last_result(&resumed), "Error: connection reset", "{kept}");
        assert!(replay(&journal, &RunId::new("r")).await.unwrap().is_identical(), "{kept}");
    }
}

/// How often a call starts whose tool always fails, if nothing disturbs it.
const TRIES: usize = 3;

fn starts(records: &[Arc<Record>]) -> usize {
    records.iter().filter(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).count()
}

/// What the model read of the last call.
fn last_result(records: &[Arc<Record>]) -> String {
    let result = records.iter().rev().find_map(|r| match &r.body {
        RecordBody::ToolCallFinished { result, .. } => Some(result.text()),
        _ => None,
    });
    result.expect("a result")
}
