//! Wrappers around a scripted model: what is asked again, of whom, when, and what is never asked twice.

// A test that cannot go on panics, its helpers included.
#![allow(clippy::unwrap_used)]

#[path = "wrappers/cassettes.rs"]
mod cassettes;

use std::{future::poll_fn, sync::Arc, time::Duration};

use archon_providers::{
    CachingProvider, FallbackProvider, KeyRotationProvider, RateLimitProvider, RateLimiter, RetryProvider,
    ScriptedProvider, Step, ThinkingTagsProvider,
};
use archon_testkit::VirtualClock;
use archon_types::{
    ApiErrorKind, AssistantMessage, BoxStream, CancellationToken, Capabilities, Clock, Content, Media,
    Message, ModelEvent, Provider, ProviderError, Reads, Request, RetryConfig, StopReason, Timestamp, Usage,
    UserMessage,
};

type Events = BoxStream<'static, Result<ModelEvent, ProviderError>>;

fn ask(text: &str) -> Request {
    Request::new("m", vec![Message::user(text, Timestamp::default())])
}

fn start(provider: &dyn Provider) -> Events {
    provider.stream(ask("hi"), CancellationToken::new())
}

async fn next(events: &mut Events) -> Option<Result<ModelEvent, ProviderError>> {
    poll_fn(|cx| events.as_mut().poll_next(cx)).await
}

async fn all(mut events: Events) -> Vec<Result<ModelEvent, ProviderError>> {
    let mut all = Vec::new();
    while let Some(event) = next(&mut events).await {
        all.push(event);
    }
    all
}

async fn end(events: Events) -> Result<AssistantMessage, ProviderError> {
    match all(events).await.pop().unwrap() {
        Ok(ModelEvent::Done(message)) => Ok(*message),
        Err(error) => Err(error),
        other => panic!("no end: {other:?}"),
    }
}

async fn says(provider: &dyn Provider) -> Result<String, ProviderError> {
    end(start(provider)).await.map(|message| message.text())
}

fn limited(seconds: Option<u64>) -> Step {
    let retry_after = seconds.map(Duration::from_secs);
    Step::error(ProviderError::RateLimited { retry_after, message: "slow down".into() })
}

fn broken() -> Step {
    Step::error(ProviderError::Network("reset".into()))
}

fn refused(kind: ApiErrorKind) -> Step {
    Step::error(ProviderError::Api { status: 400, kind, message: "no".into() })
}

/// A failure after the model has begun to speak.
fn breaks_off() -> Step {
    let said = ModelEvent::TextDelta("half".into());
    Step::events(vec![Ok(ModelEvent::Start), Ok(said), Err(ProviderError::Network("reset".into()))])
}

fn shared(script: impl IntoIterator<Item = Step>) -> (ScriptedProvider, Arc<ScriptedProvider>) {
    let model = ScriptedProvider::new(script);
    (model.clone(), Arc::new(model))
}

// spec: P-32
#[tokio::test]
async fn failures_that_may_pass_are_asked_again_after_the_delays_of_the_config() {
    let timeout = || Step::error(ProviderError::Timeout("silence".into()));
    let ok = || Step::text("yes");
    let exact = [1000, 2000, 4000];
    for (script, waited, calls, expected) in [
        (vec![ok()], 0, 1, Ok("yes")),
        (vec![broken(), ok()], exact[0], 2, Ok("yes")),
        (vec![broken(), limited(Some(7)), ok()], exact[0] + 7000, 3, Ok("yes")),
        (vec![broken(), broken(), broken(), ok()], exact.iter().sum(), 4, Ok("yes")),
        (vec![broken(), broken(), broken(), broken(), ok()], exact.iter().sum(), 4, Err("network")),
        (vec![timeout(), ok()], exact[0], 2, Ok("yes")),
        (vec![timeout(), timeout(), ok()], exact[0], 2, Err("timeout")),
        (vec![Step::error(ProviderError::Auth("no".into())), ok()], 0, 1, Err("auth")),
        (vec![breaks_off(), ok()], 0, 1, Err("network")),
    ] {
        let clock = VirtualClock::jumping();
        let begun = clock.now();
        let (model, inner) = shared(script);
        let retrying = RetryProvider::new(inner, Arc::new(clock.clone()));
        let said = says(&retrying).await;
        assert_eq!(said.as_deref().map_err(|error| error.code().as_str()), expected);
        assert_eq!(clock.now().since(begun).as_millis(), waited);
        assert_eq!(model.call_count(), calls);
    }
}

// spec: P-32
#[tokio::test]
async fn jitter_is_drawn_by_the_caller_and_nothing_is_retried_without_retries() {
    let clock = VirtualClock::jumping();
    let begun = clock.now();
    let (_, inner) = shared([broken(), Step::text("yes")]);
    let retrying = RetryProvider::new(inner, Arc::new(clock.clone())).with_jitter(|| -1.0);
    assert_eq!(says(&retrying).await.unwrap(), "yes");
    assert_eq!(clock.now().since(begun), Duration::from_millis(800));

    let (model, inner) = shared([broken(), Step::text("yes")]);
    let retrying = RetryProvider::new(inner, Arc::new(clock)).with_config(RetryConfig::none());
    assert!(says(&retrying).await.is_err());
    assert_eq!(model.call_count(), 1);
}

// spec: P-32
#[tokio::test]
async fn retries_are_not_stacked() {
    let clock = Arc::new(VirtualClock::jumping());
    let (model, inner) = shared(std::iter::repeat_with(broken).take(20));
    let once = RetryProvider::new(inner, clock.clone());
    assert!(once.capabilities("m").retries);
    let twice = RetryProvider::new(Arc::new(once), clock);
    assert!(says(&twice).await.is_err());
    assert_eq!(model.call_count(), 4);
}

// spec: P-06, P-32
#[tokio::test]
async fn retry_provider_emits_one_start_event_for_all_attempts() {
    let begun = || Step::events(vec![Ok(ModelEvent::Start), Err(ProviderError::Network("reset".into()))]);
    let (_, inner) = shared([begun(), begun(), Step::text("yes")]);
    let retrying = RetryProvider::new(inner, Arc::new(VirtualClock::jumping()));
    let events = all(start(&retrying)).await;
    assert_eq!(events.len(), 3, "{events:?}");
    assert_eq!(events[0], Ok(ModelEvent::Start));
}

// spec: P-41
#[tokio::test]
async fn cancelling_ends_a_wait_at_once() {
    let clock = VirtualClock::new();
    let (model, inner) = shared([broken(), Step::text("yes")]);
    let retrying = RetryProvider::new(inner, Arc::new(clock.clone()));
    let cancel = CancellationToken::new();
    let call = tokio::spawn(end(retrying.stream(ask("hi"), cancel.clone())));
    clock.until_asleep(1).await;
    cancel.cancel();
    let message = call.await.unwrap().unwrap();
    assert_eq!((message.stop_reason, message.model.as_str()), (StopReason::Aborted, "m"));
    assert_eq!(model.call_count(), 1);
}

// spec: P-31
#[tokio::test]
async fn another_model_is_asked_where_it_may_help() {
    for (failure, helps) in [
        (broken(), true),
        (limited(None), true),
        (refused(ApiErrorKind::NotFound), true),
        (Step::error(ProviderError::Auth("no".into())), true),
        (refused(ApiErrorKind::ContentFiltered), false),
        (Step::error(ProviderError::ContextOverflow("long".into())), false),
        (Step::error(ProviderError::Cancelled), false),
        (breaks_off(), false),
    ] {
        let (_, first) = shared([failure]);
        let (second, third) = (shared([broken()]).1, shared([Step::text("third")]).1);
        let others = vec![(second as Arc<dyn Provider>, "m2".to_owned()), (third, "m3".to_owned())];
        let chain = FallbackProvider::new(first, others);
        match end(start(&chain)).await {
            Ok(message) => {
                assert!(helps);
                assert_eq!((message.text().as_str(), message.model.as_str()), ("third", "m3"));
            }
            Err(error) => assert!(!helps, "{error}"),
        }
    }
    let (_, only) = shared([broken()]);
    assert_eq!(says(&FallbackProvider::new(only, vec![])).await.unwrap_err().code().as_str(), "network");
}

// spec: EX-16, ER-09
#[tokio::test]
async fn fallback_provider_skips_models_for_pictures_and_not_for_sounds() {
    let sound = Media::of_type(b"RIFF....WAVE", "audio/wav", None).unwrap();
    let picture = Media::new(b"\x89PNG\r\n\x1a\n", None).unwrap();
    for (medium, answers) in [(sound, true), (picture, false)] {
        let (_, first) = shared([broken()]);
        let mut blind = Capabilities::default();
        blind.reads = Reads { images: Some(false), pdfs: Some(false) };
        let other = Arc::new(ScriptedProvider::texts(["Heard."]).with_capabilities(blind));
        let chain = FallbackProvider::new(first, vec![(other as Arc<dyn Provider>, "n".to_owned())]);
        let message = UserMessage::of_blocks(vec![medium.into()], Timestamp::default());
        let request = Request::new("m", vec![Message::User(message)]);
        let answer = end(chain.stream(request, CancellationToken::new())).await;
        assert_eq!(answer.is_ok(), answers, "{answer:?}");
    }
}

#[test]
fn fallback_provider_capabilities_are_the_intersection_of_its_models() {
    let mut text_only = Capabilities::default();
    (text_only.native_tools, text_only.context_window) = (false, Some(8000));
    let first = Arc::new(ScriptedProvider::new([]));
    let other = Arc::new(ScriptedProvider::new([]).with_capabilities(text_only));
    let chain = FallbackProvider::new(first, vec![(other as Arc<dyn Provider>, "n".to_owned())]);
    assert_eq!(chain.capabilities("m"), text_only);
}

#[tokio::test]
async fn key_rotation_moves_to_the_next_key_after_a_refusal_and_keeps_it() {
    let auth = || Step::error(ProviderError::Auth("no".into()));
    let ok = || Step::text("yes");
    let (a, first) = shared([auth(), ok()]);
    let (b, second) = shared([refused(ApiErrorKind::Quota), limited(None)]);
    let (c, third) = shared([ok(), ok(), limited(Some(60))]);
    let rotating = KeyRotationProvider::new(first, vec![second as Arc<dyn Provider>, third]);
    assert_eq!(says(&rotating).await.unwrap(), "yes");
    assert_eq!(says(&rotating.clone()).await.unwrap(), "yes");
    assert_eq!([a.call_count(), b.call_count(), c.call_count()], [1, 1, 2]);
    // The third is limited, so the first comes again.
    assert_eq!(says(&rotating).await.unwrap(), "yes");
    assert_eq!([a.call_count(), b.call_count(), c.call_count()], [2, 1, 3]);
}

#[tokio::test]
async fn key_rotation_tries_each_key_once_and_only_after_auth_failures() {
    let (a, first) = shared([limited(None), broken()]);
    let (b, second) = shared([limited(None), limited(None)]);
    let rotating = KeyRotationProvider::new(first, vec![second as Arc<dyn Provider>]);
    assert_eq!(says(&rotating).await.unwrap_err().code().as_str(), "rate_limited");
    assert_eq!([a.call_count(), b.call_count()], [1, 1]);
    assert_eq!(says(&rotating).await.unwrap_err().code().as_str(), "network");
    assert_eq!([a.call_count(), b.call_count()], [2, 2]);
}

fn is_waiting(events: &mut Events) -> bool {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    events.as_mut().poll_next(&mut cx).is_pending()
}

// spec: ER-11
#[tokio::test]
async fn calls_wait_in_order_for_the_limit() {
    let clock = VirtualClock::new();
    let (model, inner) = shared(std::iter::repeat_with(|| Step::text("yes")).take(9));
    let limiter = RateLimiter::per_minute(2, Arc::new(clock.clone()));
    let limited = RateLimitProvider::new(inner, limiter);
    let mut calls: Vec<Events> = (0..5).map(|_| start(&limited)).collect();
    let waiting = |calls: &mut Vec<Events>| {
        calls.iter_mut().map(|call| if is_waiting(call) { 'w' } else { 'a' }).collect::<String>()
    };
    // Two at once, then one every half minute, whoever asked first.
    assert_eq!(waiting(&mut calls), "aawww");
    clock.advance(Duration::from_millis(29_999));
    calls.drain(..2);
    assert_eq!(waiting(&mut calls), "www");
    clock.advance(Duration::from_millis(1));
    assert_eq!(waiting(&mut calls), "aww");
    // Who leaves the queue takes no token.
    drop(calls.remove(1));
    clock.advance(Duration::from_secs(30));
    assert_eq!(waiting(&mut calls), "aa");
    assert_eq!(model.call_count(), 4);
    // An idle minute fills the bucket and no more.
    clock.advance(Duration::from_secs(600));
    let mut calls: Vec<Events> = (0..3).map(|_| start(&limited)).collect();
    assert_eq!(waiting(&mut calls), "aaw");
}

// spec: P-41
#[tokio::test]
async fn a_call_that_waits_for_the_limit_can_be_cancelled() {
    let clock = VirtualClock::new();
    let (model, inner) = shared([Step::text("yes"), Step::text("yes")]);
    let limited = RateLimitProvider::new(inner, RateLimiter::per_minute(1, Arc::new(clock.clone())));
    assert_eq!(says(&limited).await.unwrap(), "yes");
    let cancel = CancellationToken::new();
    let call = tokio::spawn(end(limited.stream(ask("hi"), cancel.clone())));
    clock.until_asleep(1).await;
    cancel.cancel();
    assert_eq!(call.await.unwrap().unwrap().stop_reason, StopReason::Aborted);
    assert_eq!(model.call_count(), 1);
}

// spec: ER-12
#[tokio::test]
async fn the_same_question_is_answered_once() {
    let usage = Usage { input: 5, output: 2, ..Usage::default() };
    let (model, inner) = shared((0..9).map(|n| Step::text(format!("answer {n}")).with_usage(usage)));
    let cached = CachingProvider::new(inner).with_capacity(2);
    let answer = async |text: &str, at: u64| {
        let messages = vec![Message::user(text, Timestamp::from_millis(at))];
        let message =
            end(cached.stream(Request::new("m", messages), CancellationToken::new())).await.unwrap();
        (message.text(), message.usage.input)
    };
    assert_eq!(answer("a", 1).await, ("answer 0".into(), 5));
    // At another time it is the same question, and nothing is paid for it.
    assert_eq!(answer("a", 2).await, ("answer 0".into(), 0));
    assert_eq!(answer("b", 1).await, ("answer 1".into(), 5));
    assert_eq!(answer("a", 1).await, ("answer 0".into(), 0));
    // There is room for two: what was not wanted for the longest time goes.
    assert_eq!(answer("c", 1).await, ("answer 2".into(), 5));
    assert_eq!(cached.len(), 2);
    assert_eq!(answer("a", 1).await, ("answer 0".into(), 0));
    assert_eq!(answer("b", 1).await, ("answer 3".into(), 5));
    assert_eq!(model.call_count(), 4);
    cached.clear();
    assert!(cached.is_empty());
}

#[tokio::test]
async fn caching_provider_stores_complete_answers_and_replays_equal_events() {
    let cut = Step::text("cut").with_stop_reason(StopReason::Length);
    let (_, inner) = shared([broken(), cut, breaks_off(), Step::text("one two"), Step::text("other")]);
    let cached = CachingProvider::new(inner);
    for _ in 0..3 {
        let _ = all(start(&cached)).await;
        assert!(cached.is_empty());
    }
    assert_eq!(all(start(&cached)).await, all(start(&cached)).await);
    // An answer that nobody heard to its end is not kept.
    let mut other = cached.stream(ask("other"), CancellationToken::new());
    assert_eq!(next(&mut other).await, Some(Ok(ModelEvent::Start)));
    drop(other);
    assert_eq!(cached.len(), 1);
}

// spec: P-36
#[tokio::test]
async fn thinking_in_the_text_is_split_off_in_deltas_and_message_alike() {
    let native = Content::Thinking { thinking: "native".into(), signature: Some("s".into()) };
    for (said, text, thinking) in [
        (vec![Content::text("<think>let me see</think> the answer")], "the answer", "let me see"),
        (vec![Content::text("no tags at all")], "no tags at all", ""),
        (vec![native.clone(), Content::text("<think>again</think>yes")], "yes", "native"),
        (vec![Content::text("<thinking>never closed")], "", "never closed"),
    ] {
        let signed = said.contains(&native);
        let (_, inner) = shared([Step::content(said)]);
        let events = all(start(&ThinkingTagsProvider::new(inner))).await;
        let (mut text_deltas, mut thinking_deltas) = (String::new(), String::new());
        let mut message = AssistantMessage::default();
        for event in events {
            match event.unwrap() {
                ModelEvent::TextDelta(text) => text_deltas += &text,
                ModelEvent::ThinkingDelta(text) => thinking_deltas += &text,
                ModelEvent::Done(done) => message = *done,
                _ => {}
            }
        }
        assert_eq!((text_deltas.as_str(), thinking_deltas.as_str()), (text, thinking));
        assert_eq!(message.text(), text);
        let thought = message.content.iter().find_map(|block| match block {
            Content::Thinking { thinking, signature } => Some((thinking.as_str(), signature.is_some())),
            _ => None,
        });
        assert_eq!(thought.unwrap_or_default(), (thinking, signed));
    }
}
