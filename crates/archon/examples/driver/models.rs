//! The models that are asked when the cost of a turn is counted: chat completions whose script is the model's name.
//! `mock-t10-p2-k50` calls the tool in ten turns, twice in each, with 50 deltas of text in every answer.
//!
//! Each event is an HTTP chunk of its own, and an answer is written at once: what counts is reading, not waking up.

use std::io::Read as _;

use anyhow::Result;
use archon_testkit::{MockResponse, MockServer, RecordedRequest};
use serde_json::{Value, json};

/// Prints the URL of the server, and serves until the input ends.
pub(crate) async fn serve() -> Result<()> {
    let server = MockServer::answering(answer).await;
    println!("{}/v1", server.url());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

struct Script {
    turns: usize,
    calls: usize,
    deltas: usize,
}

impl Script {
    fn parse(model: &str) -> Option<Self> {
        let mut script = Self { turns: 0, calls: 1, deltas: 1 };
        for part in model.strip_prefix("mock-")?.split('-') {
            let (kind, number) = part.split_at_checked(1)?;
            let number = number.parse().ok()?;
            match kind {
                "t" => script.turns = number,
                "p" => script.calls = number,
                "k" => script.deltas = number,
                _ => return None,
            }
        }
        Some(script)
    }
}

fn answer(request: &RecordedRequest) -> MockResponse {
    let Some(script) = request.body["model"].as_str().and_then(Script::parse) else {
        return MockResponse::new(400).chunk("the model has to be such as mock-t10-p2-k50");
    };
    let messages = request.body["messages"].as_array();
    let results = messages.into_iter().flatten().filter(|message| message["role"] == "tool").count();
    let calls = if results < script.turns * script.calls { results..results + script.calls } else { 0..0 };
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let words = (0..script.deltas).map(|_| delta(json!({ "content": "lorem " })));
    let start = delta(json!({ "role": "assistant", "content": "" }));
    let used = json!({ "prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020 });
    let end = [choice(json!({}), Some(finish)), chunk(json!([]), Some(used)), "[DONE]".to_owned()];
    let calls = calls.enumerate().flat_map(|(index, number)| call(index, number));
    MockResponse::events([start].into_iter().chain(words).chain(calls).chain(end)).at_once()
}

/// A call in three pieces.
fn call(index: usize, number: usize) -> [String; 3] {
    let piece = |call: Value| delta(json!({ "tool_calls": [call] }));
    let arguments = |text: &str| json!({ "index": index, "function": { "arguments": text } });
    let function = json!({ "name": "add", "arguments": "" });
    let first =
        json!({ "index": index, "id": format!("call_{number}"), "type": "function", "function": function });
    [piece(first), piece(arguments(&format!("{{\"a\":{number},"))), piece(arguments("\"b\":1}"))]
}

fn delta(delta: Value) -> String {
    choice(delta, None)
}

fn choice(delta: Value, finish: Option<&str>) -> String {
    chunk(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]), None)
}

fn chunk(choices: Value, usage: Option<Value>) -> String {
    let mut chunk = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "mock",
        "system_fingerprint": "fp_1",
        "choices": choices,
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage;
    }
    chunk.to_string()
}
