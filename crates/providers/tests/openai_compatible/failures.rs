//! Failures of the service; no error ever shows the key.

use std::time::Duration;

use archon_providers::{HttpOptions, Timeouts};
use archon_testkit::MockResponse;
use archon_types::ApiErrorKind;
use serde_json::json;

use super::*;

async fn failure(response: MockResponse) -> ProviderError {
    let server = MockServer::start([response]).await;
    answer(&server, ask()).await.unwrap_err()
}

// spec: P-31, P-33
#[tokio::test]
async fn errors_are_classified_by_status_body_and_header() {
    let error = |message: &str| json!({"error": {"message": message, "type": "t"}});
    let limited = MockResponse::json(429, &error("slow down")).header("retry-after", "7");
    let expected =
        ProviderError::RateLimited { retry_after: Some(Duration::from_secs(7)), message: "slow down".into() };
    assert_eq!(failure(limited).await, expected.or_status(429));

    // The virtual clock reads midnight of the first of January.
    let busy = MockResponse::json(529, &error("busy")).header("retry-after", "Thu, 01 Jan 2026 00:00:20 GMT");
    let expected = ProviderError::Overloaded {
        status: 529,
        retry_after: Some(Duration::from_secs(20)),
        message: "busy".into(),
    };
    assert_eq!(failure(busy).await, expected);

    assert_eq!(
        failure(MockResponse::json(401, &error("no"))).await,
        ProviderError::Auth("no".into()).or_status(401)
    );
    let overflow = failure(MockResponse::json(400, &error("the prompt is too long"))).await;
    assert_eq!((overflow.code().as_str(), overflow.status()), ("context_overflow", Some(400)));
    let redirect = MockResponse::new(307).header("location", "https://elsewhere/v1");
    let said = failure(redirect).await.to_string();
    assert!(said.contains("redirects to \"https://elsewhere/v1\""), "{said}");
}

// spec: P-31
#[tokio::test]
async fn response_that_is_no_answer_is_quoted_in_the_error() {
    let page = |status| {
        MockResponse::new(status).header("content-type", "text/html").chunk("<html>\n<h1>Log in</h1></html>")
    };
    let said = failure(page(200)).await;
    let expected = "openai-compatible, status 200, text/html: <html> <h1>Log in</h1></html>";
    assert_eq!(said, ProviderError::Protocol(expected.into()).or_status(200));
    assert!(!said.is_retryable());
    let said = failure(page(502)).await;
    assert!(said.is_retryable());
    assert!(said.to_string().ends_with("status 502, text/html: <html> <h1>Log in</h1></html>"), "{said}");
    assert_eq!(
        failure(MockResponse::new(200)).await,
        ProviderError::Protocol("openai-compatible, status 200, no content type: an empty body".into())
            .or_status(200)
    );
}

// spec: P-31
#[tokio::test]
async fn a_compressed_answer_is_refused_by_the_name_of_its_encoding() {
    for (status, code) in [(200, "protocol"), (429, "rate_limited"), (503, "overloaded")] {
        let response = MockResponse::new(status)
            .header("content-type", "text/event-stream")
            .header("content-encoding", "br")
            .chunk([0x1b, 0x0a, 0xff, 0x00]);
        let server = MockServer::start([response]).await;
        let error = answer(&server, ask()).await.unwrap_err();
        let said = error.to_string();
        assert_eq!((error.code().as_str(), error.status()), (code, Some(status)), "{said}");
        assert!(
            said.contains("the answer is compressed (br)") && said.contains("send it as it is"),
            "{said}"
        );
        assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
    }
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = MockServer::start([MockResponse::sse(body).header("content-encoding", "identity")]).await;
    assert_eq!(answer(&server, ask()).await.unwrap().text(), "a");
}

// spec: P-31
#[tokio::test]
async fn an_error_with_status_200_is_an_error() {
    let error = json!({"error": {"message": "the model is loading", "code": 503}});
    let expected = |message: &str| ProviderError::Overloaded {
        status: 503,
        retry_after: None,
        message: message.to_owned(),
    };
    let seen = r#"the model is loading (status 200, application/json: {"error":{"message":"the model is loading","code":503}})"#;
    assert_eq!(failure(MockResponse::json(200, &error)).await, expected(seen));
    let in_stream = failure(MockResponse::events([error.to_string()])).await;
    assert_eq!(in_stream, expected("the model is loading"));
}

// spec: P-31
#[tokio::test]
async fn event_stream_without_events_is_quoted_in_the_error() {
    let said = failure(MockResponse::sse(" \n<html><h1>Log in</h1></html>\n")).await;
    let expected = "openai-compatible, status 200, text/event-stream: <html><h1>Log in</h1></html>";
    assert_eq!(said, ProviderError::Protocol(expected.into()).or_status(200));
    let said = failure(MockResponse::sse(r#"{"error":{"message":"slow down","code":429}}"#)).await;
    assert_eq!(said.code().as_str(), "rate_limited");
    assert!(said.to_string().contains("status 200, text/event-stream: {\"error\""), "{said}");
    let whole = json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]});
    let server = MockServer::start([MockResponse::sse(whole.to_string())]).await;
    assert_eq!(answer(&server, ask()).await.unwrap().text(), "a");
}

// spec: P-31, P-33
#[tokio::test]
async fn stream_error_in_the_middle_follows_the_partial_text() {
    for (event, code) in [
        (r#"{"error":{"message":"busy","type":"overloaded_error"},"choices":[]}"#, "overloaded"),
        (r#"{"error":"This model's maximum context length is 10 tokens"}"#, "context_overflow"),
        (r#"{"object":"error","message":"gone","code":500}"#, "overloaded"),
        (r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#, "overloaded"),
        ("not json", "protocol"),
        (r#"{"choices":7}"#, "protocol"),
    ] {
        let text = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
        let server = MockServer::start([MockResponse::events([text, event, text, "[DONE]"])]).await;
        let (events, end) = finish(start(&provider(&server), ask())).await;
        assert_eq!(events, [ModelEvent::Start, ModelEvent::TextDelta("a".into())], "{event}");
        assert_eq!(end.unwrap_err().code().as_str(), code, "{event}");
    }
    let named = MockResponse::sse("event: error\ndata: {\"message\":\"slow\",\"code\":429}\n\n");
    assert_eq!(failure(named).await.code().as_str(), "rate_limited");
}

// spec: P-31
#[tokio::test]
async fn a_service_that_is_not_there_is_unreachable() {
    let server = MockServer::start([]).await;
    let provider = provider(&server);
    let url = server.url();
    drop(server);
    tokio::task::yield_now().await;
    let error = finish(start(&provider, ask())).await.1.unwrap_err();
    assert_eq!(error.code().as_str(), "unreachable", "{error}");
    assert!(error.to_string().contains(&format!("{url}/v1/chat/completions is not reached")), "{error}");
    // Nobody listens here, and will not in a few seconds either.
    assert!(matches!(error, ProviderError::Unreachable(_)) && !error.is_retryable(), "{error:?}");
}

// spec: P-35
#[tokio::test]
async fn silence_is_a_timeout() {
    let quick = Duration::from_millis(40);
    let long = Duration::from_secs(600);
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let limits = |first_byte, idle, total| {
        let mut timeouts = Timeouts::default();
        (timeouts.first_byte, timeouts.idle, timeouts.total) = (first_byte, idle, total);
        timeouts
    };
    let silent = || MockResponse::new(200).header("content-type", "text/event-stream");
    for (timeouts, response, said) in [
        (limits(quick, long, None), silent().hang(), "no data came for 0.04 s"),
        (limits(quick, long, None), silent().chunk(": keep-alive\n\n").hang(), "no data came for 0.04 s"),
        (limits(long, quick, None), silent().chunk(text).hang(), "no data came for 0.04 s"),
        (
            limits(long, quick, None),
            silent().chunk(format!("{text}: ping\n\n")).hang(),
            "no data came for 0.04 s",
        ),
        (limits(long, long, Some(quick)), silent().chunk(text).hang(), "no complete answer in 0.04 s"),
    ] {
        let server = MockServer::start([response]).await;
        let mut http = HttpOptions::default();
        http.timeouts = timeouts;
        let provider = OpenAiCompatible::new(&server.url(), options().with_http(http)).unwrap();
        let error = finish(start(&provider, ask())).await.1.unwrap_err();
        assert_eq!(error, ProviderError::Timeout(said.into()).or_status(200));
        server.until_gone(1).await;
    }
}

// spec: P-35
#[tokio::test]
async fn an_answer_that_is_past_a_limit_ends_with_the_limit_and_its_setting() {
    let text = |text: &str| json!({"choices": [{"delta": {"content": text}}]}).to_string();
    let thinking = |text: &str| json!({"choices": [{"delta": {"reasoning_content": text}}]}).to_string();
    let tagged = text(&format!("<think>{}", "x".repeat(40)));
    let call = |index: u32, arguments: &str| {
        let function = json!({"name": "f", "arguments": arguments});
        let call = json!({"index": index, "id": format!("c{index}"), "function": function});
        json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string()
    };
    let detail = json!({"type": "reasoning.encrypted", "data": "x".repeat(40)});
    let detail = json!({"choices": [{"delta": {"reasoning_details": [detail]}}]}).to_string();
    let mut http = HttpOptions::default();
    (http.limits.text_bytes, http.limits.thinking_bytes) = (20, 30);
    (http.limits.calls, http.limits.argument_bytes) = (3, 25);
    for (events, said) in [
        (
            vec![text("0123456789"), text("0123456789"), text("x")],
            "20 bytes of text; `HttpOptions::limits.text_bytes`",
        ),
        (
            vec![thinking("0123456789"), thinking("0123456789"), thinking("01234567890")],
            "30 bytes of thinking; `HttpOptions::limits.thinking_bytes`",
        ),
        (vec![tagged], "30 bytes of thinking; `"),
        (vec![detail], "30 bytes of thinking; `"),
        ((0..4).map(|n| call(n, "")).collect(), "3 tool calls; `HttpOptions::limits.calls`"),
        (
            vec![call(0, "0123456789"), call(0, "0123456789")],
            "25 bytes of arguments; `HttpOptions::limits.argument_bytes`",
        ),
    ] {
        let done = [r#"{"choices":[{"finish_reason":"stop","delta":{}}]}"#.to_owned(), "[DONE]".to_owned()];
        let server = MockServer::start([MockResponse::events(events.into_iter().chain(done))]).await;
        let mut compat = archon_providers::Compat::default();
        compat.think_tags = true;
        let options = options().with_http(http.clone()).with_compat(compat);
        let provider = OpenAiCompatible::new(&server.url(), options).unwrap();
        let error = finish(start(&provider, ask())).await.1.unwrap_err();
        assert!(!error.is_retryable() && error.to_string().contains(said), "{error}");
    }
    let limits = HttpOptions::default().limits;
    assert_eq!((limits.text_bytes, limits.thinking_bytes), (8 << 20, 8 << 20));
    assert_eq!((limits.calls, limits.argument_bytes), (128, 1 << 20));
    assert_eq!(Timeouts::default().total, Some(Duration::from_secs(600)));
}

// spec: P-05
#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let secret = "canary-header-value";
    let echo = |status| {
        let text = format!("the key {KEY} and the header {secret} are wrong");
        MockResponse::json(status, &json!({"error": {"message": text}}))
    };
    let page = MockResponse::new(502).chunk(format!("<html>{KEY}"));
    let events = MockResponse::events([format!(r#"{{"error":"{KEY}"}}"#)]);
    let garbage = MockResponse::events([format!("garbage {KEY}")]);
    let redirect = MockResponse::new(302).header("location", &format!("http://h/?key={KEY}"));
    // `sk-canary-1234` in base64, alone and behind `Bearer `, in a URL, and in hex.
    let encoded = [
        "c2stY2FuYXJ5LTEyMzQ=",
        "QmVhcmVyIHNrLWNhbmFyeS0xMjM0",
        "%73%6B%2D%63%61%6E%61%72%79%2D%31%32%33%34",
        "736b2d63616e6172792d31323334",
    ];
    let encoded = MockResponse::json(401, &json!({"error": {"message": encoded.join(" ")}}));
    let script =
        [echo(401), echo(400), echo(429), echo(500), echo(200), page, events, garbage, redirect, encoded];
    let ways = script.len();
    let server = MockServer::start(script).await;
    let options = options().with_header("x-team", secret);
    let provider = OpenAiCompatible::new(&server.url(), options.clone()).unwrap();
    let mut shown = format!("{provider:?} {options:?}");
    for _ in 0..ways {
        let error = finish(start(&provider, ask())).await.1.unwrap_err();
        shown += &format!("{error} {error:?}\n");
    }
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("the key **** and the header **** are wrong"));
    assert!(shown.contains("not authorised: **** QmVhcmVyIH**** **** **** "), "{shown}");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("x-team"), Some(secret));
}

// spec: P-31
#[tokio::test]
async fn unsupported_structured_output_is_refused_before_the_request() {
    let server = MockServer::start([]).await;
    let mut compat = archon_providers::Compat::default();
    compat.response_format = archon_providers::ResponseFormatSupport::Unsupported;
    let provider = OpenAiCompatible::new(&server.url(), options().with_compat(compat)).unwrap();
    let mut request = ask();
    let mut asked = archon_types::RequestOptions::default();
    asked.response_format =
        Some(archon_types::ResponseFormat { name: "x".into(), schema: json!({"type": "object"}) });
    request.options = Arc::new(asked);
    let error = finish(start(&provider, request)).await.1.unwrap_err();
    assert!(matches!(error, ProviderError::Api { kind: ApiErrorKind::InvalidRequest, .. }), "{error:?}");
    assert!(server.requests().is_empty());
}

// spec: P-15
#[tokio::test]
async fn idle_connection_closed_by_the_server_is_replaced() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = MockServer::start((0..50).map(|_| MockResponse::sse(body).close())).await;
    let provider = provider(&server);
    for _ in 0..50 {
        assert_eq!(finish(start(&provider, ask())).await.1.unwrap().text(), "a");
    }
    assert_eq!(server.requests().len(), 50);
}

// spec: P-15, P-31
#[tokio::test]
async fn reused_connection_that_dies_is_a_retryable_error_without_a_resend() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server =
        MockServer::start([MockResponse::sse(body), MockResponse::nothing(), MockResponse::sse(body)]).await;
    let provider = provider(&server);
    finish(start(&provider, ask())).await.1.unwrap();
    let error = finish(start(&provider, ask())).await.1.unwrap_err();
    assert!(matches!(error, ProviderError::Network(_)) && error.is_retryable(), "{error:?}");
    let connections =
        |server: &MockServer| server.requests().iter().map(|r| r.connection).collect::<Vec<_>>();
    assert_eq!(connections(&server), [0, 0], "the second request went over the kept connection, once");
    assert_eq!(finish(start(&provider, ask())).await.1.unwrap().text(), "a");
    assert_eq!(connections(&server), [0, 0, 1]);
}

// spec: P-31
#[tokio::test]
async fn bad_response_error_has_status_type_and_first_bytes_without_the_key() {
    let html =
        |status, body: String| MockResponse::new(status).header("content-type", "text/html").chunk(body);
    let page = format!("<!DOCTYPE html><title>Gateway</title> key {KEY} {}", "x".repeat(9000));
    let text = MockResponse::new(200).header("content-type", "text/plain").chunk("upstream is warming up");
    let list = MockResponse::json(200, &json!([1, 2]));
    let detail = MockResponse::json(200, &json!({"detail": format!("{KEY} is not known")}));
    // Where the text is cut, the key is cut, too.
    let cut = MockResponse::json(200, &json!({"x": "x".repeat(180), "y": KEY}));
    // What was asked for, by its name only.
    let odd = MockResponse::sse(format!("upstream is warming up {KEY}\n\n"));
    for (response, parts) in [
        (html(200, page.clone()), vec!["status 200", "text/html", "<!DOCTYPE html>", "****"]),
        (html(504, page), vec!["status 504", "text/html", "<!DOCTYPE html>", "****"]),
        (
            MockResponse::json(200, &json!({"ok": KEY})),
            vec!["status 200, application/json: {\"ok\":\"****\"}"],
        ),
        (list, vec!["status 200", "application/json", "[1,2]"]),
        (detail, vec!["**** is not known (status 200, application/json: {"]),
        (text, vec!["status 200, text/plain: upstream is warming up"]),
        (cut, vec!["status 200", "xx\",\"y\":\"****…"]),
        (odd, vec!["status 200, text/event-stream: upstream is warming up ****"]),
    ] {
        let said = failure(response).await.to_string();
        assert!(!said.contains("canary") && said.len() < 500, "{said}");
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    for (base, reason) in [
        ("example.com/v1", "has no scheme; write http://example.com/v1 or https://example.com/v1"),
        ("ftp://example.com", "only http and https work"),
        ("http://", "empty host"),
    ] {
        let e = OpenAiCompatible::new(base, options()).unwrap_err().to_string();
        assert!(e.contains(reason), "{e}");
    }
    for proxy in ["proxy:3128", "socks5://proxy", "http://a b"] {
        let options = options().with_http(HttpOptions::default().with_proxy(proxy));
        let e = OpenAiCompatible::new("http://h/v1", options).unwrap_err().to_string();
        assert!(e.starts_with("proxy: ") && !e.contains("3128"), "{e}");
    }
}

// spec: P-15
#[tokio::test]
async fn a_proxy_that_was_named_is_used_and_its_password_never_shown() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let refused = MockResponse::new(407).chunk("who are you, me:hunter2?");
    let proxy = MockServer::start([MockResponse::sse(body), refused]).await;
    let address = proxy.url().replace("http://", "http://me:hunter2@");
    let options = options().with_http(HttpOptions::default().with_proxy(address).with_plain_http());
    let provider = OpenAiCompatible::new("http://service.invalid/v1", options).unwrap();
    assert_eq!(finish(start(&provider, ask())).await.1.unwrap().text(), "a");
    assert!(proxy.requests()[0].header("proxy-authorization").is_some());
    let error = finish(start(&provider, ask())).await.1.unwrap_err();
    assert!(!format!("{error} {provider:?}").contains("hunter2"), "{error}");
}

// spec: P-15
#[tokio::test]
async fn providers_of_one_set_of_options_share_their_connections() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = MockServer::start((0..4).map(|_| MockResponse::sse(body))).await;
    let http = HttpOptions::default();
    for options in [options().with_http(http.clone()), options().with_http(http), options(), options()] {
        let provider = OpenAiCompatible::new(&server.url(), options).unwrap();
        finish(start(&provider, ask())).await.1.unwrap();
    }
    let connections: Vec<_> = server.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections[0], connections[1]);
    assert!(connections[1] != connections[2] && connections[2] != connections[3], "{connections:?}");
}
