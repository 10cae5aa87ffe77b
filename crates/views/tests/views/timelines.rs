//! The timeline of a run, folded from its records.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use archon_types::{
    Answer, ApprovalRequest, AssistantMessage, CallId, CommandId, Content, Effect, ModelFailure, ModelPrice,
    OutcomeStatus, PlanRecord, ProviderError, Record, RecordBody, RunId, Spending, SubTask, Task, ToolCall,
    ToolResult, Usage,
};
use archon_views::{Span, SpanKind, SpanStatus, Timeline};
use proptest::prelude::*;
use serde_json::json;

use crate::{
    samples::{ended, finished, model_call_started, started},
    support::at,
};

/// The log of a run with these records at these times.
fn log(bodies: Vec<(u64, RecordBody)>) -> Vec<Arc<Record>> {
    let mut started = started();
    started.config.model = "small-1".to_owned();
    started.config.price = Some(ModelPrice::new(1_000_000, 2_000_000));
    let first = (0, RecordBody::RunStarted(Box::new(started)));
    let record = |(seq, (ms, body))| Arc::new(Record { seq, at: at(ms), body });
    (0..).zip(std::iter::once(first).chain(bodies)).map(record).collect()
}

fn call(command: u64, index: u32) -> CallId {
    CallId::new(CommandId(command), index)
}

fn answered(command: u64, attempt: u32, content: Vec<Content>) -> RecordBody {
    let usage = Usage { input: 30, output: 10, cache_read: 70, ..Usage::default() };
    let message =
        Box::new(AssistantMessage { content, model: "small-1".to_owned(), usage, ..Default::default() });
    RecordBody::ModelCallFinished { command: CommandId(command), attempt, message }
}

fn call_started(call: CallId, attempt: u32) -> RecordBody {
    RecordBody::ToolCallStarted { call, attempt, effect: Effect::ReadOnly, child_run: None }
}

fn call_finished(call: CallId) -> RecordBody {
    RecordBody::ToolCallFinished { call, result: Arc::new(ToolResult::success("ok")) }
}

fn call_failed(call: CallId) -> RecordBody {
    RecordBody::ToolCallFailed { call, attempt: 0, result: Arc::new(ToolResult::error("reset")), jitter: 0.0 }
}

fn question(call: CallId) -> RecordBody {
    let request = ApprovalRequest::new(format!("ask_{call}"), "Write b.rs", json!({}));
    RecordBody::ApprovalRequested { call, request: Box::new(request) }
}

fn row(span: &Span) -> (&str, u32, u64, Option<u64>, SpanStatus) {
    (&span.id, span.lane, span.from_ms, span.to_ms, span.status)
}

/// A run whose model answers after a retry; of its two calls one needs a person and a second attempt.
fn worked() -> Vec<Arc<Record>> {
    let error = ProviderError::RateLimited { retry_after: None, message: "slow down".into() };
    let failure = ModelFailure::new(&error, 0.0);
    let calls = ["read_file", "write_file"].map(|tool| ToolCall::new("c", tool, json!({ "path": "b.rs" })));
    log(vec![
        (0, model_call_started(0, 0)),
        (100, RecordBody::ModelCallFailed { command: CommandId(0), attempt: 0, failure }),
        (300, model_call_started(0, 1)),
        (400, answered(0, 1, calls.map(Content::from).into())),
        (400, call_started(call(0, 0), 0)),
        (400, question(call(0, 1))),
        (450, call_finished(call(0, 0))),
        (450, RecordBody::Suspended { waiting: vec![call(0, 1)] }),
        (5_000, RecordBody::Resumed),
        (5_000, RecordBody::ApprovalAnswered { call: call(0, 1), answer: Answer::Approve }),
        (5_001, call_started(call(0, 1), 0)),
        (5_101, call_failed(call(0, 1))),
        (5_301, call_started(call(0, 1), 1)),
        (5_401, call_finished(call(0, 1))),
        (5_401, model_call_started(1, 0)),
        (5_501, ended(OutcomeStatus::Cancelled, None)),
    ])
}

// spec: EX-10
#[test]
fn timeline_has_attempts_pauses_questions_and_calls() {
    use SpanStatus::{Cancelled, Completed, Failed};
    let timeline = Timeline::of(&worked());
    let rows: Vec<_> = timeline.spans.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            ("m1", 0, 0, Some(100), Failed),
            ("r2", 0, 100, Some(300), Completed),
            ("m3", 0, 300, Some(400), Completed),
            ("t5", 0, 400, Some(450), Completed),
            ("w6", 1, 400, Some(5_000), Completed),
            ("t11", 0, 5_001, Some(5_101), Failed),
            ("r12", 0, 5_101, Some(5_301), Completed),
            ("t13", 0, 5_301, Some(5_401), Completed),
            ("m15", 0, 5_401, Some(5_501), Cancelled),
        ]
    );
    let labels: Vec<_> = timeline.spans.iter().map(|span| span.label.as_str()).collect();
    assert_eq!(labels[2..6], ["small-1", "read_file b.rs", "Write b.rs", "write_file b.rs"]);
    let parents: Vec<_> = timeline.spans[3..6].iter().map(|span| span.parent.as_deref()).collect();
    assert_eq!(parents, [Some("m3"); 3]);
    let model = &timeline.spans[2];
    let tokens = model.tokens.map(|tokens| (tokens.input, tokens.total_tokens));
    assert_eq!((tokens, model.cost_micros, model.cached_share), (Some((30, 110)), Some(120), Some(0.7)));
    assert_eq!((timeline.from_ms, timeline.to_ms, timeline.is_cut), (0, 5_501, false));
}

#[test]
fn newest_begins_with_the_first_span_that_is_left() {
    let timeline = Timeline::of(&worked()).newest(2);
    let ids: Vec<_> = timeline.spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!((ids, timeline.from_ms, timeline.is_cut), (vec!["t13", "m15"], 5_301, true));
    assert!(!Timeline::of(&worked()).newest(9).is_cut);
    assert_eq!(Timeline::of(&worked()).newest(0).spans, []);
}

#[test]
fn timeline_of_a_resumed_run_shows_the_time_without_a_process() {
    let lost = RecordBody::ModelCallLost { command: CommandId(0), attempt: 0 };
    let log = log(vec![
        (10, model_call_started(0, 0)),
        (1_000, RecordBody::Resumed),
        (1_000, lost),
        (1_000, model_call_started(0, 1)),
    ]);
    let rows = Timeline::of(&log).spans;
    let rows: Vec<_> = rows.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            ("m1", 0, 10, Some(10), SpanStatus::Lost),
            ("w1", 1, 10, Some(1_000), SpanStatus::Completed),
            ("m4", 0, 1_000, None, SpanStatus::Running),
        ]
    );
}

#[test]
fn timeline_of_a_plan_has_its_steps_with_their_child_runs() {
    let steps = vec![SubTask::new("a", "Search"), SubTask::new("b", "Write").after(["a"])];
    let task = Box::new(Task::new("run_1", "A report").with_subtasks(steps));
    let (command, child) = (CommandId(0), RunId::new("run_1.1-0"));
    let plan = |record| RecordBody::Plan(Box::new(record));
    let start = RecordBody::ToolCallStarted {
        call: call(1, 0),
        attempt: 0,
        effect: Effect::ReadOnly,
        child_run: Some(child.clone()),
    };
    let spent = Spending::new(1_200, 900);
    let settled = RecordBody::LeaseSettled { call: call(1, 0), child_run: child.clone(), spent };
    let log = log(vec![
        (0, plan(PlanRecord::PlanningStarted { command, attempt: 0, reason: None })),
        (50, plan(PlanRecord::PlanningPaid { command, spent: Spending::new(20, 2) })),
        (50, plan(PlanRecord::Planned { command, task, warnings: vec![] })),
        (50, start),
        (90, settled),
        (90, call_finished(call(1, 0))),
        (90, call_started(call(2, 0), 0)),
    ]);
    let spans = Timeline::of(&log).spans;
    let rows: Vec<_> = spans.iter().map(|span| (span.kind, span.label.as_str(), span.to_ms)).collect();
    assert_eq!(
        rows,
        [
            (SpanKind::Model, "plan", Some(50)),
            (SpanKind::Step, "a: Search", Some(90)),
            (SpanKind::Child, "a", Some(90)),
            (SpanKind::Step, "b: Write", None),
            (SpanKind::Tool, "b", None),
        ]
    );
    assert_eq!(spans[2].parent.as_ref(), Some(&spans[1].id));
    assert_eq!((spans[2].child_run.as_ref(), spans[2].cost_micros), (Some(&child), Some(900)));
    assert_eq!(spans[0].tokens.map(|tokens| tokens.total_tokens), Some(20));
}

fn body() -> impl Strategy<Value = RecordBody> {
    let any_call = || (0..3_u64, 0..2_u32).prop_map(|(command, index)| call(command, index));
    prop_oneof![
        (0..3_u64, 0..3_u32).prop_map(|(command, attempt)| model_call_started(command, attempt)),
        (0..3_u64).prop_map(|command| answered(command, 0, vec!["x".into()])),
        any_call().prop_map(|call| call_started(call, 0)),
        any_call().prop_map(call_finished),
        any_call().prop_map(call_failed),
        any_call().prop_map(question),
        any_call().prop_map(|call| RecordBody::ApprovalAnswered { call, answer: Answer::Approve }),
        Just(RecordBody::Suspended { waiting: vec![] }),
        Just(RecordBody::Resumed),
        Just(finished("done")),
    ]
}

proptest! {
    #[test]
    fn spans_of_a_lane_do_not_overlap_and_have_ids_and_parents(
        bodies in proptest::collection::vec((0..3_u64, body()), 0..60)
    ) {
        let mut now = 0;
        let bodies = bodies.into_iter().map(|(later, body)| { now += later; (now, body) }).collect();
        let spans = Timeline::of(&log(bodies)).spans;
        let ids: HashSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
        prop_assert_eq!(ids.len(), spans.len());
        let mut lanes: BTreeMap<u32, u64> = BTreeMap::new();
        for span in &spans {
            prop_assert!(span.parent.as_deref().is_none_or(|parent| ids.contains(parent)));
            prop_assert!(span.to_ms.is_none_or(|to| to >= span.from_ms));
            let end = span.to_ms.map_or(u64::MAX, |to| to.max(span.from_ms + 1));
            let before = lanes.insert(span.lane, end);
            prop_assert!(before.is_none_or(|before| before <= span.from_ms), "{:?}", span);
        }
    }
}
