//! Runs as they stand in a log: ids, times, origins, heads of runs, errors of journals.

use std::{any::TypeId, collections::HashSet, sync::Arc};

use archon_types::{
    AgentId, CallId, CommandId, ContinuationKind, Effect, JournalError, LimitReached, LoopId, Origin,
    OutcomeStatus, ProcessGroup, PromptSource, Record, RecordBody, RunHead, RunId, SessionId, SubTaskId,
    TaskId, Timestamp, ToolCallId, TurnTrigger,
};
use expect_test::expect;

use crate::{
    samples::{ended, finished, model_call_started, prompted, started},
    support::{at, round_trip},
};

// spec: T-37, T-33
#[test]
fn ids_are_plain_text_in_json_and_types_of_their_own_in_rust() {
    round_trip(&RunId::new("run_1"), &expect![[r#""run_1""#]]);
    round_trip(&SubTaskId::from("é \" 1".to_owned()), &expect![[r#""é \" 1""#]]);
    round_trip(&CallId::new(CommandId(3), 1), &expect![[r#"{"command":3,"index":1}"#]]);
    assert_eq!(CallId::new(CommandId(3), 1).to_string(), "3.1");
    assert_eq!(format!("{:?} {}", RunId::new("a"), RunId::new("a")), "\"a\" a");
    let map = std::collections::HashMap::from([(RunId::new("run_1"), 1)]);
    assert_eq!(map.get("run_1"), Some(&1));
    let types = [
        TypeId::of::<AgentId>(),
        TypeId::of::<SessionId>(),
        TypeId::of::<LoopId>(),
        TypeId::of::<TaskId>(),
        TypeId::of::<SubTaskId>(),
        TypeId::of::<ToolCallId>(),
        TypeId::of::<RunId>(),
        TypeId::of::<Arc<str>>(),
        TypeId::of::<String>(),
    ];
    assert_eq!(HashSet::from(types).len(), types.len(), "one of them stands for another");
}

// spec: T-11
#[test]
fn continuations() {
    let tag = "2026-01-31T08:00:00Z".to_owned();
    round_trip(&ContinuationKind::Default, &expect![[r#"{"kind":"default"}"#]]);
    round_trip(
        &ContinuationKind::Rerun { tag: tag.clone() },
        &expect![[r#"{"kind":"rerun","tag":"2026-01-31T08:00:00Z"}"#]],
    );
    let continuation = ContinuationKind::Branch { tag };
    round_trip(
        &Origin::Continues { run: "run_0".into(), records: 4, continuation },
        &expect![[
            r#"{"kind":"continues","run":"run_0","records":4,"continuation":{"kind":"branch","tag":"2026-01-31T08:00:00Z"}}"#
        ]],
    );
    round_trip(&Origin::Prompt, &expect![[r#"{"kind":"prompt"}"#]]);
}

// spec: T-12
#[test]
fn turn_trigger_first_depends_on_the_origin() {
    let tag = || "t".to_owned();
    let continues = |continuation| Origin::Continues { run: "run_0".into(), records: 4, continuation };
    let called = Origin::CalledBy { run: "run_0".into(), call: CallId::new(CommandId(0), 0) };
    for configured in [TurnTrigger::User, TurnTrigger::SubAgent] {
        let table = [
            (continues(ContinuationKind::Branch { tag: tag() }), TurnTrigger::Branch),
            (continues(ContinuationKind::Rerun { tag: tag() }), TurnTrigger::Continuation),
            (continues(ContinuationKind::Default), TurnTrigger::Continuation),
            (Origin::Prompt, configured),
            (called.clone(), configured),
        ];
        for (origin, expected) in table {
            assert_eq!(TurnTrigger::first(&origin, configured), expected, "{origin:?}, {configured:?}");
        }
    }
}

// spec: T-04, T-29
#[test]
fn timestamps_in_iso_form() {
    let table = [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253_402_207_200_000, "9999-12-30T22:00:00.000Z"),
        (u64::MAX, "+18446744073709551615ms"),
    ];
    for (ms, text) in table {
        assert_eq!(at(ms).to_string(), text);
        assert_eq!(text.parse::<Timestamp>().unwrap(), at(ms), "{text}");
    }
    let forms = [
        ("2023-11-14T23:13:20.123456+01:00", 1_700_000_000_123),
        ("2023-11-14 22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.123456", 1_700_000_000_123),
        ("1969-12-31T23:59:59Z", 0),
    ];
    for (text, ms) in forms {
        assert_eq!(text.parse::<Timestamp>().unwrap(), at(ms), "{text}");
    }
    for text in ["", "yesterday", "+ms", "+1", "2023-13-01T00:00:00Z"] {
        assert!(text.parse::<Timestamp>().is_err(), "{text}");
    }
}

#[test]
fn time_never_runs_backwards_or_over() {
    use std::time::Duration;
    assert_eq!(at(5).since(at(9)), Duration::ZERO);
    assert_eq!(at(9).since(at(5)), Duration::from_millis(4));
    assert_eq!(at(u64::MAX) + Duration::MAX, at(u64::MAX));
}

// spec: S-14
#[test]
fn processes_of_calls() {
    let call = CallId::new(CommandId(3), 1);
    round_trip(
        &RecordBody::ProcessStarted { call, process_group: ProcessGroup::new(4711, "0b1cf0b2/123456") },
        &expect![[
            r#"{"type":"process_started","call":{"command":3,"index":1},"process_group":{"id":4711,"leader_started":"0b1cf0b2/123456"}}"#
        ]],
    );
    let unknown = RecordBody::ProcessStarted { call, process_group: ProcessGroup::new(4711, "") };
    round_trip(
        &unknown,
        &expect![[
            r#"{"type":"process_started","call":{"command":3,"index":1},"process_group":{"id":4711}}"#
        ]],
    );
    assert!(unknown.is_input() && !unknown.needs_sync(), "no process survives a power cut");
}

#[test]
fn a_run_that_was_called_and_has_a_log() {
    let begun =
        RecordBody::ChildRunCreated { call: CallId::new(CommandId(3), 1), child_run: "run_1.3-1".into() };
    round_trip(
        &begun,
        &expect![[r#"{"type":"child_run_created","call":{"command":3,"index":1},"child_run":"run_1.3-1"}"#]],
    );
    assert!(begun.is_input() && !begun.needs_sync(), "its own log is on the medium");
}

fn head(bodies: Vec<RecordBody>) -> RunHead {
    let records: Vec<_> =
        (0..).zip(bodies).map(|(seq, body)| Arc::new(Record { seq, at: at(100 + seq), body })).collect();
    RunHead::of("run_1".into(), &records)
}

#[test]
fn run_head_status_follows_from_the_log() {
    let start = || RecordBody::RunStarted(Box::new(started()));
    let limit = OutcomeStatus::Limit(LimitReached::Turns { max: 1 });
    let waiting = || RecordBody::Suspended { waiting: vec![] };
    let table = [
        (vec![], "running"),
        (vec![start()], "created"),
        (vec![start(), model_call_started(0, 0)], "running"),
        (vec![start(), waiting()], "suspended"),
        (vec![start(), waiting(), RecordBody::Resumed], "running"),
        (vec![start(), finished("30")], "finished"),
        (vec![start(), ended(OutcomeStatus::Failed, Some("no"))], "failed"),
        (vec![start(), ended(limit, None)], "limit"),
        (vec![start(), ended(OutcomeStatus::Cancelled, None)], "cancelled"),
        (vec![start(), ended(OutcomeStatus::Suspended, None)], "suspended"),
        (vec![start(), ended(OutcomeStatus::Cancelled, None), RecordBody::Resumed], "running"),
    ];
    for (bodies, status) in table {
        assert_eq!(head(bodies.clone()).status.as_str(), status, "{bodies:?}");
    }
}

#[test]
fn the_head_of_a_run_names_its_first_prompt_and_its_times() {
    let long = "ü".repeat(100);
    let extension = archon_types::ExtensionMessage::new("k", serde_json::Value::Null).into();
    let mut head = head(vec![
        RecordBody::RunStarted(Box::new(started())),
        RecordBody::MessageAdded { message: extension, source: PromptSource::Prompt },
        prompted(&long, PromptSource::Prompt),
        prompted("second", PromptSource::FollowUp),
    ]);
    assert_eq!(head.task, "ü".repeat(80));
    assert_eq!((head.started_at, head.updated_at), (at(100), at(103)));
    head.task.truncate(2);
    round_trip(
        &head,
        &expect![[
            r#"{"run_id":"run_1","kind":"loop","session":"s_1","tenant":"local","started_at":100,"updated_at":103,"status":"running","task":"ü"}"#
        ]],
    );
    round_trip(
        &RunHead::unreadable("run_2".into(), "cut off"),
        &expect![[
            r#"{"run_id":"run_2","started_at":0,"updated_at":0,"status":"unreadable","task":"","problem":"cut off"}"#
        ]],
    );
}

#[test]
fn journal_errors_name_the_run_and_give_advice_apart() {
    let run = RunId::new("run_1");
    let errors = [
        JournalError::UnknownRun { run: run.clone() },
        JournalError::Exists { run: run.clone() },
        JournalError::Locked { run: run.clone() },
        JournalError::UnsupportedFormat { run: run.clone(), found: 9, supported: 1 },
        JournalError::UnknownKind { run: run.clone(), kind: None },
        JournalError::UnknownKind { run: run.clone(), kind: Some("choir".into()) },
        JournalError::Corrupt { run, record: 3, problem: "not JSON".into() },
        JournalError::BadId { id: "../run_1".into() },
        JournalError::Storage {
            action: "write",
            place: "run_1".into(),
            source: std::io::Error::other("disk full"),
        },
    ];
    for error in errors {
        assert!(error.to_string().contains("run_1"), "{error}");
        assert!(!error.advice().is_empty());
    }
}

#[test]
fn is_input_is_true_for_inputs_and_false_for_derived_records() {
    let records: Vec<_> =
        crate::samples::records().into_iter().chain(crate::samples::window_records()).collect();
    let derived: Vec<_> = records.iter().filter(|r| !r.body.is_input()).map(kind).collect();
    expect!["model_call_started hint_added suspended limit_reached run_finished compacted context_status model_call_started auxiliary_call_started compacted session_snapshot"]
        .assert_eq(&distinct(derived));
    let synced: Vec<_> = crate::samples::records().iter().filter(|r| r.body.needs_sync()).map(kind).collect();
    expect!["run_started approval_requested tool_call_started suspended run_finished"]
        .assert_eq(&distinct(synced));
    let started = |effect| RecordBody::ToolCallStarted {
        call: CallId::new(CommandId(0), 0),
        attempt: 0,
        effect,
        child_run: None,
    };
    let synced = [Effect::ReadOnly, Effect::Idempotent, Effect::SideEffect].map(|e| started(e).needs_sync());
    assert_eq!(synced, [false, true, true]);
}

fn kind(record: &Arc<Record>) -> String {
    serde_json::to_value(&record.body).unwrap()["type"].as_str().unwrap().to_owned()
}

fn distinct(mut kinds: Vec<String>) -> String {
    kinds.dedup();
    kinds.join(" ")
}
