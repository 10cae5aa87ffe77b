//! Tests of error responses: status × body × header, and that no key is ever shown.

use std::time::Duration;

use archon_types::Request;
use expect_test::expect;
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, once, sent};

fn ask() -> Request {
    Request::new("claude-opus-5-5", vec![])
}

// spec: P-31, P-33
#[test]
fn statuses_bodies_and_headers() {
    let provider = Anthropic::new(BASE_URL, AnthropicOptions::default()).unwrap();
    let mut table = String::new();
    for (status, kind, message) in [
        (400, "invalid_request_error", "messages: at least one message is required"),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        ),
        (400, "invalid_request_error", "max_tokens must be greater than thinking.budget_tokens"),
        (400, "invalid_request_error", "\"thinking.type.enabled\" is not supported for this model"),
        (400, "invalid_request_error", "Your credit balance is too low to access the API"),
        (401, "authentication_error", "invalid x-api-key"),
        (402, "billing_error", "payment required"),
        (403, "permission_error", "not allowed"),
        (404, "not_found_error", "model: claude-0"),
        (413, "request_too_large", "Request exceeds the maximum size"),
        (429, "rate_limit_error", "This request would exceed the rate limit"),
        (500, "api_error", "Internal server error"),
        (504, "timeout_error", "timed out"),
        (529, "overloaded_error", "Overloaded"),
    ] {
        let body =
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
        let fixture = Fixture::json(status, body.to_string()).header("retry-after", "7");
        let error = once(&provider, &ask(), &fixture).end.unwrap_err();
        let wait = error.retry_after().map(|wait| wait.as_secs());
        table +=
            &format!("{status} {} retry {} wait {wait:?}: {error}\n", error.code(), error.is_retryable());
    }
    expect![[r#"
        400 api retry false wait None: the service refused the request (InvalidRequest, status 400): messages: at least one message is required
        400 context_overflow retry false wait None: the conversation does not fit into the model's context window: prompt is too long: 210000 tokens > 200000 maximum
        400 context_overflow retry false wait None: the conversation does not fit into the model's context window: input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000
        400 api retry false wait None: the service refused the request (Thinking, status 400): max_tokens must be greater than thinking.budget_tokens
        400 api retry false wait None: the service refused the request (Thinking, status 400): "thinking.type.enabled" is not supported for this model
        400 api retry false wait None: the service refused the request (Quota, status 400): Your credit balance is too low to access the API
        401 auth retry false wait None: not authorised: invalid x-api-key
        402 api retry false wait None: the service refused the request (Quota, status 402): payment required
        403 auth retry false wait None: not authorised: not allowed
        404 api retry false wait None: the service refused the request (NotFound, status 404): model: claude-0
        413 api retry false wait None: the service refused the request (InvalidRequest, status 413): Request exceeds the maximum size
        429 rate_limited retry true wait Some(7): rate limited by the service: This request would exceed the rate limit
        500 overloaded retry true wait Some(7): the service is overloaded or failed (status 500): Internal server error
        504 overloaded retry true wait Some(7): the service is overloaded or failed (status 504): timed out
        529 overloaded retry true wait Some(7): the service is overloaded or failed (status 529): Overloaded
    "#]].assert_eq(&table);
    let page = Fixture::new("text/html", "<html><h1>Bad Gateway</h1></html>").status(502);
    assert!(once(&provider, &ask(), &page).end.unwrap_err().is_retryable());
    let waits = Fixture::json(429, "{}").header("retry-after-ms", "1500");
    let error = once(&provider, &ask(), &waits).end.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1_500)));
}

// spec: P-05, P-09
#[test]
fn provider_errors_never_contain_the_key() {
    let options = AnthropicOptions::default()
        .with_api_key("sk-ant-canary-1\n")
        .with_bearer_token("oauth-canary-2")
        .with_header("anthropic-beta", "beta-canary-3");
    let provider = Anthropic::new(BASE_URL, options.clone()).unwrap();
    let echo = "the keys sk-ant-canary-1, oauth-canary-2 and beta-canary-3 are wrong";
    let error =
        json!({"type": "error", "error": {"type": "authentication_error", "message": echo}}).to_string();
    let event = |data: &str| Fixture::sse(format!("event: error\ndata: {data}\n\n"));
    let mut shown = format!("{provider:?} {options:?}");
    for fixture in [
        Fixture::json(401, error.as_str()),
        Fixture::json(400, error.as_str()),
        Fixture::json(429, error.as_str()),
        Fixture::json(500, error.as_str()),
        Fixture::json(200, error.as_str()),
        Fixture::new("text/html", echo).status(502),
        Fixture::new("text/plain", echo).status(302).header("location", "https://h/?key=sk-ant-canary-1"),
        event(&error),
        event(echo),
        Fixture::sse(format!("data: {echo}\n\n")),
    ] {
        let error = once(&provider, &ask(), &fixture).end.unwrap_err();
        shown += &format!("{error} {error:?}\n");
    }
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("the keys ****, **** and **** are wrong"), "{shown}");
    let sent = sent(&provider, &ask());
    assert_eq!(sent.header("x-api-key"), Some("sk-ant-canary-1"));
    assert_eq!(sent.header("authorization"), Some("Bearer oauth-canary-2"));
    assert_eq!(sent.header("anthropic-beta"), Some("beta-canary-3,thinking-binding-controls-2026-08-01"));
}
