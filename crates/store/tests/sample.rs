//! Records for the tests: a short run with one tool call.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]
#![allow(dead_code, reason = "each test binary uses its share")]

use std::sync::Arc;

use archon_types::{Record, RunId};
use serde_json::{Value, json};

pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id)
}

/// Makes records of their bodies: numbered, one second apart.
pub(crate) fn records(bodies: impl IntoIterator<Item = Value>) -> Vec<Arc<Record>> {
    let record = |(seq, mut body): (u64, Value)| {
        body["seq"] = json!(seq);
        body["at"] = json!(1_767_225_600_000_u64 + seq * 1000);
        Arc::new(serde_json::from_value(body).unwrap())
    };
    (0..).zip(bodies).map(record).collect()
}

pub(crate) fn started(run: &str) -> Value {
    json!({
        "type": "run_started", "format": 1, "run": run, "session": "s1", "agent": "a1", "loop_id": "s1.0.0",
        "tenant": "local", "origin": {"kind": "prompt"}, "first_turn": "user",
        "config": {"provider": "scripted", "model": "m"},
    })
}

pub(crate) fn prompted(text: &str) -> Value {
    json!({
        "type": "prompted", "source": "prompt",
        "message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_767_225_600_000_u64},
    })
}

pub(crate) fn note(text: &str) -> Value {
    json!({"type": "noted", "text": text})
}

/// A run of six records, with text that a careless encoder would break.
pub(crate) fn log(id: &str) -> Vec<Arc<Record>> {
    let call = json!({"command": 0, "index": 0});
    records([
        started(id),
        prompted("What is 15% of 200?\nTwo lines, \"quotes\", ünïcode \u{2028}."),
        json!({"type": "model_asked", "command": 0, "attempt": 0, "turn": 0}),
        json!({"type": "tool_started", "call": call, "attempt": 0, "effect": "read_only"}),
        json!({"type": "tool_finished", "call": call, "result": {"content": [{"type": "text", "text": "30"}]}}),
        note("the end"),
    ])
}
