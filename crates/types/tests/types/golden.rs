//! Logs as version 1 wrote them. A file never changes once that version is released, except that
//! new kinds of record are added at its end: what it holds must load for ever.

use std::{path::Path, sync::Arc};

use archon_types::{Event, LOG_FORMAT, Record};

use crate::samples::{
    approval_records, check_records, delegation_records, events, failure_records, form_records, mode_records,
    parallel_records, plan_records, records, steering_records, team_records, window_records,
};

const GOLDEN: &str = include_str!("../golden/log-v2.jsonl");
const GOLDEN_APPROVAL: &str = include_str!("../golden/approval-v2.jsonl");
const GOLDEN_CHECK: &str = include_str!("../golden/check-v2.jsonl");
const GOLDEN_FAILURE: &str = include_str!("../golden/failure-v2.jsonl");
const GOLDEN_FORM: &str = include_str!("../golden/output-v2.jsonl");
const GOLDEN_DELEGATION: &str = include_str!("../golden/delegation-v2.jsonl");
const GOLDEN_MODE: &str = include_str!("../golden/mode-v2.jsonl");
const GOLDEN_PARALLEL: &str = include_str!("../golden/parallel-v2.jsonl");
const GOLDEN_PLAN: &str = include_str!("../golden/plan-v2.jsonl");
const GOLDEN_STEERING: &str = include_str!("../golden/steering-v2.jsonl");
const GOLDEN_TEAM: &str = include_str!("../golden/team-v2.jsonl");
const GOLDEN_WINDOW: &str = include_str!("../golden/window-v2.jsonl");

fn lines(records: &[Arc<Record>]) -> String {
    records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect()
}

#[test]
fn golden_logs_load_and_are_written_back_unchanged() {
    check("log-v2.jsonl", GOLDEN, &records());
    check("approval-v2.jsonl", GOLDEN_APPROVAL, &approval_records());
    check("check-v2.jsonl", GOLDEN_CHECK, &check_records());
    check("failure-v2.jsonl", GOLDEN_FAILURE, &failure_records());
    check("output-v2.jsonl", GOLDEN_FORM, &form_records());
    check("delegation-v2.jsonl", GOLDEN_DELEGATION, &delegation_records());
    check("mode-v2.jsonl", GOLDEN_MODE, &mode_records());
    check("parallel-v2.jsonl", GOLDEN_PARALLEL, &parallel_records());
    check("plan-v2.jsonl", GOLDEN_PLAN, &plan_records());
    check("steering-v2.jsonl", GOLDEN_STEERING, &steering_records());
    check("team-v2.jsonl", GOLDEN_TEAM, &team_records());
    check("window-v2.jsonl", GOLDEN_WINDOW, &window_records());
    assert_eq!(LOG_FORMAT, 2, "a new format needs a golden file of its own beside this one");
}

// A kind that is in no file could change its shape without anybody noticing.
#[cfg(feature = "schema")]
#[test]
fn every_kind_of_record_is_in_a_golden_file() {
    use std::collections::BTreeSet;

    use archon_types::Json;

    let files = [
        GOLDEN,
        GOLDEN_APPROVAL,
        GOLDEN_CHECK,
        GOLDEN_FAILURE,
        GOLDEN_FORM,
        GOLDEN_DELEGATION,
        GOLDEN_MODE,
        GOLDEN_PARALLEL,
        GOLDEN_PLAN,
        GOLDEN_STEERING,
        GOLDEN_TEAM,
        GOLDEN_WINDOW,
    ];
    let kind = |line: &str| serde_json::from_str::<Json>(line).unwrap()["type"].as_str().unwrap().to_owned();
    let kept: BTreeSet<_> = files.iter().flat_map(|file| file.lines()).map(kind).collect();
    assert_eq!(kept, crate::schema::kinds(0, "type"));
}

fn check(file: &str, golden: &str, records: &[Arc<Record>]) {
    // Setting this variable writes the file, for a new kind of record.
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
        std::fs::write(path, lines(records)).unwrap();
        return;
    }
    let read: Vec<Arc<Record>> = golden.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, records);
    assert_eq!(lines(&read), golden, "what was read is written as it was");
}

#[test]
fn records_without_later_fields_load_with_defaults() {
    let sparse = r#"{"seq":0,"at":0,"type":"run_started","format":2,"kind":"loop","run":"r","session":"s","agent":"a","loop_id":"l",
        "tenant":"local","origin":{"kind":"prompt"},"first_trigger":"user","config":{}}"#;
    assert!(serde_json::from_str::<Record>(sparse).is_ok());
    let failed = r#"{"seq":0,"at":0,"type":"model_call_failed","command":0,"attempt":0,
        "failure":{"code":"other","message":"m","retryable":false},"new_field":1}"#;
    assert!(serde_json::from_str::<Record>(failed).is_ok());
}

// A record keeps a `run` of its own beside the run that an event names.
#[test]
fn every_event_is_read_back_as_it_was() {
    for event in events() {
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event, "{json}");
    }
}
