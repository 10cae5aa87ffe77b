//! Argument text becomes JSON or is kept as it came; nothing is invented.
#![no_main]

use archon_types::ToolCall;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let call = ToolCall::from_json_text("id", "tool", text);
    match &call.malformed {
        Some(malformed) => assert_eq!(malformed.text, text),
        None if matches!(text.trim(), "" | "null") => assert_eq!(call.arguments, serde_json::json!({})),
        None => assert_eq!(serde_json::from_str::<serde_json::Value>(text).ok(), Some(call.arguments)),
    }
});
