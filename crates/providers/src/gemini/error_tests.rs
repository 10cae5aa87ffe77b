//! Tests of error responses: status × body × header, and that no key is ever shown.

use archon_types::Request;
use expect_test::expect;
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, once, sent};

fn ask() -> Request {
    Request::new("gemini-3-pro-preview", vec![])
}

/// The status, its name, the message, and the kind of the details.
const ERRORS: &[(u16, &str, &str, &str)] = &[
    (400, "INVALID_ARGUMENT", "Invalid value at 'contents'", ""),
    (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "key"),
    (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1196265) exceeds the maximum number of tokens allowed",
        "",
    ),
    (400, "INVALID_ARGUMENT", "Thinking level is not supported for this model.", ""),
    (400, "FAILED_PRECONDITION", "User location is not supported for the API use.", ""),
    (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", ""),
    (403, "PERMISSION_DENIED", "Your API key was reported as leaked.", ""),
    (404, "NOT_FOUND", "models/gemini-0 is not found for API version v1beta", ""),
    (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", "wait"),
    (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", ""),
    (500, "INTERNAL", "An internal error has occurred.", ""),
    (503, "UNAVAILABLE", "The model is overloaded.", ""),
    (504, "DEADLINE_EXCEEDED", "Deadline expired.", ""),
];

// spec: P-31, P-33
#[test]
fn statuses_bodies_and_headers() {
    let provider = Gemini::new(BASE_URL, GeminiOptions::default()).unwrap();
    let mut table = String::new();
    let none = json!([]);
    let bad_key = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let wait = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]);
    for (code, status, message, details) in ERRORS {
        let details = match *details {
            "key" => &bad_key,
            "wait" => &wait,
            _ => &none,
        };
        let error =
            json!({"error": {"code": code, "message": message, "status": status, "details": details}});
        // Some errors come as a list with one item.
        for body in [error.to_string(), format!("[{error}\n]")] {
            let error = once(&provider, &ask(), &Fixture::json(*code, body)).end.unwrap_err();
            let (retry, wait) = (error.is_retryable(), error.retry_after());
            // The names come from the catalogue, which changes.
            let text = error.to_string();
            let text = text.split("; similar names").next().unwrap_or_default();
            table += &format!("{code} {} retry {retry} wait {wait:?}: {text}\n", error.code());
        }
    }
    expect![[r#"
        400 api retry false wait None: the service refused the request (InvalidRequest, status 400): Invalid value at 'contents'
        400 api retry false wait None: the service refused the request (InvalidRequest, status 400): Invalid value at 'contents'
        400 auth retry false wait None: not authorised: API key not valid. Please pass a valid API key.
        400 auth retry false wait None: not authorised: API key not valid. Please pass a valid API key.
        400 context_overflow retry false wait None: the conversation does not fit into the model's context window: The input token count (1196265) exceeds the maximum number of tokens allowed
        400 context_overflow retry false wait None: the conversation does not fit into the model's context window: The input token count (1196265) exceeds the maximum number of tokens allowed
        400 api retry false wait None: the service refused the request (Thinking, status 400): Thinking level is not supported for this model.
        400 api retry false wait None: the service refused the request (Thinking, status 400): Thinking level is not supported for this model.
        400 api retry false wait None: the service refused the request (InvalidRequest, status 400): User location is not supported for the API use.
        400 api retry false wait None: the service refused the request (InvalidRequest, status 400): User location is not supported for the API use.
        401 auth retry false wait None: not authorised: Request had invalid authentication credentials.
        401 auth retry false wait None: not authorised: Request had invalid authentication credentials.
        403 auth retry false wait None: not authorised: Your API key was reported as leaked.
        403 auth retry false wait None: not authorised: Your API key was reported as leaked.
        404 api retry false wait None: the service refused the request (NotFound, status 404): models/gemini-0 is not found for API version v1beta
        404 api retry false wait None: the service refused the request (NotFound, status 404): models/gemini-0 is not found for API version v1beta
        429 rate_limited retry true wait Some(34.5s): rate limited by the service: You exceeded your current quota
        429 rate_limited retry true wait Some(34.5s): rate limited by the service: You exceeded your current quota
        429 rate_limited retry true wait None: rate limited by the service: You exceeded your current quota
        429 rate_limited retry true wait None: rate limited by the service: You exceeded your current quota
        500 overloaded retry true wait None: the service is overloaded or failed (status 500): An internal error has occurred.
        500 overloaded retry true wait None: the service is overloaded or failed (status 500): An internal error has occurred.
        503 overloaded retry true wait None: the service is overloaded or failed (status 503): The model is overloaded.
        503 overloaded retry true wait None: the service is overloaded or failed (status 503): The model is overloaded.
        504 overloaded retry true wait None: the service is overloaded or failed (status 504): Deadline expired.
        504 overloaded retry true wait None: the service is overloaded or failed (status 504): Deadline expired.
    "#]].assert_eq(&table);
    let fixture = Fixture::json(429, "{}").header("retry-after", "9");
    let error = once(&provider, &ask(), &fixture).end.unwrap_err();
    assert_eq!(error.retry_after().map(|wait| wait.as_secs()), Some(9));
}

// spec: P-05, P-22
#[test]
fn provider_errors_never_contain_the_key() {
    let options = GeminiOptions::default()
        .with_api_key("AIza-canary-1\n")
        .with_header("x-goog-user-project", "canary-2");
    let provider = Gemini::new(BASE_URL, options.clone()).unwrap();
    let echo = "the keys AIza-canary-1 and canary-2 are wrong";
    let error = json!({"error": {"code": 400, "message": echo, "status": "INVALID_ARGUMENT"}}).to_string();
    let mut shown = format!("{provider:?} {options:?}");
    for fixture in [
        Fixture::json(401, error.as_str()),
        Fixture::json(429, format!("[{error}]")),
        Fixture::json(500, error.as_str()),
        Fixture::json(200, error.as_str()),
        Fixture::new("text/html", echo).status(502),
        Fixture::sse(format!("data: {error}\r\n\r\n")),
        Fixture::sse(format!("data: {echo}\r\n\r\n")),
    ] {
        let error = once(&provider, &ask(), &fixture).end.unwrap_err();
        shown += &format!("{error} {error:?}\n");
    }
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("the keys **** and **** are wrong"), "{shown}");
    let sent = sent(&provider, &ask());
    assert_eq!(sent.header("x-goog-api-key"), Some("AIza-canary-1"));
    assert!(!sent.url.contains("canary"));
}
