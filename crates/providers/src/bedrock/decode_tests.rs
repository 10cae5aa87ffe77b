//! Nothing that a service sends, in whatever order, makes the decoder panic or contradict itself.

use archon_types::{Content, Request, StopReason};
use proptest::prelude::*;

use super::*;

/// Events of all kinds, sensible and not.
const EVENTS: &[(&str, &str)] = &[
    ("messageStart", r#"{"role":"assistant"}"#),
    ("contentBlockStart", r#"{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"x","name":"f"}}}"#),
    ("contentBlockStart", r#"{"contentBlockIndex":2,"start":{"toolUse":{}}}"#),
    ("contentBlockStart", r#"{"contentBlockIndex":3,"start":{"toolUse":{"name":"answer"}}}"#),
    ("contentBlockStart", r#"{"contentBlockIndex":4,"start":{"image":{"format":"png"}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"b"}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{"}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"1"}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{}"}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":7,"delta":{"toolUse":{"input":"?"}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"r"}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s"}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"q"}}}"#),
    ("contentBlockDelta", r#"{"delta":{"citation":{}}}"#),
    ("contentBlockDelta", r#"{"delta":7}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
    ("messageStop", r#"{"stopReason":"max_tokens"}"#),
    ("messageStop", r#"{"stopReason":"tool_use"}"#),
    ("metadata", r#"{"usage":{"inputTokens":1},"metrics":{}}"#),
    ("somethingNew", "not even JSON"),
    ("messageStop", ""),
];

proptest! {
    // spec: P-27, P-41
    #[test]
    fn any_order_of_events_is_survived(
        events in prop::collection::vec(prop::sample::select(EVENTS), 0..20),
        cancelled: bool,
    ) {
        let blocks = Blocks::new(&Request::new("m", vec![]), "p", None);
        let mut decoder = ConverseDecoder::new(blocks, Some("answer".to_owned()));
        let (mut out, mut failed) = (VecDeque::new(), false);
        for (kind, payload) in events {
            let frame = Frame { kind: FrameKind::Event(kind.to_owned()), payload: payload.into() };
            match decoder.event(frame, &mut out) {
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
            let shown = |delta: fn(&ModelEvent) -> Option<&str>| -> String { out.iter().filter_map(delta).collect() };
            let text = shown(|e| if let ModelEvent::TextDelta(text) = e { Some(text) } else { None });
            let said = |of: fn(&Content) -> Option<&str>| -> String { message.content.iter().filter_map(of).collect() };
            prop_assert_eq!(text, said(Content::as_text));
        }
    }
}
