//! The arguments of a tool call that come in fragments, cut anywhere, are those of the whole text; a fragment
//! that stands alone is never taken for more than it says. The first byte says where they are cut.
#![no_main]

use archon_providers::read_chat_stream;
use archon_types::ToolCall;
use serde_json::json;

libfuzzer_sys::fuzz_target!(|input: (u8, &str)| {
    let (seed, text) = input;
    let step = usize::from(seed) % 11 + 1;
    let letters: Vec<char> = text.chars().collect();
    let delta = |call: serde_json::Value| {
        let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
        format!("data: {chunk}\n\n").into_bytes()
    };
    let first = delta(json!({"index": 0, "id": "c", "function": {"name": "t", "arguments": ""}}));
    let fragments = letters
        .chunks(step)
        .map(|piece| delta(json!({"index": 0, "function": {"arguments": piece.iter().collect::<String>()}})));
    let end = b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    let pieces = std::iter::once(first).chain(fragments).chain([end.to_vec()]);
    let message = read_chat_stream(pieces).expect("an answer");
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    let whole = ToolCall::from_json_text("c", "t", text);
    assert_eq!(calls.len(), 1);
    assert_eq!((&calls[0].arguments, &calls[0].malformed), (&whole.arguments, &whole.malformed));
});
