//! Tests of streams as the service sends them, whole and cut at every byte, and of their results.

use std::sync::Arc;

use archon_testkit::VirtualClock;
use archon_types::{Encoded, ModelEvent, ProviderError, Request, ResponseFormat, ToolSpec};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, Heard, cut_anywhere, once, replay, replay_in_pieces};

fn provider() -> Anthropic {
    let options = AnthropicOptions::default().with_clock(Arc::new(VirtualClock::new()));
    Anthropic::new(BASE_URL, options).unwrap()
}

fn ask() -> Request {
    let mut request = Request::new("claude-sonnet-4-5", vec![]);
    let tools = ["files.read", "add"].map(|name| ToolSpec::new(name, "A tool.", json!({"type": "object"})));
    request.tools = Arc::new(Encoded::new(tools.to_vec()));
    request
}

/// Returns a stream of events with their names, as the service sends them.
fn stream(events: &[serde_json::Value]) -> String {
    let event = |event: &serde_json::Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

fn check(body: impl Into<Vec<u8>>, expected: Expect) -> Heard {
    let body = body.into();
    let heard = replay(&provider(), &ask(), &Fixture::sse(body.clone()));
    expected.assert_eq(&heard.line());
    // The same stream with CRLF line ends.
    let text = String::from_utf8(body).unwrap().replace('\n', "\r\n");
    assert_eq!(replay_in_pieces(&provider(), &ask(), &Fixture::sse(text)), heard, "with CRLF");
    heard
}

fn start() -> serde_json::Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 25, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1},
    }})
}

fn begin(index: u32, block: serde_json::Value) -> serde_json::Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: serde_json::Value) -> serde_json::Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text(index: u32, text: &str) -> serde_json::Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn arguments(index: u32, json: &str) -> serde_json::Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn end(index: u32) -> serde_json::Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stop(reason: &str) -> [serde_json::Value; 2] {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 15}});
    [delta, json!({"type": "message_stop"})]
}

// spec: P-10, P-24, A-58
#[test]
fn stream_text_with_pings_comments_and_unknown_events_is_decoded() {
    let block = begin(0, json!({"type": "text", "text": ""}));
    let [delta, stop] = stop("end_turn");
    let citation = self::delta(0, json!({"type": "citations_delta", "citation": {"cited_text": "x"}}));
    let body = [
        ": connected\n\n".to_owned(),
        stream(&[start(), block, json!({"type": "ping"}), text(0, "Grüße, \"Welt\"")]),
        ": still here\n\n".to_owned(),
        stream(&[citation, json!({"type": "news", "what": [1, {"a": null}]}), text(0, " 🌍\n"), end(0)]),
        stream(&[begin(1, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}))]),
        // In an event of an unknown kind even the known fields may have other types.
        stream(&[json!({"type": "novelty", "index": "x", "delta": 7, "message": [], "usage": "much"})]),
        // It changes no counts, and need not be JSON.
        stream(&[json!({"type": "novelty", "usage": {"input_tokens": 999, "output_tokens": 999}})]),
        "event: note\ndata: back in a moment\n\n".to_owned(),
        stream(&[arguments(1, "{\"q\":1}"), end(1), begin(2, json!({"type": "text", "text": "!"})), end(2)]),
        // Data over several lines, without a space after the colon.
        "event:message_delta\n".to_owned(),
        delta.to_string().replacen(",", ",\ndata:", 1).replacen('{', "data:{", 1) + "\n\n",
        stream(&[stop]),
    ];
    check(
        body.concat(),
        expect![[r#"
        stop claude-sonnet-4-5-20250929 in 25 out 15 read 3 written 7 total 0
          text "Grüße, \"Welt\" 🌍\n!""#]],
    );
}

// spec: P-11, A-58
#[test]
fn parallel_calls_with_arguments_in_pieces() {
    let call = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let [delta, stop] = stop("tool_use");
    let events = [
        start(),
        begin(0, json!({"type": "text", "text": ""})),
        text(0, "I look."),
        end(0),
        begin(1, call("toolu_a", "files__read")),
        arguments(1, ""),
        begin(2, call("toolu_b", "add")),
        arguments(1, "{\"path\": \"s"),
        arguments(2, "{\"b\":2,"),
        arguments(1, "ö/é\"}"),
        arguments(2, "\"a\":1}"),
        end(2),
        end(1),
        // A call without arguments, and one whose arguments are in its first event.
        begin(3, call("toolu_c", "add")),
        end(3),
        begin(4, json!({"type": "tool_use", "id": "toolu_d", "name": "add", "input": {"z": 1, "a": 2}})),
        end(4),
        delta,
        stop,
    ];
    check(
        stream(&events),
        expect![[r#"
        tools claude-sonnet-4-5-20250929 in 25 out 15 read 3 written 7 total 0
          text "I look."
          call toolu_a files.read {"path":"sö/é"}
          call toolu_b add {"b":2,"a":1}
          call toolu_c add {}
          call toolu_d add {"z":1,"a":2}"#]],
    );
}

// spec: P-11
#[test]
fn arguments_in_pieces_replace_those_of_the_beginning() {
    let [delta, stop] = stop("tool_use");
    let block = json!({"type": "tool_use", "id": "toolu_a", "name": "add", "input": {"a": 1}});
    let events = [start(), begin(0, block), arguments(0, "{\"a\":2}"), end(0), delta, stop];
    let heard = once(&provider(), &ask(), &Fixture::sse(stream(&events)));
    assert_eq!(heard.line().lines().last(), Some("  call toolu_a add {\"a\":2}"));
}

// spec: P-11
#[test]
fn arguments_that_are_cut_off_are_malformed_and_nothing_is_made_up() {
    let [delta, stop] = stop("max_tokens");
    let events = [
        start(),
        begin(0, json!({"type": "tool_use", "id": "toolu_a", "name": "add", "input": {}})),
        arguments(0, "{\"a\": 1, \"b"),
        end(0),
        delta,
        stop,
    ];
    let heard = check(
        stream(&events),
        expect![[r#"
        length claude-sonnet-4-5-20250929 in 25 out 15 read 3 written 7 total 0
          call toolu_a add malformed "{\"a\": 1, \"b""#]],
    );
    assert!(!format!("{heard:?}").contains("partial_json"));
}

// spec: P-13, A-58
#[test]
fn thinking_is_signed_redacted_or_without_text() {
    let thinking = |index, text: &str| delta(index, json!({"type": "thinking_delta", "thinking": text}));
    let signature = |index, text: &str| delta(index, json!({"type": "signature_delta", "signature": text}));
    let empty = || json!({"type": "thinking", "thinking": "", "signature": ""});
    let [delta, stop] = stop("end_turn");
    let events = [
        start(),
        begin(0, empty()),
        thinking(0, "Hm, "),
        thinking(0, "ä…"),
        signature(0, "EqQBCg=="),
        end(0),
        begin(1, json!({"type": "redacted_thinking", "data": "EmwKAhgB"})),
        end(1),
        begin(2, empty()),
        signature(2, "EuYBCk=="),
        end(2),
        begin(3, empty()),
        thinking(3, "Another."),
        signature(3, "Eabc"),
        end(3),
        begin(4, json!({"type": "text", "text": "Yes."})),
        end(4),
        delta,
        stop,
    ];
    check(
        stream(&events),
        expect![[r#"
        stop claude-sonnet-4-5-20250929 in 25 out 15 read 3 written 7 total 0
          thinking "Hm, ä…" signed "EqQBCg=="
          thinking "" signed "redacted:EmwKAhgB"
          thinking "" signed "EuYBCk=="
          thinking "Another." signed "Eabc"
          text "Yes.""#]],
    );
}

// spec: P-11
#[test]
fn a_call_that_the_limit_cut_before_its_arguments_is_malformed() {
    let call = |index: u32| {
        begin(index, json!({"type": "tool_use", "id": format!("t{index}"), "name": "add", "input": {}}))
    };
    let cut = json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}});
    let events =
        [vec![start()], vec![call(0), end(0), call(1), end(1), cut], vec![json!({"type": "message_stop"})]];
    check(
        stream(&events.concat()),
        expect![[r#"
            length claude-sonnet-4-5-20250929 in 25 out 1 read 3 written 7 total 0
              call t0 add {}
              call t1 add malformed """#]],
    );
}

// spec: P-10
#[test]
fn reasons_to_stop() {
    let with = |delta: serde_json::Value| {
        let block = [begin(0, json!({"type": "text", "text": "So"})), end(0)];
        let delta = json!({"type": "message_delta", "delta": delta, "usage": {"input_tokens": 30, "output_tokens": 2}});
        stream(&[vec![start()], block.to_vec(), vec![delta, json!({"type": "message_stop"})]].concat())
    };
    let mut table = String::new();
    for reason in [
        "end_turn",
        "stop_sequence",
        "max_tokens",
        "pause_turn",
        "tool_use",
        "model_context_window_exceeded",
        "new",
    ] {
        let heard = once(&provider(), &ask(), &Fixture::sse(with(json!({"stop_reason": reason}))));
        table += &format!("{reason}: {}\n", heard.line());
    }
    let details = json!({"type": "refusal", "category": "bio", "explanation": "Not this."});
    let refused = with(json!({"stop_reason": "refusal", "stop_details": details}));
    table += &once(&provider(), &ask(), &Fixture::sse(refused)).line();
    let refused = with(json!({"stop_reason": "refusal", "stop_details": null}));
    table += &format!("\n{}", once(&provider(), &ask(), &Fixture::sse(refused)).line());
    let ended = with(json!({"stop_reason": "stop_sequence", "stop_sequence": "END"}));
    table += &format!("\n{}", once(&provider(), &ask(), &Fixture::sse(ended)).line());
    expect![[r#"
        end_turn: stop claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
        stop_sequence: sequence claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
        max_tokens: length claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
        pause_turn: pause claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
        tool_use: stop claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
        model_context_window_exceeded: context_overflow: the conversation does not fit into the model's context window: model_context_window_exceeded
        new: stop claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
        refusal claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
          because: the service refused to answer (bio): Not this.
        refusal claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
          because: the service refused to answer
        sequence claude-sonnet-4-5-20250929 in 30 out 2 read 3 written 7 total 0
          text "So"
          ended by "END""#]].assert_eq(&table);
}

// spec: P-31, P-33
#[test]
fn errors_in_the_middle_of_a_stream() {
    let mut table = String::new();
    for (kind, message) in [
        ("overloaded_error", "Overloaded"),
        ("api_error", "Internal server error"),
        ("rate_limit_error", "Slow down"),
        ("timeout_error", "Took too long"),
        ("authentication_error", "Who are you"),
        ("permission_error", "Not you"),
        ("billing_error", "Pay first"),
        ("not_found_error", "No such model"),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        ("invalid_request_error", "messages: at least one"),
    ] {
        let error =
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
        let said = [start(), begin(0, json!({"type": "text", "text": ""})), text(0, "Half"), error];
        let body = stream(&said) + &stream(&stop("end_turn"));
        let heard = once(&provider(), &ask(), &Fixture::sse(body));
        assert_eq!(heard.text, "Half");
        let error = heard.end.unwrap_err();
        table += &format!("{kind}: {} {} {error}\n", error.code(), error.is_retryable());
    }
    expect![[r#"
        overloaded_error: overloaded true the service is overloaded or failed (status 503): Overloaded
        api_error: overloaded true the service is overloaded or failed (status 503): Internal server error
        rate_limit_error: rate_limited true rate limited by the service: Slow down
        timeout_error: overloaded true the service is overloaded or failed (status 504): Took too long
        authentication_error: auth false not authorised: Who are you
        permission_error: auth false not authorised: Not you
        billing_error: api false the service refused the request (Quota, status 200): Pay first
        not_found_error: api false the service refused the request (NotFound, status 404): No such model
        invalid_request_error: context_overflow false the conversation does not fit into the model's context window: prompt is too long: 210000 tokens > 200000 maximum
        invalid_request_error: api false the service refused the request (InvalidRequest, status 400): messages: at least one
    "#]].assert_eq(&table);
}

// spec: P-24, P-31
#[test]
fn an_answer_cut_anywhere_is_complete_or_a_network_error() {
    let [delta, stop] = stop("end_turn");
    let block = begin(0, json!({"type": "text", "text": "Grüße"}));
    let body = stream(&[start(), block, end(0), delta, stop]);
    let decided = body.find("event: message_stop").unwrap() - 2;
    for (at, heard) in cut_anywhere(&provider(), &ask(), &Fixture::sse(body.clone())) {
        match heard.end {
            Ok(message) => assert!(at >= decided && message.text() == "Grüße", "cut at {at} of {decided}"),
            Err(ProviderError::Network(_)) => assert!(at < decided, "cut at {at}"),
            Err(e) => panic!("cut at {at}: {e:?}"),
        }
    }
}

// spec: P-10
#[test]
fn stream_invalid_event_is_a_protocol_error_and_plain_json_is_decoded() {
    for body in ["data: nonsense\n\n", "data: {\"type\":7}\n\n", "data: {\"type\":\n\ndata: {}\n\n"] {
        let error = once(&provider(), &ask(), &Fixture::sse(body)).end.unwrap_err();
        assert_eq!(error.code().as_str(), "protocol", "{body}");
    }
    let whole = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "thinking", "thinking": "Hm.", "signature": "Esig"}, {"type": "text", "text": "Yes."},
            {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 5, "output_tokens": 6},
    });
    let heard = replay(&provider(), &ask(), &Fixture::json(200, whole.to_string()));
    expect![[r#"
        tools claude-x in 5 out 6 read 0 written 0 total 0
          thinking "Hm." signed "Esig"
          text "Yes."
          call t add {"a":1}"#]]
    .assert_eq(&heard.line());
}

// spec: P-08
#[test]
fn structured_output_tool_call_becomes_the_text_of_the_answer() {
    let mut request = ask();
    request.model = "claude-3-5-haiku-latest".into();
    let mut options = archon_types::RequestOptions::default();
    options.response_format =
        Some(ResponseFormat { name: "answer".into(), schema: json!({"type": "object"}) });
    request.options = Arc::new(options);
    let answer = |index| begin(index, json!({"type": "tool_use", "id": "t", "name": "answer", "input": {}}));
    let heard = |blocks: &[Vec<serde_json::Value>]| {
        let events = [vec![start()], blocks.concat(), stop("tool_use").to_vec()].concat();
        replay(&provider(), &request, &Fixture::sse(stream(&events))).line()
    };
    let seven = vec![answer(0), arguments(0, "{\"n\":"), arguments(0, " 7}"), end(0)];
    let first = expect![[r#"
        stop claude-sonnet-4-5-20250929 in 25 out 15 read 3 written 7 total 0
          text "{\"n\": 7}""#]];
    first.assert_eq(&heard(std::slice::from_ref(&seven)));
    // Of several answers at once, the one that began first counts.
    let eight = vec![answer(1), arguments(1, "{\"n\": 8}"), end(1)];
    first.assert_eq(&heard(&[seven.clone(), eight.clone()]));
    first.assert_eq(&heard(&[seven[..1].to_vec(), eight, seven[1..].to_vec()]));
    // An empty answer counts as an answer.
    expect![[r#"
        stop claude-sonnet-4-5-20250929 in 25 out 15 read 3 written 7 total 0
          text "{}""#]]
    .assert_eq(&heard(&[vec![answer(0), end(0)]]));
}

// spec: P-41
#[tokio::test]
async fn stream_cancelled_keeps_the_partial_text_and_closes_the_connection() {
    use archon_testkit::{MockResponse, MockServer};

    let call = begin(1, json!({"type": "tool_use", "id": "toolu_a", "name": "add", "input": {}}));
    let said = [
        start(),
        begin(0, json!({"type": "text", "text": "Half an"})),
        end(0),
        call,
        arguments(1, "{}"),
        end(1),
    ];
    let server = MockServer::start([MockResponse::sse(stream(&said)).hang()]).await;
    let provider = Anthropic::new(&server.url(), AnthropicOptions::default()).unwrap();
    let cancel = CancellationToken::new();
    let mut events = provider.stream(ask(), cancel.clone());
    let mut next = async || std::future::poll_fn(|cx| events.as_mut().poll_next(cx)).await;
    while !matches!(next().await, Some(Ok(ModelEvent::ToolCallEnd { .. }))) {}
    cancel.cancel();
    let Some(Ok(ModelEvent::Done(message))) = next().await else { panic!("no end") };
    assert_eq!(message.stop_reason, archon_types::StopReason::Aborted);
    assert_eq!((message.text().as_str(), message.tool_calls().count()), ("Half an", 0));
    assert!(next().await.is_none());
    server.until_gone(1).await;
}

/// Returns events of all kinds, sensible and not.
fn events() -> Vec<String> {
    let [delta_event, stop_event] = stop("tool_use");
    let mut events: Vec<String> = [
        start(),
        begin(0, json!({"type": "text", "text": "a"})),
        text(0, "b"),
        begin(1, json!({"type": "tool_use", "id": "", "name": "add", "input": {}})),
        arguments(1, "{"),
        arguments(1, "}"),
        arguments(7, "}"),
        begin(2, json!({"type": "thinking"})),
        delta(2, json!({"type": "thinking_delta", "thinking": "t"})),
        delta(2, json!({"type": "signature_delta", "signature": "s"})),
        begin(2, json!({"type": "redacted_thinking", "data": "d"})),
        end(0),
        end(1),
        end(2),
        delta_event,
        stop_event,
        json!({"type": "message_delta", "delta": {}}),
        json!({"type": "content_block_delta"}),
        json!({"type": "content_block_start", "index": 3}),
        json!({}),
    ]
    .iter()
    .map(ToString::to_string)
    .collect();
    events.extend(["", "[", "null", "7", "{\"type\":\"message_start\",\"message\":"].map(str::to_owned));
    events
}

proptest! {
    // spec: P-10, P-11
    #[test]
    fn any_order_of_events_is_survived(
        events in prop::collection::vec(prop::sample::select(events()), 0..20),
    ) {
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        once(&provider(), &ask(), &Fixture::sse(body)).assert_deltas_add_up();
    }
}
