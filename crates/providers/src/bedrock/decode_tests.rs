//! Tests that no order of events makes the decoder panic or contradict itself.

use archon_types::Request;
use proptest::prelude::*;

use super::*;
use crate::wire_fixture::assert_survives;

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
        let decoder = ConverseDecoder::new(blocks, Some("answer".to_owned()));
        let event = |(kind, payload): (&str, &'static str)| Frame {
            kind: FrameKind::Event(kind.to_owned()),
            payload: payload.into(),
        };
        assert_survives(decoder, events.into_iter().map(event), cancelled);
    }
}
