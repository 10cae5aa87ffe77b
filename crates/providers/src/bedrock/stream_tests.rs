//! Tests of answers as the service's documentation describes them, in messages that are built here and not
//! by the crate that parses them.

use std::sync::Arc;

use archon_testkit::VirtualClock;
use archon_types::{
    Encoded, Message, ModelEvent, RequestOptions, ResponseFormat, StopReason, Timestamp, ToolSpec,
};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, Heard, cut_anywhere, once, replay};

/// A key that must never appear in any output.
const KEY: &str = "canary-bearer-1234";

const CONTENT_TYPE: &str = "application/vnd.amazon.eventstream";

/// Computes CRC-32 (IEEE 802.3) bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// Returns a message with these header bytes.
pub(super) fn frame_of(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let length = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
    frame.extend(length(16 + headers.len() + payload.len()));
    frame.extend(length(headers.len()));
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

/// Returns a message with these headers, all of them strings.
pub(super) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        bytes.push(u8::try_from(name.len()).unwrap());
        bytes.extend(name.as_bytes());
        bytes.push(7);
        bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend(value.as_bytes());
    }
    frame_of(&bytes, payload.as_bytes())
}

fn event(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers, payload)
}

fn exception(kind: &str, payload: &str) -> Vec<u8> {
    let headers =
        [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    frame(&headers, payload)
}

fn stream(frames: impl IntoIterator<Item = Vec<u8>>) -> Fixture {
    Fixture::new(CONTENT_TYPE, frames.into_iter().flatten().collect::<Vec<u8>>())
}

fn options() -> BedrockOptions {
    BedrockOptions::default().with_api_key(KEY).with_clock(Arc::new(VirtualClock::new()))
}

fn provider() -> Bedrock {
    Bedrock::new(BASE_URL, options()).unwrap()
}

fn ask() -> Request {
    let mut request = Request::new("anthropic.claude-x", vec![Message::user("hi", Timestamp::default())]);
    let tools = ["files.read", "add"].map(|name| ToolSpec::new(name, "A tool.", json!({"type": "object"})));
    request.tools = Arc::new(Encoded::new(tools.to_vec()));
    request
}

fn check(frames: &[Vec<u8>], expected: Expect) -> Heard {
    let heard = replay(&provider(), &ask(), &stream(frames.to_vec()));
    expected.assert_eq(&heard.line());
    heard
}

fn start() -> Vec<u8> {
    event("messageStart", r#"{"p":"abcdefgh","role":"assistant"}"#)
}

fn text(index: u64, text: &str) -> Vec<u8> {
    event(
        "contentBlockDelta",
        &json!({"contentBlockIndex": index, "delta": {"text": text}, "p": "abc"}).to_string(),
    )
}

fn call(index: u64, id: &str, name: &str) -> Vec<u8> {
    let start = json!({"toolUse": {"toolUseId": id, "name": name}});
    event("contentBlockStart", &json!({"contentBlockIndex": index, "start": start}).to_string())
}

fn input(index: u64, input: &str) -> Vec<u8> {
    let delta = json!({"toolUse": {"input": input}});
    event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta}).to_string())
}

fn reasoning(index: u64, delta: &archon_types::Json) -> Vec<u8> {
    let delta = json!({"reasoningContent": delta});
    event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta}).to_string())
}

fn block_stop(index: u64) -> Vec<u8> {
    event("contentBlockStop", &json!({"contentBlockIndex": index}).to_string())
}

fn stop(reason: &str) -> Vec<u8> {
    event("messageStop", &json!({"stopReason": reason}).to_string())
}

fn metadata() -> Vec<u8> {
    event(
        "metadata",
        r#"{"metrics":{"latencyMs":410},"usage":{"inputTokens":30,"outputTokens":40,"totalTokens":140,"cacheReadInputTokens":64,"cacheWriteInputTokens":6,"serverToolUsage":{}}}"#,
    )
}

// spec: A-58, P-27
#[test]
fn stream_with_unknown_events_gives_the_text() {
    check(
        &[
            start(),
            text(0, "Grüße"),
            event("somethingNew", "no JSON"),
            frame(&[(":message-type", "event")], "{}"),
            event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"citation":{"title":"x"}}}"#),
            text(0, ", \"Welt\" 🌍\n"),
            block_stop(0),
            stop("end_turn"),
            metadata(),
        ],
        expect![[r#"
            stop anthropic.claude-x in 30 out 40 read 64 written 6 total 140
              text "Grüße, \"Welt\" 🌍\n""#]],
    );
}

// spec: A-58, P-13, P-17, P-27
#[test]
fn reasoning_and_interleaved_calls() {
    check(
        &[
            start(),
            reasoning(0, &json!({"text": "Let me "})),
            reasoning(0, &json!({"text": "look."})),
            reasoning(0, &json!({"signature": "EqQB"})),
            reasoning(0, &json!({"signature": "Ck=="})),
            block_stop(0),
            reasoning(1, &json!({"redactedContent": "cmVk"})),
            block_stop(1),
            text(2, "I look."),
            block_stop(2),
            call(3, "tooluse_1", "files__read"),
            input(3, "{\"path\":"),
            call(4, "tooluse_2", "add"),
            input(4, "{\"b\":2,"),
            input(3, "\"ä\"}"),
            input(4, "\"a\":1}"),
            block_stop(4),
            block_stop(3),
            call(5, "tooluse_3", "add"),
            block_stop(5),
            event(
                "contentBlockStart",
                r#"{"contentBlockIndex":6,"start":{"toolUse":{"toolUseId":"s","name":"add","type":"server_tool_use"}}}"#,
            ),
            input(6, "{}"),
            block_stop(6),
            stop("tool_use"),
            metadata(),
        ],
        expect![[r#"
            tools anthropic.claude-x in 30 out 40 read 64 written 6 total 140
              thinking "Let me look." signed "EqQBCk=="
              thinking "" signed "redacted:cmVk"
              text "I look."
              call tooluse_1 files.read {"path":"ä"}
              call tooluse_2 add {"b":2,"a":1}
              call tooluse_3 add {}"#]],
    );
}

// spec: P-27, T-06
#[test]
fn answers_end_for_a_reason() {
    let table = [
        ("end_turn", Ok(StopReason::Stop)),
        ("stop_sequence", Ok(StopReason::StopSequence)),
        ("refusal", Ok(StopReason::Refusal)),
        ("a_new_one", Ok(StopReason::Stop)),
        ("max_tokens", Ok(StopReason::Length)),
        ("guardrail_intervened", Ok(StopReason::Refusal)),
        ("content_filtered", Ok(StopReason::Refusal)),
        ("model_context_window_exceeded", Err("context_overflow")),
        ("malformed_model_output", Err("overloaded")),
        ("malformed_tool_use", Err("overloaded")),
    ];
    for (reason, expected) in table {
        let heard = replay(&provider(), &ask(), &stream([start(), text(0, "a"), stop(reason), metadata()]));
        let end = heard.end.as_ref();
        assert_eq!(end.map(|m| m.stop_reason).map_err(|e| e.code().as_str()), expected, "{reason}");
        if let Ok(message) = end {
            assert_eq!(
                message.error_message.is_some(),
                message.stop_reason == StopReason::Refusal,
                "{reason}"
            );
        }
    }
    // Without metadata the answer is still complete.
    let heard = replay(&provider(), &ask(), &stream([text(0, "a"), stop("end_turn")]));
    assert_eq!(heard.end.unwrap().text(), "a");
}

// spec: P-31, P-33
#[test]
fn exceptions_in_the_stream_are_classified() {
    let said = r#"{"message":"oops"}"#;
    let table = [
        (exception("throttlingException", said), "rate_limited", true),
        (
            exception(
                "modelStreamErrorException",
                r#"{"message":"oops","originalStatusCode":500,"originalMessage":"bad"}"#,
            ),
            "overloaded",
            true,
        ),
        (exception("internalServerException", said), "overloaded", true),
        (exception("serviceUnavailableException", said), "overloaded", true),
        (exception("modelTimeoutException", said), "timeout", true),
        (exception("validationException", said), "api", false),
        (
            exception("validationException", r#"{"message":"Input is too long for requested model."}"#),
            "context_overflow",
            false,
        ),
        (exception("accessDeniedException", said), "auth", false),
        (exception("someNewException", "no JSON"), "api", false),
        (
            frame(
                &[(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "oops")],
                "",
            ),
            "overloaded",
            true,
        ),
        (event("contentBlockDelta", "no JSON"), "protocol", false),
        (b"<html>gateway</html>".to_vec(), "protocol", false),
    ];
    for (bytes, code, retryable) in table {
        let heard = replay(&provider(), &ask(), &stream([start(), text(0, "a"), bytes, stop("end_turn")]));
        let error = heard.end.unwrap_err();
        assert_eq!((error.code().as_str(), error.is_retryable()), (code, retryable), "{error}");
        assert_eq!(heard.text, "a");
    }
}

// spec: P-31, P-33
#[test]
fn errors_before_the_stream_are_classified_by_status_body_and_header() {
    let table = [
        (400, r#"{"message":"The provided model identifier is invalid."}"#, "api"),
        (400, r#"{"message":"Input is too long for requested model."}"#, "context_overflow"),
        (403, r#"{"Message":"You don't have access to the model."}"#, "auth"),
        (403, r#"{"message":"The security token included in the request is expired"}"#, "auth"),
        (404, r#"{"message":"Could not resolve the foundation model"}"#, "api"),
        (408, r#"{"message":"Model has timed out"}"#, "timeout"),
        (424, r#"{"message":"The model failed","resourceName":"x"}"#, "api"),
        (429, r#"{"message":"Too many tokens, please wait before trying again."}"#, "rate_limited"),
        (500, r#"{"message":"oops"}"#, "overloaded"),
        (503, "<html>busy</html>", "overloaded"),
        (200, r#"{"message":"oops"}"#, "api"),
        (200, r#"{"output":{"message":{"role":"assistant"}}}"#, "protocol"),
        (200, "<html>log in</html>", "protocol"),
    ];
    for (status, body, code) in table {
        let fixture = Fixture::json(status, body).header("retry-after", "7");
        let error = once(&provider(), &ask(), &fixture).end.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{status} {body}: {error}");
        if status == 429 {
            assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
        }
        if status == 403 {
            assert!(!error.to_string().contains('{'), "its words and not its JSON: {error}");
        }
    }
}

// spec: P-27, P-31
#[test]
fn an_answer_cut_anywhere_is_complete_or_a_network_error() {
    let frames = [start(), text(0, "Grüße"), stop("end_turn"), metadata()];
    let decided = frames[..3].iter().map(Vec::len).sum::<usize>();
    for (at, heard) in cut_anywhere(&provider(), &ask(), &stream(frames)) {
        match heard.end {
            Ok(message) => assert!(at >= decided && message.text() == "Grüße", "cut at {at}"),
            Err(ProviderError::Network(_)) => assert!(at < decided, "cut at {at}"),
            Err(e) => panic!("cut at {at}: {e:?}"),
        }
    }
}

// spec: P-27, P-31
#[test]
fn bedrock_non_event_stream_body_is_quoted_in_the_error() {
    for (text, shown) in [("no", "no"), ("upstream is warming up", "upstream is warming up")] {
        let fixture = Fixture::new("application/vnd.amazon.eventstream", text);
        let error = once(&provider(), &ask(), &fixture).end.unwrap_err();
        assert!(matches!(error, ProviderError::Protocol(_)), "{error:?}");
        let shown = format!("status 200, application/vnd.amazon.eventstream: {shown}");
        assert!(error.to_string().contains(&shown), "{error}");
    }
}

/// Returns a request whose structured output has the name of a tool, so its own tool is called `add_2`.
fn asking_for_a_form() -> Request {
    let mut request = ask();
    let mut options = RequestOptions::default();
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}});
    options.response_format = Some(ResponseFormat { name: "add".into(), schema });
    request.options = Arc::new(options);
    request
}

// spec: P-27
#[test]
fn bedrock_structured_output_takes_the_first_call_and_may_be_empty() {
    let request = asking_for_a_form();
    // Of several answers at once, the one that began first counts.
    let frames = [
        start(),
        call(0, "tooluse_1", "add_2"),
        call(1, "tooluse_2", "add_2"),
        input(1, "{\"sum\":4}"),
        input(0, "{\"sum\":3}"),
        block_stop(1),
        block_stop(0),
        stop("tool_use"),
        metadata(),
    ];
    let heard = replay(&provider(), &request, &stream(frames));
    assert_eq!(heard.end.unwrap().text(), "{\"sum\":3}");
    // An empty answer counts as an answer.
    let frames = [start(), call(0, "tooluse_1", "add_2"), block_stop(0), stop("tool_use"), metadata()];
    let heard = replay(&provider(), &request, &stream(frames));
    assert_eq!(heard.end.unwrap().text(), "{}");
}

// spec: P-27
#[test]
fn bedrock_structured_output_arrives_as_text() {
    let request = asking_for_a_form();
    let frames = [
        start(),
        call(0, "tooluse_1", "add_2"),
        input(0, "{\"sum\":"),
        input(0, "3}"),
        block_stop(0),
        stop("tool_use"),
        metadata(),
    ];
    let heard = replay(&provider(), &request, &stream(frames));
    expect![[r#"
        stop anthropic.claude-x in 30 out 40 read 64 written 6 total 140
          text "{\"sum\":3}""#]]
    .assert_eq(&heard.line());
    // Text next to the structured output is not part of it.
    let frames = [
        start(),
        text(0, "Here "),
        text(0, "it is:"),
        block_stop(0),
        call(1, "tooluse_1", "add_2"),
        input(1, "{\"sum\":3}"),
        block_stop(1),
        text(2, "Anything else?"),
        stop("tool_use"),
        metadata(),
    ];
    let heard = replay(&provider(), &request, &stream(frames));
    assert_eq!(heard.text, "{\"sum\":3}");
    assert_eq!(heard.end.unwrap().text(), "{\"sum\":3}");
    // Without structured output, the text is the answer.
    let heard = replay(&provider(), &request, &stream([text(0, "I can"), text(0, "not."), stop("end_turn")]));
    assert_eq!(heard.text, "I cannot.");
    assert_eq!(heard.end.unwrap().text(), "I cannot.");
    // Tools can be called before the structured output.
    let frames =
        [start(), call(0, "tooluse_1", "add"), input(0, "{}"), block_stop(0), stop("tool_use"), metadata()];
    let heard = replay(&provider(), &request, &stream(frames));
    assert_eq!(heard.end.unwrap().stop_reason, StopReason::ToolUse);
}

// spec: P-05, P-28
#[test]
fn the_keys_are_sent_and_never_shown() {
    let signed = AwsCredentials::new("AKID", "canary-secret").with_session_token("canary-token");
    let expiring = signed.clone();
    let auths = [
        BedrockAuth::ApiKey,
        BedrockAuth::Signed(signed),
        BedrockAuth::SignedBy(Arc::new(move || Box::pin(std::future::ready(Ok(expiring.clone()))))),
    ];
    for auth in auths {
        let options = options().with_auth(auth).with_header("x-team", "canary-header");
        let provider = Bedrock::new(BASE_URL, options.clone()).unwrap();
        let echo = format!("{{\"message\":\"{KEY} canary-secret canary-token canary-header\"}}");
        let own: &[&str] = match &options.auth {
            BedrockAuth::ApiKey => &[KEY, "canary-header"],
            _ => &["canary-secret", "canary-token", "canary-header"],
        };
        let mut shown = format!("{provider:?} {options:?}");
        let fixtures = [
            Fixture::json(403, echo.clone()),
            Fixture::json(400, echo.clone()),
            Fixture::json(200, echo.clone()),
            Fixture::json(502, format!("<html>{echo}")),
            stream([exception("validationException", &echo)]),
            stream([event("messageStop", &echo[1..])]),
            stream([frame(
                &[(":message-type", "error"), (":error-code", "x"), (":error-message", &echo)],
                "",
            )]),
        ];
        for fixture in fixtures {
            let error = once(&provider, &ask(), &fixture).end.unwrap_err();
            shown += &format!("{error} {error:?}\n");
        }
        for secret in own {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

// spec: P-28, P-41
#[tokio::test]
async fn waiting_for_credentials_can_be_cancelled_and_their_failure_is_the_answer() {
    use std::future::{pending, poll_fn, ready};

    let with = |source| Bedrock::new(BASE_URL, options().with_auth(BedrockAuth::SignedBy(source))).unwrap();
    let cancel = CancellationToken::new();
    let mut events = with(Arc::new(|| Box::pin(pending()))).stream(ask(), cancel.clone());
    let canceller = tokio::spawn(async move { cancel.cancel() });
    let end = poll_fn(|cx| events.as_mut().poll_next(cx)).await;
    canceller.await.unwrap();
    assert!(matches!(end, Some(Ok(ModelEvent::Done(m))) if m.stop_reason == StopReason::Aborted));

    let mut events = with(Arc::new(|| Box::pin(ready(Err(ProviderError::Auth("the role is gone".into()))))))
        .stream(ask(), CancellationToken::new());
    let end = poll_fn(|cx| events.as_mut().poll_next(cx)).await;
    assert_eq!(end, Some(Err(ProviderError::Auth("the role is gone".into()))));
}
