//! What a provider is asked, why it may fail, and how long a retry waits.

use std::time::Duration;

use archon_types::{
    ApiErrorKind, CredentialKey, FailureKind, Message, ProviderError, Request, RequestOptions,
    ResponseFormat, RetryConfig, Secret, ThinkingLevel, ToolChoice,
};
use expect_test::expect;
use serde_json::json;

use crate::support::{at, names, round_trip};

// spec: T-32, T-34
#[test]
fn thinking_levels() {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off};
    let all = [Off, Minimal, Low, Medium, High];
    names(&all, "off minimal low medium high");
    assert!(all.is_sorted());
    assert_eq!(ThinkingLevel::default(), Off);
}

// spec: T-33
#[test]
fn request_options() {
    round_trip(&RequestOptions::default(), &expect![[r#"{"tool_choice":"auto","thinking":"off"}"#]]);
    let mut options = RequestOptions::default();
    options.max_tokens = Some(100);
    options.temperature = Some(0.2);
    options.seed = Some(u64::MAX);
    options.stop = vec!["END".into()];
    options.tool_choice = ToolChoice::Tool("calculator".into());
    options.thinking = ThinkingLevel::Low;
    options.response_format = Some(ResponseFormat { name: "n".into(), schema: json!({"type": "object"}) });
    round_trip(
        &options,
        &expect![[
            r#"{"max_tokens":100,"temperature":0.2,"seed":18446744073709551615,"stop":["END"],"tool_choice":{"tool":"calculator"},"thinking":"low","response_format":{"name":"n","schema":{"type":"object"}}}"#
        ]],
    );
}

#[test]
fn a_clone_of_a_request_shares_its_messages() {
    let request = Request::new("m", vec![Message::user("hi", at(1))]);
    let clone = request.clone();
    assert!(std::sync::Arc::ptr_eq(&request.messages, &clone.messages));
    assert_eq!(clone.messages[0].text(), "hi");
}

// spec: P-31
#[test]
fn provider_error_is_retryable_by_kind() {
    let wait = Some(Duration::from_secs(7));
    let text = || "text".to_owned();
    let api = |kind| ProviderError::Api { status: 400, kind, message: text() };
    let table: [(ProviderError, &str, bool, Option<Duration>); 14] = [
        (
            ProviderError::RateLimited { retry_after: wait, message: text().into() },
            "rate_limited",
            true,
            wait,
        ),
        (
            ProviderError::RateLimited { retry_after: None, message: text().into() },
            "rate_limited",
            true,
            None,
        ),
        (
            ProviderError::Overloaded { status: 529, retry_after: wait, message: text() },
            "overloaded",
            true,
            wait,
        ),
        (ProviderError::Network(text().into()), "network", true, None),
        (ProviderError::Unreachable(text().into()), "unreachable", false, None),
        (ProviderError::Timeout(text().into()), "timeout", true, None),
        (ProviderError::Auth(text().into()), "auth", false, None),
        (api(ApiErrorKind::InvalidRequest), "api", false, None),
        (api(ApiErrorKind::NotFound), "api", false, None),
        (api(ApiErrorKind::ContentFiltered), "api", false, None),
        (ProviderError::ContextOverflow(text().into()), "context_overflow", false, None),
        (ProviderError::Protocol(text().into()), "protocol", false, None),
        (ProviderError::Cancelled, "cancelled", false, None),
        (ProviderError::Other(text().into()), "other", false, None),
    ];
    for (error, code, retryable, retry_after) in table {
        assert_eq!(
            (error.code().as_str(), error.is_retryable(), error.retry_after()),
            (code, retryable, retry_after),
            "{error:?}"
        );
        assert!(error == ProviderError::Cancelled || error.to_string().contains("text"), "{error}");
    }
}

// spec: P-32
#[test]
fn delays_grow_to_the_ceiling_and_jitter_comes_after_it() {
    let config = RetryConfig::default();
    assert_eq!((config.max_retries, RetryConfig::none().max_retries), (3, 0));
    round_trip(
        &config,
        &expect![[
            r#"{"max_retries":3,"initial_delay_ms":1000,"backoff_multiplier":2.0,"max_delay_ms":30000}"#
        ]],
    );
    let table: [(u32, f64, u64); 12] = [
        (0, 0.0, 1_000),
        (1, 0.0, 2_000),
        (2, 0.0, 4_000),
        (4, 0.0, 16_000),
        (5, 0.0, 30_000),
        (u32::MAX, 0.0, 30_000),
        (0, 1.0, 1_200),
        (0, -1.0, 800),
        (0, 0.5, 1_100),
        (9, 1.0, 36_000),
        (9, -1.0, 24_000),
        (0, 99.0, 1_200),
    ];
    for (attempt, jitter, ms) in table {
        let delay = config.delay_for_attempt(attempt, jitter);
        assert_eq!(delay, Duration::from_millis(ms), "attempt {attempt}, jitter {jitter}");
    }
}

// spec: P-32
#[test]
fn no_initial_delay_means_no_delay_ever() {
    let mut config = RetryConfig::default();
    config.initial_delay_ms = 0;
    assert_eq!(config.delay_for_attempt(5_000, 1.0), Duration::ZERO);
}

#[test]
fn secret_debug_and_display_hide_the_value() {
    let secret = Secret::from("sk-12345");
    let json = Secret::new(json!({"token": "sk-12345"}));
    let shown = [format!("{secret:?} {secret:#?} {secret}"), format!("{json:?} {:?}", Some(&json))].concat();
    assert!(!shown.contains("sk"), "{shown}");
    assert!(!shown.contains("token"), "{shown}");
    assert_eq!(secret.expose(), "sk-12345");
    assert_eq!(CredentialKey::primary("acme".into(), "github").account, "primary");
}

// spec: P-07
#[test]
fn cache_hints_are_on_by_default_and_the_default_is_not_written() {
    use archon_types::{CacheConfig, CacheStrategy, CachedParts, RequestOptions};

    let mut options = RequestOptions::default();
    assert_eq!(options.cache.parts(), CachedParts { system: true, tools: true, messages: true });
    let text = serde_json::to_string(&options).unwrap();
    assert!(!text.contains("cache"), "logs of before keep their hashes: {text}");
    assert_eq!(CacheConfig::off().parts(), CachedParts::default());

    let parts = CachedParts { tools: true, ..CachedParts::default() };
    options.cache = CacheConfig::new(CacheStrategy::Manual(parts));
    let text = serde_json::to_string(&options).unwrap();
    let manual = r#""manual":{"cache_system":false,"cache_tools":true,"cache_messages":false}"#;
    assert!(text.contains(manual), "{text}");
    assert_eq!(serde_json::from_str::<RequestOptions>(&text).unwrap(), options);
    assert_eq!(options.cache.parts(), parts);
    options.cache.enabled = false;
    assert_eq!(options.cache.parts(), CachedParts::default());
}

// spec: P-31
#[test]
fn every_kind_of_error_keeps_the_http_status() {
    let text = || "text".into();
    let kinds = [
        ProviderError::RateLimited { retry_after: None, message: text() },
        ProviderError::Overloaded { status: 0, retry_after: None, message: "text".into() },
        ProviderError::Api { status: 0, kind: ApiErrorKind::Other, message: "text".into() },
        ProviderError::Network(text()),
        ProviderError::Unreachable(text()),
        ProviderError::Timeout(text()),
        ProviderError::Auth(text()),
        ProviderError::ContextOverflow(text()),
        ProviderError::Protocol(text()),
        ProviderError::Other(text()),
    ];
    for error in kinds {
        assert_eq!(error.status(), None, "{error:?}");
        let error = error.or_status(418).or_status(200).with_text(|text| format!("{text}!"));
        assert_eq!((error.status(), error.to_string().ends_with("text!")), (Some(418), true), "{error:?}");
        let failure = archon_types::ModelFailure::new(&error, 0.0);
        let json = serde_json::to_string(&failure).unwrap();
        assert!(json.contains("\"status\":418"), "{json}");
    }
}

#[test]
fn advice_to_resume_is_given_where_a_resume_may_help() {
    for kind in FailureKind::ALL {
        assert_eq!(kind.may_pass(), kind.advice().contains("resume the run"), "{kind}: {}", kind.advice());
    }
}

#[test]
fn page_of_errors_has_the_name_and_the_advice_of_each_kind() {
    let page = include_str!("../../../../docs/book/reference/errors.md");
    for kind in FailureKind::ALL {
        let start = format!("| `{kind:?}` | `{kind}` |");
        let row = page.lines().find(|line| line.starts_with(&start));
        assert!(row.is_some_and(|row| row.contains(kind.advice())), "{kind}: {row:?}");
    }
}
