//! Nothing that a service sends, in whatever order, makes the decoder panic or contradict itself.

use proptest::prelude::*;

use super::*;

/// Events of all kinds, sensible and not.
const EVENTS: &[&str] = &[
    r#"{"choices":[{"delta":{"content":"a"}}]}"#,
    r#"{"choices":[{"delta":{"content":"<think>"}}]}"#,
    r#"{"choices":[{"delta":{"content":"</think> "}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":"r","content":"b"}}]}"#,
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
    let message = AssistantMessage { model: "m".into(), ..AssistantMessage::default() };
    ChatDecoder::new(message, Arc::default(), None, true)
}

proptest! {
    // spec: P-17, P-36, P-41
    #[test]
    fn any_order_of_events_is_survived(
        events in prop::collection::vec(prop::sample::select(EVENTS), 0..20),
        cancelled: bool,
    ) {
        let (mut decoder, mut out) = (decoder(), VecDeque::new());
        let mut failed = false;
        for data in events {
            let event = Event { data: data.to_owned(), ..Event::default() };
            match decoder.event(event, &mut out) {
                Ok(Progress::More) => {}
                Ok(Progress::Last) => break,
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        let started = out.iter().filter(|e| matches!(e, ModelEvent::ToolCallStart { .. })).count();
        if cancelled {
            let message = decoder.abort();
            prop_assert_eq!(message.stop_reason, StopReason::Aborted);
            prop_assert_eq!(message.tool_calls().count(), 0);
        } else if !failed && decoder.end(&mut out).is_ok() {
            let Some(ModelEvent::Done(message)) = out.pop_back() else { panic!("no end") };
            prop_assert_eq!(message.tool_calls().count(), started);
            let ended = out.iter().filter(|e| matches!(e, ModelEvent::ToolCallEnd { .. })).count();
            prop_assert_eq!(ended, started);
            let text: String = out.iter().filter_map(|e| match e {
                ModelEvent::TextDelta(text) => Some(text.as_str()),
                _ => None,
            }).collect();
            let said: String = message.content.iter().filter_map(Content::as_text).collect();
            prop_assert_eq!(text, said);
        }
    }

    // spec: P-31
    #[test]
    fn any_text_is_survived(data in r#"[\[\]{}":,a-c0-9 ]{0,40}"#) {
        let event = Event { data, ..Event::default() };
        let _ = decoder().event(event, &mut VecDeque::new());
    }
}
