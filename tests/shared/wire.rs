//! Scripted chat-completions streams, and agents that talk to a mock server.

use archon::{
    Archon, ArchonBuilder,
    providers::{OpenAiCompatible, OpenAiOptions},
};
use archon_testkit::{MockResponse, MockServer};
use serde_json::json;
use std::sync::Arc;

/// A builder whose model is the mock server.
pub(crate) fn with_model(server: &MockServer) -> ArchonBuilder {
    let provider =
        OpenAiCompatible::new(&format!("{}/v1", server.url()), OpenAiOptions::default()).expect("a provider");
    Archon::builder().provider(Arc::new(provider), "mock")
}

fn chunk(delta: &serde_json::Value, finish: Option<&str>) -> String {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock",
           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    .to_string()
}

/// A chunk with a piece of text.
pub(crate) fn text(text: &str) -> String {
    chunk(&json!({"content": text}), None)
}

/// A chunk with a whole tool call.
pub(crate) fn call(index: u32, id: &str, name: &str, arguments: &str) -> String {
    let function = json!({"name": name, "arguments": arguments});
    chunk(
        &json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
        None,
    )
}

/// The chunk that ends an answer.
pub(crate) fn finish(reason: &str) -> String {
    chunk(&json!({}), Some(reason))
}

/// A whole response that is one text.
pub(crate) fn answer(words: &str) -> MockResponse {
    MockResponse::events([text(words), finish("stop"), "[DONE]".to_owned()])
}

/// A whole response that asks for one tool.
pub(crate) fn asks_for(id: &str, name: &str, arguments: &str) -> MockResponse {
    MockResponse::events([call(0, id, name, arguments), finish("tool_calls"), "[DONE]".to_owned()])
}
