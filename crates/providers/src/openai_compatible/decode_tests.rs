//! Tests that no order of events makes the decoder panic or contradict itself.

use proptest::prelude::*;

use super::*;
use crate::wire_fixture::assert_survives;

/// Events of all kinds, sensible and not.
const EVENTS: &[&str] = &[
    r#"{"choices":[{"delta":{"content":"a"}}]}"#,
    r#"{"choices":[{"delta":{"content":"<think>"}}]}"#,
    r#"{"choices":[{"delta":{"content":"</think> "}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":"r","content":"b"}}]}"#,
    r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"r"},7]}}]}"#,
    r#"{"choices":[{"delta":{"content":[{"type":"text","text":"p"},{"type":"image"},{"thinking":"t"}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":7,"id":"y","function":{"arguments":"1"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"2"}},{}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"id":"z","function":{"name":"a.b"}}]}}]}"#,
    r#"{"choices":[{"delta":{"function_call":{"name":"g","arguments":{"k":[1]}}}}]}"#,
    r#"{"choices":[{"delta":null,"finish_reason":"length"}]}"#,
    r#"{"choices":[{"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":"whole"}}]}"#,
    r#"{"choices":null,"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}}"#,
    r#"{"choices":[{"delta":{"content":7,"refusal":{},"reasoning":true}}]}"#,
    r#"{"choices":[]}"#,
    r#"{"choices":[{"#,
    "{}",
    "",
    "[DONE]",
    "[",
    "null",
    "7",
];

fn decoder() -> ChatDecoder {
    ChatDecoder::new(Answer::new(&archon_types::Request::new("m", vec![]), "p", None), true)
}

proptest! {
    // spec: P-17, P-36, P-41
    #[test]
    fn any_order_of_events_is_survived(
        events in prop::collection::vec(prop::sample::select(EVENTS), 0..20),
        cancelled: bool,
    ) {
        let events = events.into_iter().map(|data| Event { data: data.to_owned(), ..Event::default() });
        assert_survives(decoder(), events, cancelled);
    }

    // spec: P-31
    #[test]
    fn any_text_is_survived(data in r#"[\[\]{}":,a-c0-9 ]{0,40}"#) {
        let event = Event { data, ..Event::default() };
        let _ = decoder().event(event, &mut VecDeque::new());
    }
}
