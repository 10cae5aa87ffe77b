//! Tests of streams as the service sends them, whole and cut at every byte, and of their results.

use std::sync::Arc;

use archon_testkit::VirtualClock;
use archon_types::{Encoded, Json, ProviderError, Request, StopReason, ToolSpec};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, Heard, cut_anywhere, once, replay, replay_in_pieces};

fn provider() -> Gemini {
    Gemini::new(BASE_URL, GeminiOptions::default().with_clock(Arc::new(VirtualClock::new()))).unwrap()
}

fn ask() -> Request {
    let mut request = Request::new("gemini-2.5-flash", vec![]);
    let tools = ["files.read", "add"].map(|name| ToolSpec::new(name, "A tool.", json!({"type": "object"})));
    request.tools = Arc::new(Encoded::new(tools.to_vec()));
    request
}

/// Returns a stream of chunks, with the line ends that the service sends.
fn stream(chunks: &[Json]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

fn parts(parts: Json) -> Json {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 12, "totalTokenCount": 12}, "modelVersion": "gemini-2.5-flash-001",
        "responseId": "rXyz"})
}

fn last(parts: Json, reason: &str) -> Json {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 12, "cachedContentTokenCount": 4, "candidatesTokenCount": 7,
            "thoughtsTokenCount": 20, "toolUsePromptTokenCount": 1, "totalTokenCount": 40,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}]},
        "modelVersion": "gemini-2.5-flash-001", "responseId": "rXyz"})
}

fn check(body: impl Into<Vec<u8>>, expected: Expect) -> Heard {
    let body = body.into();
    let heard = replay(&provider(), &ask(), &Fixture::sse(body.clone()));
    expected.assert_eq(&heard.line());
    let text = String::from_utf8(body).unwrap().replace("\r\n", "\n");
    assert_eq!(replay_in_pieces(&provider(), &ask(), &Fixture::sse(text)), heard, "with LF");
    heard
}

// spec: P-22, P-24, A-58
#[test]
fn stream_text_with_comments_and_unknown_fields_is_decoded() {
    let body = [
        ": connected\r\n\r\n".to_owned(),
        stream(&[parts(json!([{"text": "Grüße, \"Welt\""}]))]),
        ": still here\r\n\r\nevent: ping\r\ndata: {}\r\n\r\n".to_owned(),
        stream(&[
            json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "another answer"}]}}], "news": [1]}),
            parts(json!([{"text": ""}, {"executableCode": {"code": "1"}}, {"text": " 🌍\n"}])),
            json!({"usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 1}}),
            last(json!([{"text": "!"}]), "STOP"),
        ]),
    ];
    check(
        body.concat(),
        expect![[r#"
        stop gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          text "Grüße, \"Welt\" 🌍\n!""#]],
    );
}

// spec: P-22, P-23, A-58
#[test]
fn calls_with_and_without_ids_and_their_signatures() {
    let call = |name: &str, args: Json| json!({"functionCall": {"name": name, "args": args}});
    let chunks = [
        parts(json!([{"text": "Let me see.", "thought": true}])),
        parts(json!([{"text": "I look."}])),
        parts(json!([{"functionCall": {"name": "files__read", "args": {"path": "sö/é", "z": 1, "a": 2}},
            "thoughtSignature": "CiQBsig=="}])),
        parts(json!([call("add", json!({"a": 1})), {"functionCall": {"name": "add"}}])),
        parts(json!([{"functionCall": {"id": "fc-7", "name": "add", "args": {}}}])),
        // The signature of an answer, in a part without text.
        last(json!([{"text": "", "thoughtSignature": "CiQBend=="}]), "STOP"),
    ];
    check(
        stream(&chunks),
        expect![[r#"
        tools gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          thinking "Let me see."
          text "I look."
          thinking "" signed "gemini:CiQBsig=="
          call google-fc-rXyz-0 files.read {"path":"sö/é","z":1,"a":2}
          call google-fc-rXyz-1 add {"a":1}
          call google-fc-rXyz-2 add {}
          call fc-7 add {}
          thinking "" signed "gemini-text:CiQBend==""#]],
    );
}

// spec: P-22, A-58
#[test]
fn thoughts_are_thinking_and_a_call_right_behind_them_signs_them() {
    let chunks = [
        parts(json!([{"text": "**Plan**\n", "thought": true}])),
        parts(json!([{"text": "Ä step.", "thought": true}])),
        last(json!([{"functionCall": {"name": "add", "args": {}}, "thoughtSignature": "CiQB"}]), "STOP"),
    ];
    check(
        stream(&chunks),
        expect![[r#"
        tools gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          thinking "**Plan**\nÄ step." signed "gemini:CiQB"
          call google-fc-rXyz-0 add {}"#]],
    );
}

// spec: P-23
#[test]
fn made_up_ids_differ_from_answer_to_answer() {
    let id = |response_id: &str| {
        let mut chunk = last(json!([{"functionCall": {"name": "add", "args": {}}}]), "STOP");
        chunk["responseId"] = response_id.into();
        let heard = once(&provider(), &ask(), &Fixture::sse(stream(&[chunk])));
        heard.end.unwrap().tool_calls().next().unwrap().id.to_string()
    };
    assert_eq!(id("r1"), "google-fc-r1-0");
    assert_ne!(id("r1"), id("r2"));
    assert_eq!(id(""), "google-fc-1767225600000-0");
}

// spec: P-22
#[test]
fn reasons_to_stop() {
    let mut table = String::new();
    for reason in [
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "PROHIBITED_CONTENT",
        "MALFORMED_FUNCTION_CALL",
        "MISSING_THOUGHT_SIGNATURE",
        "NEW_REASON",
    ] {
        let mut chunk = last(json!([{"text": "So"}]), reason);
        if reason == "MALFORMED_FUNCTION_CALL" {
            chunk["candidates"][0]["finishMessage"] = "call print(add)".into();
        }
        let heard = once(&provider(), &ask(), &Fixture::sse(stream(&[chunk])));
        table += &format!("{reason}: {}\n", heard.line());
    }
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 4}});
    table += &once(&provider(), &ask(), &Fixture::sse(stream(&[blocked]))).line();
    expect![[r#"
        STOP: stop gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          text "So"
        MAX_TOKENS: length gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          text "So"
        SAFETY: refusal gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          text "So"
          because: the service stopped the answer (SAFETY)
        RECITATION: refusal gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          text "So"
          because: the service stopped the answer (RECITATION)
        PROHIBITED_CONTENT: refusal gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          text "So"
          because: the service stopped the answer (PROHIBITED_CONTENT)
        MALFORMED_FUNCTION_CALL: overloaded: the service is overloaded or failed (status 200): the service stopped the answer (MALFORMED_FUNCTION_CALL): call print(add)
        MISSING_THOUGHT_SIGNATURE: api: the service refused the request (InvalidRequest, status 200): the service stopped the answer (MISSING_THOUGHT_SIGNATURE)
        NEW_REASON: stop gemini-2.5-flash-001 in 9 out 27 read 4 written 0 total 40
          text "So"
        api: the service refused the request (ContentFiltered, status 200): the prompt was blocked (SAFETY)"#]].assert_eq(&table);
}

// spec: P-31, P-33
#[test]
fn errors_in_the_middle_of_a_stream() {
    let mut table = String::new();
    for (code, status, message) in [
        (503, "UNAVAILABLE", "The model is overloaded."),
        (500, "INTERNAL", "An internal error has occurred."),
        (429, "RESOURCE_EXHAUSTED", "Slow down"),
        (504, "DEADLINE_EXCEEDED", "Too slow"),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        ),
    ] {
        let error = json!({"error": {"code": code, "message": message, "status": status}});
        let body = stream(&[parts(json!([{"text": "Half"}])), error, last(json!([]), "STOP")]);
        let heard = once(&provider(), &ask(), &Fixture::sse(body));
        assert_eq!(heard.text, "Half");
        table += &format!("{}\n", heard.line());
    }
    expect![[r#"
        overloaded: the service is overloaded or failed (status 503): The model is overloaded.
        overloaded: the service is overloaded or failed (status 500): An internal error has occurred.
        rate_limited: rate limited by the service: Slow down
        overloaded: the service is overloaded or failed (status 504): Too slow
        context_overflow: the conversation does not fit into the model's context window: The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).
    "#]].assert_eq(&table);
}

// spec: P-24, P-31
#[test]
fn an_answer_cut_anywhere_is_complete_or_a_network_error() {
    let body = stream(&[parts(json!([{"text": "Grü"}])), last(json!([{"text": "ße"}]), "STOP")]);
    let decided = body.trim_end().len();
    for (at, heard) in cut_anywhere(&provider(), &ask(), &Fixture::sse(body.clone())) {
        match heard.end {
            Ok(message) => assert!(at >= decided && message.text() == "Grüße", "cut at {at} of {decided}"),
            Err(ProviderError::Network(_)) => assert!(at < decided, "cut at {at}"),
            Err(e) => panic!("cut at {at}: {e:?}"),
        }
    }
}

// spec: P-22
#[test]
fn stream_invalid_chunk_is_a_protocol_error_and_plain_json_is_decoded() {
    for body in ["data: nonsense\n\n", "data: {\"candidates\":7}\n\n", "data: {\"x\":\n\ndata: {}\n\n"] {
        let error = once(&provider(), &ask(), &Fixture::sse(body)).end.unwrap_err();
        assert_eq!(error.code().as_str(), "protocol", "{body}");
    }
    let whole = last(json!([{"text": "Here."}]), "STOP");
    let heard = replay(&provider(), &ask(), &Fixture::json(200, whole.to_string()));
    let message = heard.end.unwrap();
    assert_eq!((message.text().as_str(), message.stop_reason), ("Here.", StopReason::Stop));
}

// spec: EX-16
#[test]
fn picture_of_a_model_is_a_medium_and_other_data_a_text_about_it() {
    let drawn = |data: &str| {
        let image = json!({"inlineData": {"mimeType": "image/png", "data": data}});
        let chunk = last(json!([{"text": "Here."}, image, {"text": "It is red."}]), "STOP");
        replay(&provider(), &ask(), &Fixture::sse(stream(&[chunk]))).end.unwrap().content
    };
    let png = archon_types::Media::new(b"\x89PNG\r\n\x1a\n", None).unwrap();
    let text = |text: &str| archon_types::Content::text(text);
    assert_eq!(drawn("iVBORw0KGgo="), [text("Here."), png.into(), text("It is red.")]);
    let problem = "the data of the file does not match the stated type";
    let note = format!("[an image of the model, left out: {problem}]");
    assert_eq!(drawn("aGk="), [text("Here."), text(&note), text("It is red.")]);
}

// spec: P-22
#[test]
fn structured_output_tool_call_becomes_the_text_of_the_answer() {
    let mut request = ask();
    let mut options = archon_types::RequestOptions::default();
    let schema = json!({"type": "object"});
    options.response_format = Some(archon_types::ResponseFormat { name: "answer".into(), schema });
    request.options = Arc::new(options);
    let call = json!([{"functionCall": {"name": "answer", "args": {"n": 7}}, "thoughtSignature": "CiQB"}]);
    let heard = replay(&provider(), &request, &Fixture::sse(stream(&[last(call, "STOP")])));
    assert_eq!(heard.line().lines().last(), Some("  text \"{\\\"n\\\":7}\""));
    assert_eq!(heard.end.unwrap().stop_reason, StopReason::Stop);
    // Of several answers at once, the first counts.
    let answer = |n| json!({"functionCall": {"name": "answer", "args": {"n": n}}});
    let several = [parts(json!([answer(1), answer(2)])), last(json!([answer(3)]), "STOP")];
    let heard = replay(&provider(), &request, &Fixture::sse(stream(&several)));
    assert_eq!(heard.end.unwrap().text(), "{\"n\":1}");
}

/// Returns chunks of all kinds, sensible and not.
fn chunks() -> Vec<String> {
    let mut chunks: Vec<String> = [
        parts(json!([{"text": "a"}])),
        parts(json!([{"text": "t", "thought": true}])),
        parts(json!([{"thoughtSignature": "s"}])),
        parts(json!([{"functionCall": {"name": "add", "args": [1]}, "thoughtSignature": "s"}])),
        parts(json!([{"functionCall": {}}])),
        last(json!([]), "STOP"),
        last(json!([{"text": "b"}]), "SAFETY"),
        json!({"candidates": [{}]}),
        json!({}),
    ]
    .iter()
    .map(ToString::to_string)
    .collect();
    chunks.extend(["", "[", "null", "7", "{\"candidates\":["].map(str::to_owned));
    chunks
}

proptest! {
    // spec: P-22
    #[test]
    fn any_order_of_chunks_is_survived(
        chunks in prop::collection::vec(prop::sample::select(chunks()), 0..20),
    ) {
        let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        once(&provider(), &ask(), &Fixture::sse(body)).assert_deltas_add_up();
    }
}
