//! Tests of the classification of failed responses.

use expect_test::expect;

use super::*;

fn classify(status: u16, body: &str) -> ProviderError {
    let content_type = if body.starts_with('<') { "text/html" } else { "application/json" };
    let retry_after = Some(Duration::from_secs(7));
    Failure { status, content_type: content_type.to_owned(), retry_after, location: None }.classify(body)
}

/// The real texts and statuses of each service for a conversation that exceeds the context window.
const OVERFLOWS: &[(u16, &str)] = &[
    (
        400,
        r#"{"error":{"message":"Too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."}}"#,
    ),
    (400, r#"{"error":{"message":"Your input exceeds the context window of this model."}}"#),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
    ),
    (
        400,
        r#"[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]"#,
    ),
    (400, r#"{"message":"Input is too long for requested model."}"#),
    (
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
    ),
    (
        413,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}"#,
    ),
    (
        400,
        r#"{"object":"error","message":"Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error"}"#,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"invalid_request_error"}}"#,
    ),
    (500, r#"{"error":{"code":500,"message":"no","type":"exceed_context_size_error"}}"#),
    (
        400,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
    ),
    (
        400,
        r#"{"error":"Trying to keep the first 5000 tokens. However, the model is loaded with context length of only 4096 tokens"}"#,
    ),
    (400, r#"{"error":{"message":"prompt too long; exceeded max context length by 4 tokens"}}"#),
    (400, r#"{"error":"the input length exceeds the context length"}"#),
    (
        400,
        r#"{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","code":400}"#,
    ),
    (
        422,
        r#"{"error":{"message":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097","type":"invalid_request_error"}}"#,
    ),
    (422, r#"{"error":{"message":"inputs tokens + max_new_tokens must be <= 4097"}}"#),
    (400, r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}"#),
    (
        400,
        r#"{"error":{"message":"prompt token count of 130000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192","type":"invalid_request_error"}}"#,
    ),
    (400, r#"{"error":{"message":"invalid params, context window exceeds limit"}}"#),
    (400, r#"{"error":{"message":"no","code":"model_context_window_exceeded"}}"#),
    (
        400,
        r#"{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Your prompt is longer than the maximum context length\"}}"}}}"#,
    ),
    (400, "plain text: prompt is too long"),
];

// spec: P-33
#[test]
fn every_phrase_is_known_and_every_service_is_understood() {
    assert!(OVERFLOW_PHRASES.len() >= 15);
    for (status, body) in OVERFLOWS {
        let error = classify(*status, body);
        assert!(matches!(error, ProviderError::ContextOverflow(_)), "{body}: {error:?}");
        assert!(!error.is_retryable());
    }
    for (phrase, who) in OVERFLOW_PHRASES {
        assert_eq!(*phrase, phrase.to_lowercase(), "{who}");
        assert!(
            OVERFLOWS.iter().any(|(_, body)| body.to_lowercase().contains(phrase)),
            "no sample: {phrase}"
        );
    }
    // A limit of tokens per minute is no overflow, and neither is a body that is too large.
    let rate = classify(429, r#"{"error":{"message":"prompt is too long for your tokens per minute"}}"#);
    assert!(matches!(rate, ProviderError::RateLimited { .. }));
    assert!(matches!(classify(413, "<html>Request Entity Too Large"), ProviderError::Api { .. }));
}

/// Returns statuses and bodies of all kinds.
fn answers() -> Vec<(u16, String)> {
    let error =
        |message: &str, kind: &str| format!(r#"{{"error":{{"message":"{message}","type":"{kind}"}}}}"#);
    vec![
        (400, error("bad", "invalid_request_error")),
        (400, error("no", "content_policy_violation")),
        (401, error("no key", "invalid_api_key")),
        (402, error("pay", "payment_required")),
        (403, error("not you", "permission")),
        (403, r#"{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"]}}}"#.to_owned()),
        (404, error("no such model", "model_not_found")),
        (408, error("slow", "timeout")),
        (413, error("large", "request_too_large")),
        (422, r#"{"detail":[{"msg":"field required"}]}"#.to_owned()),
        (429, error("slow down", "rate_limit_error")),
        (429, error("no credit", "insufficient_quota")),
        (500, error("oops", "server_error")),
        (501, error("no", "not_implemented")),
        (502, "<html>\n <h1>Bad   Gateway</h1>".to_owned()),
        (503, String::new()),
        (504, "upstream timed out".to_owned()),
        (529, error("busy", "overloaded_error")),
        (418, "teapot".to_owned()),
        (200, error("slow down", "rate_limit_error")),
        (200, error("who", "authentication_error")),
        (200, error("busy", "overloaded_error")),
        (200, error("odd", "odd")),
        (200, r#"{"error":{"message":"provider is down","code":502}}"#.to_owned()),
        (200, r#"{"error":{"message":"provider is busy","code":"429"}}"#.to_owned()),
        (200, "<html>log in".to_owned()),
    ]
}

// spec: P-31, P-33
#[test]
fn status_and_words_are_classified() {
    let mut table = String::new();
    for (status, body) in answers() {
        let error = classify(status, &body);
        let again = if error.is_retryable() { "again" } else { "final" };
        table.push_str(&format!("{status} {again} {error:?}\n"));
    }
    expect![[r#"
        400 final Api { status: 400, kind: InvalidRequest, message: "bad" }
        400 final Api { status: 400, kind: ContentFiltered, message: "no" }
        401 final Auth("no key", 401)
        402 final Api { status: 402, kind: Quota, message: "pay" }
        403 final Auth("not you", 403)
        403 final Api { status: 403, kind: ContentFiltered, message: "flagged" }
        404 final Api { status: 404, kind: NotFound, message: "no such model" }
        408 again Timeout("slow", 408)
        413 final Api { status: 413, kind: InvalidRequest, message: "large" }
        422 final Api { status: 422, kind: InvalidRequest, message: "[{\"msg\":\"field required\"}]" }
        429 again RateLimited { retry_after: Some(7s), message: "slow down", 429 }
        429 final Api { status: 429, kind: Quota, message: "no credit" }
        500 again Overloaded { status: 500, retry_after: Some(7s), message: "oops" }
        501 final Api { status: 501, kind: Other, message: "no" }
        502 again Overloaded { status: 502, retry_after: Some(7s), message: "status 502, text/html: <html> <h1>Bad Gateway</h1>" }
        503 again Overloaded { status: 503, retry_after: Some(7s), message: "status 503, application/json: an empty body" }
        504 again Overloaded { status: 504, retry_after: Some(7s), message: "status 504, application/json: upstream timed out" }
        529 again Overloaded { status: 529, retry_after: Some(7s), message: "busy" }
        418 final Api { status: 418, kind: Other, message: "status 418, application/json: teapot" }
        200 again RateLimited { retry_after: Some(7s), message: "slow down (status 200, application/json: {\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit_error\"}})", 429 }
        200 final Auth("who (status 200, application/json: {\"error\":{\"message\":\"who\",\"type\":\"authentication_error\"}})", 401)
        200 again Overloaded { status: 503, retry_after: Some(7s), message: "busy (status 200, application/json: {\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}})" }
        200 final Api { status: 0, kind: Other, message: "odd (status 200, application/json: {\"error\":{\"message\":\"odd\",\"type\":\"odd\"}})" }
        200 again Overloaded { status: 502, retry_after: Some(7s), message: "provider is down (status 200, application/json: {\"error\":{\"message\":\"provider is down\",\"code\":502}})" }
        200 again RateLimited { retry_after: Some(7s), message: "provider is busy (status 200, application/json: {\"error\":{\"message\":\"provider is busy\",\"code\":\"429\"}})", 429 }
        200 final Protocol("status 200, text/html: <html>log in", 200)
    "#]].assert_eq(&table);
}

// spec: P-31
#[test]
fn classify_unknown_model_is_not_found() {
    for (status, body, missing) in [
        (404, r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#, true),
        (400, r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}"#, true),
        (400, r#"{"object":"error","message":"Invalid model: x","code":"1500"}"#, true),
        (400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#, true),
        (400, r#"{"message":"The provided model identifier is invalid."}"#, true),
        (400, r#"{"error":{"message":"invalid model input"}}"#, false),
        (403, r#"{"error":{"message":"no access","code":"model_not_found"}}"#, false),
    ] {
        let error = classify(status, body);
        assert_eq!(error.refusal() == Some(ApiErrorKind::NotFound), missing, "{body}: {error:?}");
    }
}

// spec: ER-09
#[test]
fn classify_unsupported_thinking_level_is_the_thinking_kind() {
    for (status, body, thinking) in [
        (400, r#"{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}"#, true),
        (400, r#"{"error":{"message":"unsupported value: 'high'","param":"reasoning_effort"}}"#, true),
        (400, r#"{"error":"\"phi3\" does not support thinking"}"#, true),
        (422, r#"{"error":{"message":"max_tokens must exceed thinking.budget_tokens"}}"#, true),
        (400, r#"{"error":{"message":"unsupported value: 'high'","param":"temperature"}}"#, false),
        (429, r#"{"error":{"message":"too many requests with reasoning_effort"}}"#, false),
        (500, r#"{"error":{"message":"thinking budget service failed"}}"#, false),
    ] {
        let found = classify(status, body).refusal() == Some(ApiErrorKind::Thinking);
        assert_eq!(found, thinking, "{status} {body}");
    }
}

// spec: P-31
#[test]
fn errors_in_a_stream_are_understood() {
    for (event, code) in [
        (r#"{"error":{"message":"busy","type":"overloaded_error"}}"#, "overloaded"),
        (r#"{"error":"internal"}"#, "api"),
        (r#"{"message":"slow","code":429}"#, "rate_limited"),
        (r#"{"error":{"message":"prompt is too long"}}"#, "context_overflow"),
        (r#""text""#, "api"),
    ] {
        let error = stream_error(&serde_json::from_str(event).unwrap());
        assert_eq!(error.code().as_str(), code, "{event}: {error:?}");
    }
}

#[test]
fn classify_redirect_error_names_the_location() {
    let location = Some("https://h/v1/chat/completions".to_owned());
    let failure = Failure { status: 301, location, ..Failure::default() };
    let error = failure.classify("").to_string();
    assert!(error.contains("redirects to \"https://h/v1/chat/completions\""), "{error}");
}

// spec: P-05
#[test]
fn no_kind_of_error_shows_a_key() {
    let redactor = Redactor::default();
    redactor.add(&"sk-canary".into());
    redactor.add(&"x".into());
    let text = || "the key sk-canary, sk-canary is wrong".to_owned();
    let wait = None;
    for error in [
        ProviderError::RateLimited { retry_after: wait, message: text().into() },
        ProviderError::Overloaded { status: 500, retry_after: wait, message: text() },
        ProviderError::Api { status: 400, kind: ApiErrorKind::Other, message: text() },
        ProviderError::Network(text().into()),
        ProviderError::Timeout(text().into()),
        ProviderError::Auth(text().into()),
        ProviderError::ContextOverflow(text().into()),
        ProviderError::Protocol(text().into()),
        ProviderError::Other(text().into()),
    ] {
        let shown = redacted(error, &redactor).to_string();
        assert!(shown.contains("the key ****, **** is wrong"), "{shown}");
    }
}

#[test]
fn excerpts_are_short_lines() {
    assert_eq!(first_words(" a\n\tb "), "a b");
    assert_eq!(first_words(""), "an empty body");
    for text in ["ä ", "ä"] {
        let long = first_words(&text.repeat(300));
        assert_eq!((long.chars().count(), long.ends_with('…')), (201, true), "{long}");
    }
    assert_eq!(first_words(&"ä".repeat(200)), "ä".repeat(200));
}
