//! Tests that no order of events makes the decoder panic or contradict itself.

use proptest::prelude::*;

use super::*;
use crate::wire_fixture::assert_survives;

/// Events of all kinds, sensible and not.
const EVENTS: &[&str] = &[
    r#"{"type":"response.created","response":{"model":"m"}}"#,
    r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"delta":"b"}"#,
    r#"{"type":"response.refusal.delta","delta":"c"}"#,
    r#"{"type":"response.reasoning_text.delta","output_index":1,"delta":"r"}"#,
    r#"{"type":"response.reasoning_summary_part.added","output_index":1}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"x","name":"f"}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call"}}"#,
    r#"{"type":"response.output_item.added","output_index":2}"#,
    r#"{"type":"response.function_call_arguments.start","output_index":2,"name":"a.b"}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{"}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"1"}"#,
    r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{}"}"#,
    r#"{"type":"response.function_call_arguments.done","output_index":7}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","encrypted_content":"e","summary":[{}]}}"#,
    r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"message","content":[{"text":"w"},7]}}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","phase":"commentary"}}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","arguments":"2"}}"#,
    r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#,
    r#"{"type":"response.completed","response":{"output":[{"type":"message","content":[{"text":"z"}]}]}}"#,
    r#"{"object":"response","output":[7]}"#,
    r#"{"type":"response.output_text.delta","output_"#,
    r#"{"type":null}"#,
    "{}",
    "",
    "[DONE]",
    "null",
    "7",
];

fn decoder() -> ResponsesDecoder {
    ResponsesDecoder::new(Blocks::new(&archon_types::Request::new("m", vec![]), "p", None))
}

proptest! {
    // spec: P-17, P-20, P-41
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
    fn any_text_is_survived(data in r#"[\[\]{}":,a-c0-9 ]{0,40}"#, name in "(response.completed|response.output_item.done|error|)") {
        let event = Event { data, event: name, ..Event::default() };
        let _ = decoder().event(event, &mut VecDeque::new());
    }
}
