//! Tests of the scripted model: its script, its history, its clock, and its end.

use std::future::poll_fn;

use archon_testkit::VirtualClock;
use archon_types::Message;

use super::*;

fn ask(text: &str) -> Request {
    Request::new("m", vec![Message::user(text, Timestamp::default())])
}

async fn all(mut stream: Events) -> Vec<Result<ModelEvent, ProviderError>> {
    let mut events = Vec::new();
    while let Some(event) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        events.push(event);
    }
    events
}

async fn say(provider: &ScriptedProvider, prompt: &str) -> Result<AssistantMessage, ProviderError> {
    let mut events = all(provider.stream(ask(prompt), CancellationToken::new())).await;
    match events.pop() {
        Some(Ok(ModelEvent::Done(message))) => Ok(*message),
        Some(Err(e)) => Err(e),
        other => panic!("{other:?}"),
    }
}

// spec: P-29, P-30
#[tokio::test]
async fn the_script_is_followed_and_then_exhausted() {
    let provider = ScriptedProvider::new([
        Step::text("one"),
        Step::error(ProviderError::Network("gone".into())),
        Step::call("c1", "add", json!({"a": 1})),
    ]);
    assert_eq!(say(&provider, "first").await.unwrap().text(), "one");
    assert_eq!(say(&provider, "x").await, Err(ProviderError::Network("gone".into())));
    let message = say(&provider, &"ä".repeat(201)).await.unwrap();
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.tool_calls().next().unwrap().arguments, json!({"a": 1}));
    let error = say(&provider, "x").await.unwrap_err();
    assert_eq!(error.to_string(), "script exhausted: call 3 of a script of 3");

    assert_eq!(provider.call_count(), 4);
    let history = provider.history();
    assert_eq!(history[0], HistoryEntry { prompt: "first".into(), call_number: 0 });
    assert_eq!(history[2].prompt, "ä".repeat(200) + "...");
    provider.reset();
    assert_eq!((provider.call_count(), provider.history()), (0, vec![]));
    assert_eq!(say(&provider, "x").await.unwrap().text(), "one");
}

// spec: P-29
#[tokio::test]
async fn an_exhausted_script_can_answer_instead() {
    let text = r#"{"action":"final","answer":"Test completed"}"#;
    let provider = ScriptedProvider::new([]).when_exhausted(text);
    for _ in 0..2 {
        assert_eq!(say(&provider, "x").await.unwrap().text(), text);
    }
}

// spec: P-29
#[tokio::test]
async fn a_reply_reads_the_request_and_text_comes_in_pieces() {
    let provider = ScriptedProvider::new([Step::reply(|r| {
        Step::thinking("so it is", format!("you said {}", r.messages[0].text()))
    })]);
    let events = all(provider.stream(ask("hi"), CancellationToken::new())).await;
    let (mut text, mut thinking) = (Vec::new(), Vec::new());
    for event in events {
        match event.unwrap() {
            ModelEvent::TextDelta(t) => text.push(t),
            ModelEvent::ThinkingDelta(t) => thinking.push(t),
            _ => {}
        }
    }
    assert_eq!(text, ["you ", "said ", "hi"]);
    assert_eq!(thinking, ["so ", "it ", "is"]);
}

// spec: P-29
#[tokio::test]
async fn a_delay_passes_on_the_clock() {
    let clock = VirtualClock::new();
    let second = Duration::from_secs(1);
    let provider =
        ScriptedProvider::new([Step::text("late").after(second)]).with_clock(Arc::new(clock.clone()));
    let due = clock.now() + second;
    let asked = tokio::spawn({
        let provider = provider.clone();
        async move { say(&provider, "x").await }
    });
    clock.until_asleep(1).await;
    assert_eq!(clock.next_deadline(), Some(due));
    assert!(!asked.is_finished());
    clock.advance(second);
    assert_eq!(asked.await.unwrap().unwrap().timestamp, due);

    let without_clock = ScriptedProvider::new([Step::text("x").after(second)]);
    assert!(say(&without_clock, "x").await.unwrap_err().to_string().contains("with_clock"));
}

// spec: P-41
#[tokio::test]
async fn stream_cancelled_keeps_the_partial_text() {
    let provider = ScriptedProvider::new([Step::text("one two three")]);
    let cancel = CancellationToken::new();
    let mut stream = provider.stream(ask("x"), cancel.clone());
    let mut next = async || poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
    assert_eq!(next().await, Some(Ok(ModelEvent::Start)));
    assert_eq!(next().await, Some(Ok(ModelEvent::TextDelta("one ".into()))));
    cancel.cancel();
    let Some(Ok(ModelEvent::Done(message))) = next().await else { panic!() };
    assert_eq!((message.text().as_str(), message.stop_reason), ("one ", StopReason::Aborted));
    assert_eq!(next().await, None);
}

// spec: P-30
#[test]
fn scripted_response_chain_uses_the_text_mode_format() {
    let steps = [
        json!({"thought": "calculate", "action": "Calculator", "args": {"x": 1}}),
        json!({"action": "Calculator", "action_input": {"x": 2}}),
        json!({"thought": "done", "action": "final", "answer": "30"}),
        json!("Final Answer: 30"),
    ];
    assert_eq!(
        response_chain(steps),
        [
            r#"{"thought":"calculate","action":"Calculator","action_input":{"x":1}}"#,
            r#"{"thought":"","action":"Calculator","action_input":{"x":2}}"#,
            r#"{"thought":"done","action":"final","answer":"30"}"#,
            "Final Answer: 30",
        ]
    );
    assert_eq!(response_chain(["plain"]), ["plain"]);
}
