//! Tests of Azure's addresses, keys and filters; the protocols have tests of their own.

use std::sync::Arc;

use archon_testkit::VirtualClock;
use archon_types::{ApiErrorKind, Message, ModelEvent, Secret, StopReason, Timestamp};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, once, replay, sent};

/// A key that must never appear in any output.
const KEY: &str = "canary-azure-1234";

fn options(api: AzureApi) -> AzureOptions {
    AzureOptions::default().with_api(api).with_api_key(KEY).with_clock(Arc::new(VirtualClock::new()))
}

fn chat() -> AzureOpenAi {
    AzureOpenAi::new(BASE_URL, options(AzureApi::ChatCompletions)).unwrap()
}

fn responses() -> AzureOpenAi {
    AzureOpenAi::new(BASE_URL, options(AzureApi::Responses)).unwrap()
}

fn ask() -> Request {
    Request::new("my deployment", vec![Message::user("hi", Timestamp::default())])
}

// spec: P-21
#[test]
fn addresses_of_both_protocols_and_both_kinds() {
    use AzureApi::{ChatCompletions, Responses};

    let at = "https://x.openai.azure.com";
    for (endpoint, api, version, expected) in [
        (at, Responses, None, "https://x.openai.azure.com/openai/v1/responses"),
        (at, ChatCompletions, None, "https://x.openai.azure.com/openai/v1/chat/completions"),
        (
            at,
            Responses,
            Some("2025-04-01-preview"),
            "https://x.openai.azure.com/openai/responses?api-version=2025-04-01-preview",
        ),
        (
            at,
            ChatCompletions,
            Some("2024-10-21"),
            "https://x.openai.azure.com/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21",
        ),
        (
            " https://x.services.ai.azure.com/openai/v1/ ",
            Responses,
            None,
            "https://x.services.ai.azure.com/openai/v1/responses",
        ),
        (
            "https://gateway/team/openai",
            ChatCompletions,
            Some("2024-10-21"),
            "https://gateway/team/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21",
        ),
    ] {
        let mut options = options(api);
        if let Some(version) = version {
            options = options.with_api_version(version);
        }
        let sent = sent(&AzureOpenAi::new(endpoint, options).unwrap(), &ask());
        assert_eq!((sent.method.as_str(), sent.url.as_str()), ("POST", expected));
        assert_eq!((sent.header("api-key"), sent.header("authorization")), (Some(KEY), None));
        assert!(sent.body.contains(r#""model":"my deployment""#), "{}", sent.body);
    }
    let refused = |endpoint: &str, options| AzureOpenAi::new(endpoint, options).unwrap_err().to_string();
    let error = refused(&format!("{at}/openai/deployments/d"), options(ChatCompletions));
    assert!(error.contains("names a deployment; leave the deployment out"), "{error}");
    let error = refused(at, options(Responses).with_api_version("2025&x=y"));
    assert!(error.contains("is not a version"), "{error}");
    let error = refused("x.openai.azure.com", options(Responses));
    assert!(error.contains("has no scheme"), "{error}");
}

// spec: P-21
#[test]
fn tokens_are_asked_for_before_each_request() {
    use std::sync::atomic::{AtomicU32, Ordering};

    let asked = AtomicU32::new(0);
    let source = move || -> archon_types::BoxFuture<'static, _> {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(Secret::new(format!("canary-token-{number}\n"))) })
    };
    let auth = AzureAuth::BearerFrom(Arc::new(source));
    let provider = AzureOpenAi::new(BASE_URL, options(AzureApi::Responses).with_auth(auth)).unwrap();
    for number in 0..3 {
        let sent = sent(&provider, &ask());
        let bearer = format!("Bearer canary-token-{number}");
        assert_eq!((sent.header("authorization"), sent.header("api-key")), (Some(bearer.as_str()), None));
    }
    let error = once(&provider, &ask(), &Fixture::json(401, r#"{"message":"canary-token-3 has expired"}"#));
    assert_eq!(error.end, Err(ProviderError::Auth("**** has expired".into()).or_status(401)));

    let fixed = options(AzureApi::ChatCompletions).with_api_key("t").with_auth(AzureAuth::Bearer);
    let sent = sent(&AzureOpenAi::new(BASE_URL, fixed).unwrap(), &ask());
    assert_eq!(sent.header("authorization"), Some("Bearer t"));
}

// spec: P-16, P-21
#[test]
fn a_deployment_named_as_its_model_is_sent_nothing_that_the_model_refuses() {
    let body = |model: &str| {
        let mut request = ask();
        request.model = model.to_owned();
        let mut options = archon_types::RequestOptions::default();
        (options.temperature, options.stop) = (Some(0.5), vec!["END".into()]);
        request.options = Arc::new(options);
        sent(&chat(), &request).body
    };
    let (thinks, speaks) = (body("gpt-5-mini"), body("gpt-4.1"));
    assert!(!thinks.contains("temperature") && !thinks.contains("stop"), "{thinks}");
    assert!(speaks.contains(r#""temperature":0.5,"stop":["END"]"#), "{speaks}");
}

fn check(provider: &AzureOpenAi, events: &[&str], expected: Expect) {
    let body: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
    expected.assert_eq(&replay(provider, &ask(), &Fixture::sse(body)).line());
}

// spec: A-58, P-21
#[test]
fn chunks_with_the_results_of_filters() {
    let prompt = r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#;
    let text = r#"{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"delta":{"content":"Half"},"finish_reason":null,"index":0}],"model":"gpt-4.1-2025-04-14"}"#;
    let offsets = r#"{"choices":[{"content_filter_offsets":{"check_offset":44,"start_offset":44,"end_offset":198},"content_filter_results":{},"finish_reason":null,"index":0}],"id":"","model":""}"#;
    let filtered = r#"{"choices":[{"content_filter_results":{"violence":{"filtered":true,"severity":"medium"},"hate":{"filtered":false,"severity":"safe"}},"delta":{},"finish_reason":"content_filter","index":0}],"model":"gpt-4.1-2025-04-14"}"#;
    check(
        &chat(),
        &[prompt, text, offsets, r#"{"choices":[{"delta":{},"finish_reason":"stop","index":0}]}"#, "[DONE]"],
        expect![[r#"
            stop gpt-4.1-2025-04-14 in 0 out 0 read 0 written 0 total 0
              text "Half""#]],
    );
    check(
        &chat(),
        &[prompt, text, filtered, "[DONE]"],
        expect![[r#"
            refusal gpt-4.1-2025-04-14 in 0 out 0 read 0 written 0 total 0
              text "Half"
              because: the service's content filter stopped the answer: violence (medium)"#]],
    );
}

// spec: A-58, P-21
#[test]
fn responses_with_the_results_of_filters() {
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Half"}"#;
    let end = r#"{"type":"response.incomplete","response":{"status":"incomplete","model":"gpt-4.1","incomplete_details":{"reason":"content_filter"},"content_filters":[{"blocked":false,"source_type":"prompt","content_filter_results":{"violence":{"filtered":true}}},{"blocked":true,"source_type":"completion","content_filter_results":{"violence":{"filtered":true,"severity":"high"}}}]}}"#;
    check(
        &responses(),
        &[text, end],
        expect![[r#"
            refusal gpt-4.1 in 0 out 0 read 0 written 0 total 0
              text "Half"
              because: the service's content filter stopped the answer: violence (high)"#]],
    );
}

// spec: P-21, P-31
#[test]
fn errors_are_classified_by_status_body_and_header() {
    let filtered = json!({"error": {
        "message": "The prompt triggered the content management policy.", "type": null, "param": "prompt",
        "code": "content_filter", "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {
            "hate": {"filtered": false, "severity": "safe"},
            "jailbreak": {"filtered": true, "detected": true},
        }},
    }});
    let error = |code: &str, message: &str| json!({"error": {"code": code, "message": message}});
    let table = [
        (401, error("401", "Access denied due to invalid subscription key"), "auth"),
        (401, json!({"statusCode": 401, "message": "Unauthorized. Access token is missing"}), "auth"),
        (404, error("DeploymentNotFound", "The API deployment for this resource does not exist."), "api"),
        (404, error("404", "Resource not found"), "api"),
        (429, error("429", "Requests to the service have exceeded the token rate limit"), "rate_limited"),
        (
            400,
            error("context_length_exceeded", "This model's maximum context length is 8192 tokens"),
            "context_overflow",
        ),
        (400, filtered.clone(), "api"),
        (503, error("InternalServerError", "busy"), "overloaded"),
    ];
    for provider in [chat(), responses()] {
        for (status, body, code) in &table {
            let fixture = Fixture::json(*status, body.to_string()).header("retry-after", "7");
            let error = once(&provider, &ask(), &fixture).end.unwrap_err();
            assert_eq!(error.code().as_str(), *code, "{status} {body}: {error}");
            if *status == 429 {
                assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
            }
        }
        let refused = once(&provider, &ask(), &Fixture::json(400, filtered.to_string())).end;
        let expected = ProviderError::Api {
            status: 400,
            kind: ApiErrorKind::ContentFiltered,
            message: "The prompt triggered the content management policy. (jailbreak)".into(),
        };
        assert_eq!(refused, Err(expected));
    }
}

// spec: P-05, P-21
#[test]
fn the_key_is_never_shown() {
    let echo = json!({"error": {"message": format!("the key {KEY} is wrong")}}).to_string();
    for api in [AzureApi::Responses, AzureApi::ChatCompletions] {
        let options = options(api).with_header("x-team", "canary-header");
        let provider = AzureOpenAi::new(BASE_URL, options.clone()).unwrap();
        let mut shown = format!("{provider:?} {options:?}");
        let mut fixtures: Vec<_> = [401, 400, 429, 500, 200].map(|s| Fixture::json(s, echo.clone())).into();
        fixtures.push(Fixture::sse(format!("data: {echo}\n\n")));
        fixtures.push(Fixture::sse(format!("data: garbage {KEY}\n\n")));
        for fixture in fixtures {
            let error = once(&provider, &ask(), &fixture).end.unwrap_err();
            shown += &format!("{error} {error:?}\n");
        }
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains("the key **** is wrong"), "{shown}");
        let heard = once(&provider, &ask(), &Fixture::sse("data: {}\n\n")).end;
        assert!(heard.is_err_and(|e| e.code().as_str() == "network"));
        assert_eq!(provider.id(), "azure");
    }
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut stream = chat().stream(ask(), cancel);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let end = runtime.block_on(std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)));
    assert!(matches!(end, Some(Ok(ModelEvent::Done(m))) if m.stop_reason == StopReason::Aborted));
}
