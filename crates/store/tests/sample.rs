//! Records for the tests: a short run with one tool call.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]
#![allow(dead_code, reason = "each test binary uses its share")]

use std::sync::Arc;

use archon_types::{Durability, Journal, OpenMode, Record, RunId};
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
        "type": "run_started", "format": 2, "kind": "loop", "run": run, "session": "s1", "agent": "a1", "loop_id": "s1.0.0",
        "tenant": "local", "origin": {"kind": "prompt"}, "first_trigger": "user",
        "config": {"provider": "scripted", "model": "m", "limits": {}},
    })
}

/// The start of a run with another origin.
pub(crate) fn started_from(run: &str, origin: Value) -> Value {
    let mut body = started(run);
    body["origin"] = origin;
    body
}

/// The origin of a run that goes on from another.
pub(crate) fn continuing(run: &str) -> Value {
    json!({"kind": "continues", "run": run, "records": 6, "continuation": {"kind": "default"}})
}

/// The origin of a run that the call 0.0 of another started.
pub(crate) fn called_by(run: &str) -> Value {
    json!({"kind": "called_by", "run": run, "call": {"command": 0, "index": 0}})
}

pub(crate) fn tool_call_finished(text: &str) -> Value {
    json!({
        "type": "tool_call_finished", "call": {"command": 0, "index": 0},
        "result": {"content": [{"type": "text", "text": text}]},
    })
}

/// Text without repetition that makes a record too large for a line.
pub(crate) fn large(seed: u64) -> String {
    let mut state = seed;
    (0..6000).map(|_| format!("{:016x}", random(&mut state))).collect()
}

/// The next of a row of numbers (SplitMix64).
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Creates a run with these records.
pub(crate) fn write(journal: &dyn Journal, id: &str, records: &[Arc<Record>]) {
    block_on(async {
        let mut open = journal.open(&run(id), OpenMode::Create).await.unwrap();
        open.writer.append(records, Durability::Buffered).await.unwrap();
    });
}

pub(crate) fn prompted(text: &str) -> Value {
    json!({
        "type": "message_added", "source": "prompt",
        "message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_767_225_600_000_u64},
    })
}

pub(crate) fn note(text: &str) -> Value {
    json!({"type": "hint_added", "text": text})
}

/// A run of six records, with text that a careless encoder would break.
pub(crate) fn log(id: &str) -> Vec<Arc<Record>> {
    let call = json!({"command": 0, "index": 0});
    records([
        started(id),
        prompted("What is 15% of 200?\nTwo lines, \"quotes\", ünïcode \u{2028}."),
        json!({"type": "model_call_started", "command": 0, "attempt": 0, "turn": 0, "request_hash": ""}),
        json!({"type": "tool_call_started", "call": call, "attempt": 0, "effect": "read_only"}),
        json!({"type": "tool_call_finished", "call": call, "result": {"content": [{"type": "text", "text": "30"}]}}),
        note("the end"),
    ])
}
