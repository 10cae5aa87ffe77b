//! Tests of the address and the token, and that neither is shown; the protocol itself is tested with Gemini.

use std::sync::atomic::{AtomicUsize, Ordering};

use archon_testkit::VirtualClock;
use archon_types::{
    AssistantMessage, Content, Message, ModelEvent, ProviderError, Secret, Timestamp, ToolCall, ToolResult,
};
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, once, replay, sent};

/// Returns a source with numbered tokens.
fn tokens() -> TokenSource {
    let count = Arc::new(AtomicUsize::new(0));
    Arc::new(move || {
        let n = count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            // Fetching takes a while.
            tokio::task::yield_now().await;
            Ok(Secret::new(format!("ya29.canary-{n}\n")))
        })
    })
}

fn provider(token: TokenSource) -> Vertex {
    let options = VertexOptions::default().with_base_url(BASE_URL).with_clock(Arc::new(VirtualClock::new()));
    Vertex::new(&VertexPlace::new("my-project", "europe-west4"), token, options).unwrap()
}

fn ask() -> Request {
    Request::new("gemini-2.5-pro", vec![])
}

// spec: P-25
#[test]
fn each_request_asks_for_a_token_and_goes_to_the_region() {
    let provider = provider(tokens());
    let first = sent(&provider, &ask());
    assert_eq!(
        first.url,
        format!(
            "{BASE_URL}/v1/projects/my-project/locations/europe-west4/publishers/google/models/\
             gemini-2.5-pro:streamGenerateContent?alt=sse"
        )
    );
    assert_eq!(first.header("authorization"), Some("Bearer ya29.canary-0"));
    assert_eq!(sent(&provider, &ask()).header("authorization"), Some("Bearer ya29.canary-1"));
    for (location, host) in [
        ("us-central1", "https://us-central1-aiplatform.googleapis.com/v1/projects/p/"),
        ("global", "https://aiplatform.googleapis.com/v1/projects/p/"),
        ("eu", "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/"),
    ] {
        let options = VertexOptions::default();
        let provider = Vertex::new(&VertexPlace::new("p", location), tokens(), options).unwrap();
        assert!(format!("{provider:?}").contains(host), "{provider:?}");
    }
    let wrong = Vertex::new(&VertexPlace::new("a/b", "global"), tokens(), VertexOptions::default());
    assert_eq!(wrong.unwrap_err().to_string(), "the project: \"a/b\" is not a valid name");
}

// spec: P-23, P-25, A-58
#[test]
fn vertex_stream_is_decoded_and_generated_ids_name_the_service() {
    let call = json!([{"functionCall": {"name": "add", "args": {"a": 1}}}]);
    let chunk =
        json!({"responseId": "r1", "candidates": [{"content": {"parts": call}, "finishReason": "STOP"}]});
    let heard = replay(&provider(tokens()), &ask(), &Fixture::sse(format!("data: {chunk}\n\n")));
    assert_eq!(heard.line().lines().last(), Some("  call vertex-fc-r1-0 add {\"a\":1}"));
}

// spec: P-23, P-25, P-39
#[test]
fn ids_of_calls_go_back_only_if_the_service_gave_them_to_a_model_that_takes_them() {
    let at = Timestamp::default();
    let turn = |id: &str, provider: &str| {
        let call = ToolCall::new(id, "add", json!({"a": 1}));
        let content = vec![Content::from(call.clone())];
        let answer = AssistantMessage { content, provider: provider.into(), ..AssistantMessage::default() };
        [Message::Assistant(answer), Message::tool_result(&call, &ToolResult::success("2"), at)]
    };
    let turns = [turn("call_1", "openai"), turn("fc-7", "vertex"), turn("vertex-fc-r1-0", "vertex")];
    let messages: Vec<_> = [Message::user("hi", at)].into_iter().chain(turns.into_iter().flatten()).collect();
    let vertex = provider(tokens());
    let gemini = crate::Gemini::new(BASE_URL, crate::GeminiOptions::default()).unwrap();
    let mut request = Request::new("gemini-2.5-pro", messages);
    // The encoded text is cached with the conversation, which all requests share.
    for _ in 0..2 {
        let ids = |body: String| ["call_1", "fc-7", "vertex-fc-r1-0"].map(|id| body.matches(id).count());
        request.model = "gemini-2.5-pro".into();
        assert_eq!(ids(sent(&vertex, &request).body), [0, 0, 0]);
        assert_eq!(ids(sent(&gemini, &request).body), [2, 2, 0]);
        request.model = "gemini-3-pro-preview".into();
        assert_eq!(ids(sent(&vertex, &request).body), [0, 2, 0]);
        assert_eq!(ids(sent(&gemini, &request).body), [2, 2, 0]);
    }
}

// spec: P-05, P-25
#[test]
fn a_token_is_never_shown_and_without_one_nothing_is_sent() {
    let provider = provider(tokens());
    let mut shown = format!("{provider:?}");
    for n in 0..4 {
        let echo = json!({"error": {"code": 401, "message": format!("the token ya29.canary-{n} is wrong")}});
        let error = once(&provider, &ask(), &Fixture::json(401, echo.to_string())).end.unwrap_err();
        assert_eq!(error.code().as_str(), "auth");
        shown += &format!("{error} {error:?}");
    }
    assert!(!shown.contains("canary") && shown.contains("the token **** is wrong"), "{shown}");
    let none: TokenSource =
        Arc::new(|| Box::pin(async { Err(ProviderError::Auth("no credentials".into())) }));
    let error = once(&self::provider(none), &ask(), &Fixture::json(200, "{}")).end.unwrap_err();
    assert_eq!(error, ProviderError::Auth("no credentials".into()));
    let broken: TokenSource = Arc::new(|| Box::pin(async { Ok(Secret::from("can\nary")) }));
    let error = once(&self::provider(broken), &ask(), &Fixture::json(200, "{}")).end.unwrap_err();
    assert_eq!(error.code().as_str(), "auth");
    assert!(!error.to_string().contains("ary"), "{error}");
}

// spec: P-35, P-41
#[tokio::test]
async fn waiting_for_a_token_can_be_cancelled() {
    let never: TokenSource = Arc::new(|| Box::pin(std::future::pending()));
    let cancel = CancellationToken::new();
    let mut events = provider(never).stream(ask(), cancel.clone());
    let waiting = tokio::spawn(async move { std::future::poll_fn(|cx| events.as_mut().poll_next(cx)).await });
    tokio::task::yield_now().await;
    cancel.cancel();
    let Some(Ok(ModelEvent::Done(message))) = waiting.await.unwrap() else { panic!("no end") };
    assert_eq!(message.stop_reason, archon_types::StopReason::Aborted);
}
