//! Tests of responses as the service's documentation describes them, and of the requests that are sent.

use std::sync::Arc;

use archon_testkit::VirtualClock;
use archon_types::{
    ApiErrorKind, AssistantMessage, Content, Encoded, Message, ModelEvent, ProviderError, RequestOptions,
    ResponseFormat, StopReason, ThinkingLevel, Timestamp, ToolCall, ToolChoice, ToolResult, ToolSpec,
    UserMessage,
};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, cut_anywhere, line, once, replay, sent};

/// A key that must never appear in any output.
const KEY: &str = "sk-canary-1234";

fn options() -> ResponsesOptions {
    ResponsesOptions::default().with_api_key(KEY).with_clock(Arc::new(VirtualClock::new()))
}

fn provider() -> OpenAiResponses {
    OpenAiResponses::new(BASE_URL, options()).unwrap()
}

fn tools() -> Vec<ToolSpec> {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    vec![
        ToolSpec::new("files.read", "Reads \"a file\".", schema.clone()),
        ToolSpec::new("add", "Adds.", schema),
    ]
}

fn ask() -> Request {
    let mut request = Request::new("gpt-5-mini", vec![Message::user("hi", Timestamp::default())]);
    request.tools = Arc::new(Encoded::new(tools()));
    request
}

/// Returns events as the service writes them: the type is the event's name, and is in its data too.
fn events(data: &[&str]) -> String {
    let kind = |data: &str| {
        let event: archon_types::Json = serde_json::from_str(data).unwrap();
        event["type"].as_str().unwrap().to_owned()
    };
    data.iter().map(|data| format!("event: {}\ndata: {data}\n\n", kind(data))).collect()
}

/// Returns the same events without names, as some servers write them.
fn nameless(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

fn check(data: &[&str], expected: Expect) {
    let heard = replay(&provider(), &ask(), &Fixture::sse(events(data)));
    expected.assert_eq(&heard.line());
    let again = once(&provider(), &ask(), &Fixture::sse(nameless(data).replace('\n', "\r\n")));
    assert_eq!(again, heard, "without names, with CRLF");
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","background":false,"error":null,"incomplete_details":null,"instructions":"Be \"brief\".","model":"gpt-5-mini-2025-08-07","output":[],"parallel_tool_calls":true,"tools":[],"usage":null}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"gpt-5-mini-2025-08-07","output":[],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":6},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":140}}}"#;

const TEXT: &[&str] = &[
    CREATED,
    r#"{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","model":"gpt-5-mini-2025-08-07","status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}}"#,
    r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Grüße","logprobs":[],"obfuscation":"x8"}"#,
    r#"{"type":"keepalive","sequence_number":5}"#,
    r#"{"type":"response.some_new.delta","output_index":0,"delta":{"an":"object"}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":", \"Welt\" 🌍\n"}"#,
    r#"{"type":"response.output_text.annotation.added","item_id":"msg_1","output_index":0,"content_index":0,"annotation":{"type":"url_citation"}}"#,
    r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Grüße, \"Welt\" 🌍\n"}"#,
    r#"{"type":"response.content_part.done","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"text":"Grüße, \"Welt\" 🌍\n"}}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"Grüße, \"Welt\" 🌍\n"}],"role":"assistant"}}"#,
    COMPLETED,
];

// spec: A-58, P-20, P-24
#[test]
fn stream_with_unknown_events_gives_the_text() {
    let expected = expect![[r#"
        stop gpt-5-mini-2025-08-07 in 30 out 40 read 64 written 6 total 140
          text "Grüße, \"Welt\" 🌍\n""#]];
    check(TEXT, expected);
}

// spec: P-19, P-20
#[test]
fn responses_phase_of_a_text_is_stored_and_sent_back() {
    let events = [
        CREATED,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","phase":"commentary","content":[],"role":"assistant"}}"#,
        r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Looking."}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","phase":"commentary","content":[{"type":"output_text","annotations":[],"text":"Looking."}],"role":"assistant"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_2","type":"message","status":"in_progress","phase":"final_answer","content":[],"role":"assistant"}}"#,
        r#"{"type":"response.content_part.added","item_id":"msg_2","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_2","output_index":1,"content_index":0,"delta":"Done."}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_2","type":"message","status":"completed","phase":"final_answer","content":[{"type":"output_text","annotations":[],"text":"Done."}],"role":"assistant"}}"#,
        COMPLETED,
    ];
    check(
        &events,
        expect![[r#"
        stop gpt-5-mini-2025-08-07 in 30 out 40 read 64 written 6 total 140
          text "Looking."
          thinking "" signed "phase:commentary"
          text "Done."
          thinking "" signed "phase:final_answer""#]],
    );
    let answer = once(&provider(), &ask(), &Fixture::sse(nameless(&events))).end.unwrap();
    let user = |text: &str| Message::user(text, Timestamp::default());
    let request = Request::new("gpt-5-mini", vec![user("go"), Message::Assistant(answer), user("on")]);
    let body = body(ResponsesCompat::default(), &request);
    assert!(
        body.contains(concat!(
            r#"{"role":"assistant","content":"Looking.","phase":"commentary"},"#,
            r#"{"role":"assistant","content":"Done.","phase":"final_answer"},{"role":"user""#
        )),
        "{body}"
    );
}

/// Two calls with interleaved pieces, after reasoning with a summary of two parts.
const CALLS: &[&str] = &[
    CREATED,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"not yet"}}"#,
    r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Look"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"ing**"}"#,
    r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"**Looking**"}"#,
    r#"{"type":"response.reasoning_summary_part.done","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"**Looking**"}}"#,
    r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Adding"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**Looking**"},{"type":"summary_text","text":"Adding"}],"encrypted_content":"gAAA+/=","status":"completed"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"files__read"}}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"path\":"}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_2","name":"add"}}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":2,"delta":"{\"b\":2,"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"\"ä\"}"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":2,"delta":"\"a\":1}"}"#,
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_2","output_index":2,"arguments":"{\"b\":2,\"a\":1}"}"#,
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":"{\"path\":\"ä\"}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_2","type":"function_call","status":"completed","arguments":"{\"b\":2,\"a\":1}","call_id":"call_2","name":"add"}}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"ä\"}","call_id":"call_1","name":"files__read"}}"#,
    COMPLETED,
];

// spec: A-58, P-13, P-17, P-20
#[test]
fn reasoning_and_interleaved_calls() {
    let expected = expect![[r#"
        tools gpt-5-mini-2025-08-07 in 30 out 40 read 64 written 6 total 140
          thinking "**Looking**\n\nAdding" signed "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"**Looking**\"},{\"type\":\"summary_text\",\"text\":\"Adding\"}],\"encrypted_content\":\"gAAA+/=\"}"
          call call_1 files.read {"path":"ä"}
          call call_2 add {"b":2,"a":1}"#]];
    check(CALLS, expected);
}

// spec: P-20
#[test]
fn responses_alternative_event_shapes_are_decoded() {
    // Reasoning without a summary, and a refusal.
    check(
        &[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"e"}}"#,
            r#"{"type":"response.refusal.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"I can"}"#,
            r#"{"type":"response.refusal.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"not."}"#,
            r#"{"type":"response.refusal.done","item_id":"msg_1","output_index":1,"content_index":0,"refusal":"I cannot."}"#,
            COMPLETED,
        ],
        expect![[r#"
            refusal gpt-5-mini-2025-08-07 in 30 out 40 read 64 written 6 total 140
              thinking "" signed "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"e\"}"
              text "I cannot.""#]],
    );
    // Two reasoning items, of which only the second has data to send back, and then two messages.
    check(
        &[
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"one"}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"e"}}"#,
            r#"{"type":"response.output_text.delta","output_index":2,"delta":"two"}"#,
            r#"{"type":"response.output_text.delta","output_index":3,"delta":"three"}"#,
            COMPLETED,
        ],
        expect![[r#"
            stop gpt-5-mini-2025-08-07 in 30 out 40 read 64 written 6 total 140
              thinking "one"
              thinking "" signed "{\"id\":\"rs_2\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"e\"}"
              text "two"
              text "three""#]],
    );
    // Reasoning as text, a call that begins with an event of its own, arguments that come whole, and items
    // that come whole.
    check(
        &[
            r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"hm"}"#,
            r#"{"type":"response.function_call_arguments.start","output_index":1,"call_id":"c1","name":"add"}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{"}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{}"}"#,
            r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c2","name":"add","arguments":"{\"a\":1}"}}"#,
            r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"whole "},{"type":"refusal","refusal":"no"}]}}"#,
            r#"{"type":"response.output_item.done","output_index":4,"item":{"type":"web_search_call","name":7}}"#,
            r#"{"type":"response.completed","response":{"model":"m","status":null,"usage":null}}"#,
        ],
        expect![[r#"
            tools m in 0 out 0 read 0 written 0 total 0
              thinking "hm"
              call c1 add {}
              call c2 add {"a":1}
              text "whole no""#]],
    );
}

// spec: P-20, T-06
#[test]
fn responses_incomplete_answer_has_its_reason() {
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Half an"}"#;
    let end = |status: &str, details: &str| {
        format!(
            r#"{{"type":"response.{status}","response":{{"status":"{status}","model":"m","error":null,"incomplete_details":{details}}}}}"#
        )
    };
    let table = [
        (end("incomplete", r#"{"reason":"max_output_tokens"}"#), StopReason::Length, None),
        (
            end("incomplete", r#"{"reason":"content_filter"}"#),
            StopReason::Refusal,
            Some("the service's content filter stopped the answer"),
        ),
        (
            end("incomplete", r#"{"reason":"steered"}"#),
            StopReason::Error,
            Some("the service stopped the answer: steered"),
        ),
        (
            end("incomplete", "null"),
            StopReason::Error,
            Some("the service stopped the answer without a reason"),
        ),
        (end("completed", "null"), StopReason::Stop, None),
    ];
    for (end, reason, why) in table {
        let heard = replay(&provider(), &ask(), &Fixture::sse(events(&[text, &end])));
        let message = heard.end.unwrap();
        assert_eq!((message.stop_reason, message.error_message.as_deref()), (reason, why), "{end}");
        assert_eq!(message.text(), "Half an");
    }
}

// spec: P-31, P-33
#[test]
fn errors_in_the_stream_are_classified() {
    let failed = |code: &str, message: &str| {
        format!(
            r#"{{"type":"response.failed","response":{{"status":"failed","error":{{"code":"{code}","message":"{message}"}}}}}}"#
        )
    };
    let table = [
        (failed("server_error", "oops"), "overloaded", true),
        (failed("rate_limit_exceeded", "slow down"), "rate_limited", true),
        (failed("invalid_prompt", "no"), "api", false),
        (failed("image_content_policy_violation", "no"), "api", false),
        (failed("context_length_exceeded", "too long"), "context_overflow", false),
        (failed("invalid_request_error", "Your input exceeds the context window of this model"), "context_overflow", false),
        (r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#.to_owned(), "overloaded", true),
        (r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}"#.to_owned(), "rate_limited", true),
        (r#"{"type":"error","error":{"type":"invalid_request_error","code":null,"message":"bad"}}"#.to_owned(), "api", false),
        (r#"{"type":"error","message":"The server had an error","code":"server_error"}"#.to_owned(), "overloaded", true),
        (r#"{"type":"response.output_text.delta","delta":7}"#.to_owned(), "protocol", false),
    ];
    for (event, code, retryable) in table {
        let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#;
        let heard = replay(&provider(), &ask(), &Fixture::sse(events(&[text, &event, COMPLETED])));
        let error = heard.end.unwrap_err();
        assert_eq!((error.code().as_str(), error.is_retryable()), (code, retryable), "{event}: {error}");
        assert_eq!(heard.text, "a");
    }
    let filtered = failed("image_content_policy_violation", "no");
    let error = once(&provider(), &ask(), &Fixture::sse(events(&[&filtered]))).end.unwrap_err();
    assert_eq!(error.refusal(), Some(ApiErrorKind::ContentFiltered));
    let invalid = failed("invalid_prompt", "no");
    let error = once(&provider(), &ask(), &Fixture::sse(events(&[&invalid]))).end.unwrap_err();
    assert_eq!(error.refusal(), Some(ApiErrorKind::InvalidRequest));
}

// spec: P-31, P-33
#[test]
fn errors_before_the_stream_are_classified_by_status_body_and_header() {
    let error = |message: &str, kind: &str, code: &str| {
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
    };
    let table = [
        (401, error("Incorrect API key provided", "invalid_request_error", "invalid_api_key"), "auth"),
        (403, error("Country not supported", "request_forbidden", "unsupported_country"), "auth"),
        (429, error("Rate limit reached", "requests", "rate_limit_exceeded"), "rate_limited"),
        (429, error("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "api"),
        (
            400,
            error(
                "Your input exceeds the context window of this model.",
                "invalid_request_error",
                "context_length_exceeded",
            ),
            "context_overflow",
        ),
        (
            400,
            error("Unsupported value: 'reasoning.effort'", "invalid_request_error", "unsupported_value"),
            "api",
        ),
        (404, error("The model `x` does not exist", "invalid_request_error", "model_not_found"), "api"),
        (500, error("The server had an error", "server_error", ""), "overloaded"),
        (503, "<html>busy</html>".to_owned(), "overloaded"),
        (200, error("The server had an error", "server_error", ""), "overloaded"),
        (200, "<html>log in</html>".to_owned(), "protocol"),
    ];
    for (status, body, code) in table {
        let fixture = Fixture::json(status, body.clone()).header("retry-after", "7");
        let error = once(&provider(), &ask(), &fixture).end.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{status} {body}: {error}");
        if status == 429 && code == "rate_limited" {
            assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
        }
    }
}

// spec: P-24, P-31
#[test]
fn an_answer_cut_anywhere_is_complete_or_a_network_error() {
    let body = events(&[TEXT[0], TEXT[4], COMPLETED]);
    let decided = body.trim_end().len();
    for (at, heard) in cut_anywhere(&provider(), &ask(), &Fixture::sse(body)) {
        match heard.end {
            Ok(message) => assert!(at >= decided && message.text() == "Grüße", "cut at {at}"),
            Err(ProviderError::Network(_)) => assert!(at < decided, "cut at {at}"),
            Err(ProviderError::Protocol(said)) if at == 0 => assert!(said.text.contains("an empty body")),
            Err(e) => panic!("cut at {at}: {e:?}"),
        }
    }
}

// spec: P-20
#[test]
fn an_answer_that_was_not_streamed_is_understood() {
    let whole = json!({
        "id": "resp_1", "object": "response", "status": "completed", "error": null, "model": "m-2",
        "incomplete_details": null,
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well."}]},
            {"type": "function_call", "call_id": "a", "name": "files__read", "arguments": "{\"a\":1}"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    });
    let expected = expect![[r#"
        tools m-2 in 3 out 2 read 0 written 0 total 5
          thinking "hm"
          text "Well."
          call a files.read {"a":1}"#]];
    let heard = replay(&provider(), &ask(), &Fixture::json(200, whole.to_string()));
    expected.assert_eq(&heard.line());
    // The same when only the last event of a stream has the content.
    let last = json!({"type": "response.completed", "response": whole}).to_string();
    let heard = replay(&provider(), &ask(), &Fixture::sse(events(&[&last])));
    expected.assert_eq(&heard.line());
}

fn body(compat: ResponsesCompat, request: &Request) -> String {
    let provider = OpenAiResponses::new(BASE_URL, options().with_compat(compat)).unwrap();
    let sent = sent(&provider, request);
    serde_json::from_str::<archon_types::Json>(&sent.body).unwrap();
    sent.body
}

// spec: P-19
#[test]
fn a_small_request() {
    let request = Request::new("gpt-4o", vec![Message::user("hi", Timestamp::default())]);
    let sent = sent(&provider(), &request);
    expect![[r#"{"model":"gpt-4o","stream":true,"store":false,"input":[{"role":"user","content":"hi"}]}"#]]
        .assert_eq(&sent.body);
    assert_eq!((sent.method.as_str(), &sent.url), ("POST", &format!("{BASE_URL}/responses")));
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("content-type"), Some("application/json"));
}

fn conversation() -> Request {
    let at = Timestamp::default();
    let good = ToolCall::new("c1", "files.read", json!({"z": 1, "a": "ä\n"}));
    let cut = ToolCall::from_json_text("an id/of another service", "add", "{\"a\": 1");
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}"#;
    let signed =
        |signature: &str| Content::Thinking { thinking: "hm".into(), signature: Some(signature.to_owned()) };
    let unsigned = Content::Thinking { thinking: "hm".into(), signature: None };
    let calls = [good.clone(), cut.clone()].map(Content::from);
    let mut content = vec![signed(item), signed("another service's"), unsigned, Content::text("I look.")];
    content.extend(calls);
    let provider = "openai-responses".to_owned();
    let assistant = AssistantMessage { content, provider: provider.clone(), ..AssistantMessage::default() };
    let stopped = AssistantMessage {
        provider,
        content: vec![Content::text("Yes."), signed(item), Content::text("")],
        ..AssistantMessage::default()
    };
    let image = Content::Image { data: "AAAA".into(), mime_type: "image/png".into() };
    let mut shown = ToolResult::success("see");
    shown.content.push(image.clone());
    let user = UserMessage::new(vec![Content::text("look"), image], at);
    let mut request = Request::new(
        "gpt-5",
        vec![
            Message::User(user),
            Message::Assistant(assistant),
            Message::tool_result(&good, &shown, at),
            Message::tool_result(&cut, &ToolResult::error("not JSON"), at),
            Message::Assistant(stopped),
            Message::user("two\nlines", at),
        ],
    );
    request.system = Some(Arc::new(Encoded::new("Be \"brief\".".to_owned())));
    request.tools = Arc::new(Encoded::new(tools()));
    request
}

// spec: P-13, P-19, T-03
#[test]
fn a_whole_conversation() {
    let expected = expect![[
        r#"{"model":"gpt-5","stream":true,"store":false,"include":["reasoning.encrypted_content"],"instructions":"Be \"brief\".","tools":[{"type":"function","name":"files__read","description":"Reads \"a file\".","parameters":{"type":"object","properties":{"z":{},"a":{}}},"strict":false},{"type":"function","name":"add","description":"Adds.","parameters":{"type":"object","properties":{"z":{},"a":{}}},"strict":false}],"input":[{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AAAA"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},{"role":"assistant","content":"I look."},{"type":"function_call","call_id":"c1","name":"files__read","arguments":"{\"z\":1,\"a\":\"ä\\n\"}"},{"type":"function_call","call_id":"an_id_of_another_service_934cae79f80c1725","name":"add","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"see"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AAAA"}]},{"type":"function_call_output","call_id":"an_id_of_another_service_934cae79f80c1725","output":"Error: not JSON"},{"role":"assistant","content":"Yes."},{"role":"user","content":"two\nlines"}]}"#
    ]];
    expected.assert_eq(&body(ResponsesCompat::default(), &conversation()));
}

// spec: P-13, P-19
#[test]
fn reasoning_is_sent_back_only_to_its_own_provider() {
    let request = conversation();
    let has_reasoning = |id: &str, model: &str| {
        let mut request = request.clone();
        request.model = model.to_owned();
        let provider = OpenAiResponses::new(BASE_URL, options().with_id(id)).unwrap();
        let body = sent(&provider, &request).body;
        assert!(body.contains("I look."), "{body}");
        body.contains("\"encrypted_content\":\"e\"")
    };
    // The encoded text is cached with the conversation, which all requests share.
    for _ in 0..2 {
        assert!(has_reasoning("openai-responses", "gpt-5"));
        assert!(!has_reasoning("another-organisation", "gpt-5"));
        assert!(!has_reasoning("openai-responses", "gpt-4.1"), "a model that does not reason");
    }
}

// spec: P-19, T-32
#[test]
fn every_option() {
    let mut request = ask();
    let mut options = RequestOptions::default();
    options.max_tokens = Some(100);
    options.temperature = Some(0.5);
    options.seed = Some(1);
    options.stop = vec!["END".into()];
    options.thinking = ThinkingLevel::Minimal;
    options.tool_choice = ToolChoice::Tool("files.read".into());
    options.response_format =
        Some(ResponseFormat { name: "an answer".into(), schema: json!({"type": "object"}) });
    request.options = Arc::new(options.clone());
    let compat = ResponsesCompat { prompt_cache_key: Some("agent-7".into()), ..ResponsesCompat::default() };
    expect![[r#"{"model":"gpt-5-mini","stream":true,"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":100,"prompt_cache_key":"agent-7","tool_choice":{"type":"function","name":"files__read"},"text":{"format":{"type":"json_schema","name":"an_answer","strict":false,"schema":{"type":"object"}}},"tools":[{"type":"function","name":"files__read","description":"Reads \"a file\".","parameters":{"type":"object","properties":{"z":{},"a":{}}},"strict":false},{"type":"function","name":"add","description":"Adds.","parameters":{"type":"object","properties":{"z":{},"a":{}}},"strict":false}],"input":[{"role":"user","content":"hi"}]}"#]].assert_eq(&body(compat, &request));

    // The service refuses `strict` for a schema that is not closed.
    let closed = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    options.response_format = Some(ResponseFormat { name: "an answer".into(), schema: closed });
    request.options = Arc::new(options.clone());
    assert!(body(ResponsesCompat::default(), &request).contains(r#""name":"an_answer","strict":true"#));

    // A model that does not reason is not asked to.
    request.model = "gpt-4.1".into();
    options.max_tokens = Some(1);
    options.tool_choice = ToolChoice::Required;
    options.response_format = None;
    request.options = Arc::new(options.clone());
    request.tools = Arc::new(Encoded::new(tools()[1..].to_vec()));
    expect![[r#"{"model":"gpt-4.1","stream":true,"store":false,"max_output_tokens":16,"temperature":0.5,"tool_choice":"required","tools":[{"type":"function","name":"add","description":"Adds.","parameters":{"type":"object","properties":{"z":{},"a":{}}},"strict":false}],"input":[{"role":"user","content":"hi"}]}"#]].assert_eq(&body(ResponsesCompat::default(), &request));

    let with = |options: &RequestOptions| {
        let mut request = Request::new("m", vec![]);
        request.options = Arc::new(options.clone());
        request
    };
    let compat = |reasoning_models, reasoning_summary| ResponsesCompat {
        reasoning_models,
        reasoning_summary,
        ..ResponsesCompat::default()
    };
    options.thinking = ThinkingLevel::High;
    let told = body(compat(ReasoningModels::All, ReasoningSummary::Detailed), &with(&options));
    assert!(told.contains(r#""reasoning":{"effort":"high","summary":"detailed"}"#), "{told}");
    let told = body(compat(ReasoningModels::All, ReasoningSummary::Off), &with(&options));
    assert!(told.contains(r#""reasoning":{"effort":"high"}"#), "{told}");
    let told = body(compat(ReasoningModels::None, ReasoningSummary::Off), &with(&options));
    assert!(!told.contains("reasoning") && told.contains("temperature"), "{told}");
    assert!(!told.contains("tool_choice"), "{told}");
}

// spec: P-05
#[test]
fn the_key_is_sent_and_never_shown() {
    let secret = "canary-header-value";
    let options = options().with_header("x-team", secret);
    let provider = OpenAiResponses::new(BASE_URL, options.clone()).unwrap();
    let echo =
        json!({"error": {"message": format!("{KEY} and {secret} are wrong"), "type": "t"}}).to_string();
    let mut shown = format!("{provider:?} {options:?}");
    let failed =
        format!(r#"{{"type":"response.failed","response":{{"error":{{"code":"x","message":"{KEY}"}}}}}}"#);
    let error = format!(r#"{{"type":"error","message":"{KEY}"}}"#);
    let mut fixtures: Vec<_> = [401, 400, 429, 500, 200].map(|s| Fixture::json(s, echo.clone())).into();
    fixtures.push(Fixture::json(302, "{}").header("location", &format!("http://h/?key={KEY}")));
    fixtures.push(Fixture::sse(events(&[&failed])));
    fixtures.push(Fixture::sse(events(&[&error])));
    fixtures.push(Fixture::sse(format!("data: garbage {KEY}\n\n")));
    for fixture in fixtures {
        let error = once(&provider, &ask(), &fixture).end.unwrap_err();
        shown += &format!("{error} {error:?}\n");
    }
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("**** and **** are wrong"), "{shown}");
    assert_eq!(sent(&provider, &ask()).header("x-team"), Some(secret));
}

// spec: P-41
#[tokio::test]
async fn stream_cancelled_keeps_the_partial_text_and_drops_calls() {
    use archon_testkit::{MockResponse, MockServer};
    use std::future::poll_fn;

    let pieces = &CALLS[..12];
    let server = MockServer::start([MockResponse::sse(events(pieces)).hang()]).await;
    let provider = OpenAiResponses::new(&server.url(), options()).unwrap();
    let cancel = CancellationToken::new();
    let mut stream = provider.stream(ask(), cancel.clone());
    let mut last = None;
    while let Some(event) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        match event.unwrap() {
            ModelEvent::ToolCallDelta { .. } => cancel.cancel(),
            ModelEvent::Done(message) => last = Some(message),
            _ => {}
        }
    }
    let message = last.unwrap();
    assert_eq!(message.stop_reason, StopReason::Aborted);
    assert_eq!(message.content.len(), 1, "{}", line(&message));
    assert!(
        matches!(&message.content[0], Content::Thinking { thinking, .. } if thinking.ends_with("Adding"))
    );
    server.until_gone(1).await;
}
