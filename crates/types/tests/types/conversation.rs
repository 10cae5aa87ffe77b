//! Content, messages, transcript entries and token usage.

use archon_types::{
    AgentMessage, AssistantMessage, Content, ExtensionMessage, LlmMessage, MalformedArguments, Media,
    Message, MessageMetadata, StopReason, ToolCall, ToolMark, ToolResult, ToolResultMessage, Usage,
    UserMessage,
};
use expect_test::expect;
use serde_json::json;

use crate::{
    samples::{answer, usage},
    support::{at, names, round_trip},
};

// spec: T-01, T-18
#[test]
fn content_blocks() {
    let thinking = |signature: Option<&str>| Content::Thinking {
        thinking: "hm".into(),
        signature: signature.map(str::to_owned),
    };
    round_trip(&Content::text("hi"), &expect![[r#"{"type":"text","text":"hi"}"#]]);
    let image = Content::Image { data: "aGk=".into(), mime_type: "image/png".into() };
    round_trip(&image, &expect![[r#"{"type":"image","data":"aGk=","mime_type":"image/png"}"#]]);
    let media = Content::from(Media::new(b"%PDF-1.7", Some("a.pdf")).unwrap());
    round_trip(
        &media,
        &expect![[
            r#"{"type":"media","sha256":"86edbaa24831badfa0a8b04bb410141e2ee4182b6d0014493fe262a7a331c20b","mime_type":"application/pdf","bytes":8,"name":"a.pdf","pages":1,"data":"JVBERi0xLjc="}"#
        ]],
    );
    round_trip(&thinking(None), &expect![[r#"{"type":"thinking","thinking":"hm"}"#]]);
    round_trip(&thinking(Some("s")), &expect![[r#"{"type":"thinking","thinking":"hm","signature":"s"}"#]]);
    let call = ToolCall::new("c1", "calculator", json!({"b": 1, "a": 2}));
    round_trip(
        &Content::from(call),
        &expect![[r#"{"type":"toolCall","id":"c1","name":"calculator","arguments":{"b":1,"a":2}}"#]],
    );
}

// spec: T-18
#[test]
fn tool_call_malformed_arguments_are_stored_verbatim() {
    let parse = |text| ToolCall::from_json_text("c1", "t", text);
    for (text, arguments) in
        [("", json!({})), (" \n", json!({})), ("{\"a\":1}", json!({"a": 1})), ("[]", json!([]))]
    {
        assert_eq!(parse(text), ToolCall::new("c1", "t", arguments), "{text:?}");
    }
    for text in ["{\"a\":", "{'a': 1}", "{} {}", "nul"] {
        let call = parse(text);
        assert_eq!(call.arguments, json!({}), "{text:?}");
        assert_eq!(call.malformed.as_ref().unwrap().text, text);
    }
    let mut broken = parse("{\"a\":");
    broken.malformed = Some(MalformedArguments { text: "{\"a\":".into(), error: "cut off".into() });
    round_trip(
        &broken,
        &expect![[
            r#"{"id":"c1","name":"t","arguments":{},"malformed":{"text":"{\"a\":","error":"cut off"}}"#
        ]],
    );
}

// spec: T-01
#[test]
fn only_text_blocks_are_joined() {
    let thinking = Content::Thinking { thinking: "hm".into(), signature: None };
    let blocks = [Content::text("a"), thinking, Content::text("b")];
    assert_eq!(Content::join_text(&blocks), "a\nb");
    assert_eq!(Content::join_text(&blocks[..1]), "a");
    assert_eq!(Content::join_text(&[]), "");
}

// spec: T-02, T-33
#[test]
fn messages() {
    round_trip(
        &Message::user("hi", at(5)),
        &expect![[r#"{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5}"#]],
    );
    round_trip(
        &Message::Assistant(answer(vec!["hello".into()])),
        &expect![[
            r#"{"role":"assistant","content":[{"type":"text","text":"hello"}],"stop_reason":"stop","model":"test-1","provider":"scripted","usage":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45},"timestamp":7}"#
        ]],
    );
    let failed = AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some("overloaded".into()),
        ..AssistantMessage::default()
    };
    round_trip(
        &Message::Assistant(failed),
        &expect![[
            r#"{"role":"assistant","content":[],"stop_reason":"error","model":"","provider":"","usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"total_tokens":0},"timestamp":0,"error_message":"overloaded"}"#
        ]],
    );
    let call = ToolCall::new("c1", "calculator", json!({}));
    let result = Message::tool_result(&call, &ToolResult::error("no"), at(6));
    round_trip(
        &result,
        &expect![[
            r#"{"role":"toolResult","tool_call_id":"c1","tool_name":"calculator","content":[{"type":"text","text":"Error: no"}],"is_error":true,"timestamp":6}"#
        ]],
    );
}

// spec: T-02, T-03
#[test]
fn tool_result_message_has_the_same_json_for_every_provider() {
    let call = ToolCall::new("c1", "calculator", json!({"x": 1}));
    let Message::ToolResult(message) = Message::tool_result(&call, &ToolResult::success("30"), at(6)) else {
        panic!("not a tool result")
    };
    let expected = ToolResultMessage {
        tool_call_id: "c1".into(),
        tool_name: "calculator".into(),
        content: vec!["30".into()],
        is_error: false,
        timestamp: at(6),
    };
    assert_eq!(message, expected);
}

// spec: T-04
#[test]
fn metadata_defaults_and_iso_time() {
    let metadata = MessageMetadata::new("msg_1", at(1_700_000_000_123));
    round_trip(
        &metadata,
        &expect![[
            r#"{"message_id":"msg_1","timestamp":"2023-11-14T22:13:20.123Z","conversation_id":"","user_id":""}"#
        ]],
    );
    let sparse = r#"{"message_id":"msg_1","timestamp":"2023-11-14T23:13:20.123+01:00"}"#;
    assert_eq!(serde_json::from_str::<MessageMetadata>(sparse).unwrap(), metadata);
    let message = LlmMessage {
        message: Message::user("hi", at(5)),
        turn_id: Some("turn_1".into()),
        metadata: Some(metadata),
        speaker: None,
        mark: Some(Box::new(ToolMark::new("activate_skill", json!({"skill": "notes"})))),
    };
    round_trip(
        &message,
        &expect![[
            r#"{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5,"turn_id":"turn_1","metadata":{"message_id":"msg_1","timestamp":"2023-11-14T22:13:20.123Z","conversation_id":"","user_id":""},"mark":{"tool":"activate_skill","seen":{"skill":"notes"}}}"#
        ]],
    );
}

// spec: T-05
#[test]
fn a_transcript_tells_messages_and_extensions_apart() {
    let extension =
        AgentMessage::from(ExtensionMessage::new("ui_update", json!({"role": "user", "content": []})));
    round_trip(
        &extension,
        &expect![[r#"{"role":"extension","kind":"ui_update","data":{"role":"user","content":[]}}"#]],
    );
    assert_eq!(extension.as_llm(), None);

    let user = Message::User(UserMessage::new(vec!["extension".into()], at(1)));
    for message in [user, Message::Assistant(answer(vec!["hi".into()]))] {
        let entry = AgentMessage::from(message.clone());
        let read: AgentMessage = serde_json::from_value(serde_json::to_value(&entry).unwrap()).unwrap();
        assert_eq!(read.as_llm(), Some(&message));
    }

    // A message that has an extension's fields as well stays a message.
    let both = json!({"role": "user", "content": [], "timestamp": 1, "kind": "k", "data": 1});
    assert!(serde_json::from_value::<AgentMessage>(both).unwrap().as_llm().is_some());
    for neither in [json!({"role": "robot"}), json!({"kind": "k", "data": 1}), json!({})] {
        assert!(serde_json::from_value::<AgentMessage>(neither.clone()).is_err(), "{neither}");
    }
}

// spec: T-06, T-34
#[test]
fn stop_reasons() {
    use StopReason::{Aborted, Error, Length, Pause, Refusal, Stop, StopSequence, ToolUse};
    names(
        &[Stop, StopSequence, Length, ToolUse, Pause, Refusal, Error, Aborted],
        "stop stopSequence length toolUse pause refusal error aborted",
    );
}

// spec: T-07
#[test]
fn usage_and_cache_hit_rate() {
    round_trip(
        &usage(),
        &expect![[r#"{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45}"#]],
    );
    assert_eq!(
        serde_json::from_str::<Usage>(r#"{"input":3}"#).unwrap(),
        Usage { input: 3, ..Usage::default() }
    );
    let rate = |input, cache_read, cache_write| {
        Usage { input, cache_read, cache_write, output: 9, total_tokens: 0 }.cache_hit_rate()
    };
    assert_eq!(rate(0, 0, 0), 0.0);
    assert_eq!(rate(10, 0, 0), 0.0);
    assert_eq!(rate(10, 30, 0), 0.75);
    assert_eq!(rate(5, 10, 5), 0.5);
    assert_eq!(rate(0, 7, 0), 1.0);
    assert!(rate(u64::MAX, u64::MAX, u64::MAX) <= 1.0);
}

// spec: T-07
#[test]
fn usage_adds_up_where_no_total_was_reported() {
    let unreported = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, total_tokens: 0 };
    assert_eq!(unreported.total(), 10);
    assert_eq!(Usage { total_tokens: 12, ..unreported }.total(), 12);

    let mut sum = Usage::default();
    sum += unreported;
    sum += usage();
    let expected = Usage { input: 11, output: 7, cache_read: 33, cache_write: 4, total_tokens: 55 };
    assert_eq!(sum, expected);

    sum += Usage { input: u64::MAX, output: u64::MAX, ..unreported };
    assert_eq!((sum.input, sum.total()), (u64::MAX, u64::MAX));
}
