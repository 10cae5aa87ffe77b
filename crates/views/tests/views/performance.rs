//! The performance of runs, folded from their records.

use std::sync::Arc;

use archon_types::{
    ApprovalRequest, CallId, CommandId, Content, Effect, Record, RecordBody, ToolCall, ToolResult,
};
use archon_views::{Alert, Performance};
use serde_json::json;

use crate::{
    samples::{answered, model_call_started, started},
    support::at,
};

fn log(bodies: Vec<(u64, RecordBody)>) -> Vec<Arc<Record>> {
    let first = (0, RecordBody::RunStarted(Box::new(started())));
    let record = |(seq, (ms, body))| Arc::new(Record { seq, at: at(ms), body });
    (0..).zip(std::iter::once(first).chain(bodies)).map(record).collect()
}

fn call(index: u32) -> CallId {
    CallId::new(CommandId(0), index)
}

fn begins(index: u32) -> RecordBody {
    RecordBody::ToolCallStarted { call: call(index), attempt: 0, effect: Effect::ReadOnly, child_run: None }
}

fn ends(index: u32, result: ToolResult) -> RecordBody {
    RecordBody::ToolCallFinished { call: call(index), result: Arc::new(result) }
}

/// A turn with calls of these tools.
fn turn(tools: &[&str], rest: Vec<(u64, RecordBody)>) -> Vec<Arc<Record>> {
    let calls = tools.iter().map(|tool| Content::from(ToolCall::new("c", *tool, json!({})))).collect();
    let mut bodies = vec![(0, model_call_started(0, 0)), (1_000, answered(0, calls))];
    bodies.extend(rest);
    log(bodies)
}

// spec: OB-09
#[test]
fn summary_has_calls_failures_and_durations_of_each_tool() {
    let ok = || ToolResult::success("ok");
    let refused = RecordBody::ToolCallRefused { call: call(3), result: Arc::new(ToolResult::error("no")) };
    let mut performance = Performance::default();
    performance.add_run(&turn(
        &["grep", "grep", "bash", "bash"],
        vec![
            (1_000, begins(0)),
            (1_000, begins(1)),
            (1_010, ends(0, ok())),
            (1_300, ends(1, ToolResult::error("no"))),
            (1_300, begins(2)),
            (1_400, ends(2, ok())),
            (1_400, refused),
        ],
    ));
    performance.add_run(&turn(&["grep"], vec![(1_000, begins(0)), (1_020, ends(0, ok()))]));
    let summary = performance.summary();
    let tools: Vec<_> = summary
        .tools
        .iter()
        .map(|tool| (tool.tool.as_str(), tool.calls, tool.failures, tool.refused))
        .collect();
    assert_eq!(tools, [("grep", 3, 1, 0), ("bash", 1, 0, 1)]);
    let durations = summary.tools[0].durations;
    assert_eq!((durations.p50_ms, durations.p95_ms, durations.max_ms), (20, 300, 300));
    assert_eq!((summary.turns.count, summary.turns.max_ms), (2, 1_300));
    let alert = Alert::ToolFailures { tool: "grep".to_owned(), calls: 3, failures: 1 };
    assert_eq!(summary.alerts, [alert]);
}

// spec: OB-09
#[test]
fn alerts_begin_above_a_fifth_of_failures_and_half_a_minute() {
    let run = |failures: u32, end: u64| {
        let mut rest = Vec::new();
        for index in 0..5 {
            let result = if index < failures { ToolResult::error("no") } else { ToolResult::success("ok") };
            rest.extend([(1_000, begins(index)), (end, ends(index, result))]);
        }
        let mut performance = Performance::default();
        performance.add_run(&turn(&["grep"; 5], rest));
        performance.summary().alerts
    };
    assert_eq!(run(1, 30_000), []);
    let [failures, slow] = &run(2, 30_001)[..] else { panic!("two alerts") };
    assert!(matches!(failures, Alert::ToolFailures { calls: 5, failures: 2, .. }), "{failures:?}");
    assert!(matches!(slow, Alert::SlowTurn { turn: 0, duration_ms: 30_001, .. }), "{slow:?}");
}

#[test]
fn durations_leave_out_the_time_in_which_nobody_worked() {
    let request = Box::new(ApprovalRequest::new("ask_1", "Go on?", json!({})));
    let mut performance = Performance::default();
    performance.add_run(&turn(
        &["agent", "grep"],
        vec![
            (1_000, begins(0)),
            (1_000, begins(1)),
            (1_100, RecordBody::ApprovalRequested { call: call(0), request }),
            (1_100, RecordBody::Suspended { waiting: vec![call(0)] }),
            (90_000, RecordBody::Resumed),
            (90_000, begins(0)),
            (90_010, ends(0, ToolResult::success("ok"))),
            (90_010, ends(1, ToolResult::success("ok"))),
        ],
    ));
    let summary = performance.summary();
    assert_eq!((summary.turns.max_ms, summary.alerts), (1_010, vec![]));
    // The end of `grep` says nothing of how long it worked.
    assert_eq!(summary.tools.len(), 1);
}
