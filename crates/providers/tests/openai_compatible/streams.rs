//! Answers: the same message however the stream is cut, live, and cancelled at once.

use archon_testkit::{Gate, MockResponse};
use archon_types::{Content, Encoded, StopReason, ToolSpec};
use serde_json::json;

use super::{fixtures::FIXTURES, service_streams::STREAMS, *};

/// A message in a line.
fn line(message: &AssistantMessage) -> String {
    let reason = match message.stop_reason {
        StopReason::Stop => "stop",
        StopReason::StopSequence => "sequence",
        StopReason::Refusal => "refusal",
        StopReason::Length => "length",
        StopReason::ToolUse => "tools",
        StopReason::Error => "error",
        _ => "aborted",
    };
    let usage = message.usage;
    let mut line = format!(
        "{reason} {} in {} out {} cached {}:",
        message.model, usage.input, usage.output, usage.cache_read
    );
    if usage.cache_write > 0 {
        line += &format!(" written {}", usage.cache_write);
    }
    if let Some(text) = &message.stop_sequence {
        line += &format!(" ended by {text:?}");
    }
    for block in &message.content {
        line += &match block {
            Content::Text { text } => format!(" text {text:?}"),
            Content::Thinking { thinking, .. } => format!(" thinking {thinking:?}"),
            Content::ToolCall(call) => match &call.malformed {
                None => format!(" call {} {} {}", call.id, call.name, call.arguments),
                Some(malformed) => format!(" call {} {} malformed {:?}", call.id, call.name, malformed.text),
            },
            other => format!(" {other:?}"),
        };
    }
    line
}

fn ask_with_tools() -> Request {
    let mut request = ask();
    let schema = json!({"type": "object"});
    let tools = ["files.read", "add"].map(|name| ToolSpec::new(name, "A tool.", schema.clone()));
    request.tools = Arc::new(Encoded::new(tools.to_vec()));
    request
}

/// Checks that the deltas together equal the message.
fn check_deltas(events: &[ModelEvent], message: &AssistantMessage) {
    let (mut text, mut thinking) = (String::new(), String::new());
    let mut calls: Vec<(String, String, String, bool)> = Vec::new();
    assert_eq!(events.first(), Some(&ModelEvent::Start));
    for event in events {
        match event {
            ModelEvent::TextDelta(t) => text += t,
            ModelEvent::ThinkingDelta(t) => thinking += t,
            ModelEvent::ToolCallStart { index, id, name } => {
                assert_eq!(*index as usize, calls.len());
                calls.push((id.clone(), name.clone(), String::new(), false));
            }
            ModelEvent::ToolCallDelta { index, arguments } => calls[*index as usize].2 += arguments,
            ModelEvent::ToolCallEnd { index } => calls[*index as usize].3 = true,
            _ => {}
        }
    }
    let said = |of: fn(&Content) -> Option<&str>| message.content.iter().filter_map(of).collect::<String>();
    assert_eq!(text, said(Content::as_text));
    let thought = |block: &'_ Content| -> Option<String> {
        if let Content::Thinking { thinking, .. } = block { Some(thinking.clone()) } else { None }
    };
    assert_eq!(thinking, message.content.iter().filter_map(thought).collect::<String>());
    assert_eq!(calls.len(), message.tool_calls().count());
    for (call, (id, name, arguments, ended)) in message.tool_calls().zip(calls) {
        assert_eq!((call.id.as_str(), call.name.as_str(), true), (id.as_str(), name.as_str(), ended));
        match &call.malformed {
            Some(malformed) => assert_eq!(malformed.text, arguments),
            None if matches!(&*arguments, "" | "null") => assert_eq!(call.arguments, json!({})),
            None => {
                assert_eq!(call.arguments, serde_json::from_str::<serde_json::Value>(&arguments).unwrap())
            }
        }
    }
}

// spec: A-58, P-17, P-18, P-24, P-37
#[tokio::test]
async fn every_cut_gives_the_same_message() {
    for (name, body, expected) in FIXTURES.iter().chain(STREAMS) {
        let whole = MockResponse::sse(body);
        let windows = MockResponse::sse(body.replace('\n', "\r\n"));
        // A byte order mark made the parser panic; two are as possible as one.
        let marked = MockResponse::sse(format!("\u{feff}\u{feff}{body}"));
        let mut script = vec![whole.clone(), windows.clone(), marked.clone(), marked.split_every_byte()];
        script.extend([whole.split_every_byte(), windows.split_every_byte()]);
        for size in [2, 3, 7, 64] {
            let empty = MockResponse::new(200).header("content-type", "text/event-stream; charset=utf-8");
            script.push(body.as_bytes().chunks(size).fold(empty, MockResponse::chunk));
        }
        // A server that says nothing of its content is understood by what it sends.
        script.push(MockResponse::new(200).chunk(body));
        let ways = script.len();
        let server = MockServer::start(script).await;
        let provider = provider(&server);
        for way in 0..ways {
            let (events, message) = finish(start(&provider, ask_with_tools())).await;
            let message = message.unwrap_or_else(|e| panic!("{name}, way {way}: {e}"));
            assert_eq!(line(&message), *expected, "{name}, way {way}");
            check_deltas(&events, &message);
            assert_eq!(message.provider, "openai-compatible");
            assert_eq!(message.timestamp.as_millis(), 1_767_225_600_000);
            assert_eq!(message.error_message.is_some(), body.contains("content_filter"), "{name}");
        }
        // Read to its end, an answer leaves its connection to the next.
        assert!(server.requests().iter().all(|r| r.connection == 0), "{name}");
    }
}

// spec: P-24, P-31
#[tokio::test]
async fn an_answer_cut_anywhere_is_complete_or_a_network_error() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Grüße 🌍\"}}]}\n\n\
                data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n\
                data: [DONE]\n\n";
    let decided = body.find("\"stop\"}]}").unwrap() + "\"stop\"}]}".len();
    let cut = |at| MockResponse::sse(&body.as_bytes()[..at]);
    for closes in [true, false] {
        let script = (0..body.len()).map(|at| if closes { cut(at).close() } else { cut(at) });
        let server = MockServer::start(script).await;
        let provider = provider(&server);
        for at in 0..body.len() {
            match finish(start(&provider, ask())).await.1 {
                Ok(message) => {
                    assert!(at >= decided, "cut at {at}");
                    assert_eq!(message.text(), "Grüße 🌍");
                }
                Err(ProviderError::Network(_)) => assert!(at < decided, "cut at {at}"),
                Err(e) => panic!("cut at {at}: {e:?}"),
            }
        }
    }
}

// spec: P-24, P-31
#[tokio::test]
async fn an_answer_cut_between_its_two_finish_reasons_is_a_network_error() {
    let first = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let more = "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n";
    let second = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    let sent = |parts: &[&str]| MockResponse::sse(parts.concat()).close();
    let script = [sent(&[first]), sent(&[first, more]), sent(&[first, more, second])];
    let server = MockServer::start(script).await;
    let provider = provider(&server);
    let mut all = Vec::new();
    for _ in 0..3 {
        let (_, message) = finish(start(&provider, ask())).await;
        all.push(message.map_or_else(|error| error.code().as_str().to_owned(), |message| line(&message)));
    }
    let expected =
        ["stop m in 0 out 0 cached 0: text \"a\"", "network", "length m in 0 out 0 cached 0: text \"ab\""];
    assert_eq!(all, expected);
}

// spec: P-06
#[tokio::test]
async fn each_token_is_seen_before_the_next_is_sent() {
    let words = ["one ", "two ", "three ", "four"];
    let gates = words.map(|_| Gate::new());
    let mut response = MockResponse::new(200).header("content-type", "text/event-stream");
    for (word, gate) in words.iter().zip(&gates) {
        let chunk = json!({"choices": [{"delta": {"content": word}}]});
        response = response.wait(gate).event(&chunk.to_string());
    }
    response = response.event(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#).event("[DONE]");
    let server = MockServer::start([response]).await;
    let mut events = start(&provider(&server), ask());
    assert_eq!(next(&mut events).await, Some(Ok(ModelEvent::Start)));
    for (word, gate) in words.iter().zip(&gates) {
        gate.open();
        assert_eq!(next(&mut events).await, Some(Ok(ModelEvent::TextDelta((*word).to_owned()))));
    }
    assert_eq!(finish(events).await.1.unwrap().text(), words.concat());
}

// spec: P-41
#[tokio::test]
async fn stream_cancelled_keeps_the_partial_text_and_closes_the_connection() {
    let response = MockResponse::new(200)
        .header("content-type", "text/event-stream")
        .event(r#"{"choices":[{"delta":{"content":"Half an"}}]}"#)
        .event(r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"add","arguments":"{"}}]}}]}"#)
        .hang();
    let server = MockServer::start([response]).await;
    let cancel = CancellationToken::new();
    let mut events = provider(&server).stream(ask(), cancel.clone());
    while !matches!(next(&mut events).await, Some(Ok(ModelEvent::ToolCallDelta { .. }))) {}
    let canceller = tokio::spawn(async move { cancel.cancel() });
    let (rest, message) = finish(events).await;
    canceller.await.unwrap();
    let message = message.unwrap();
    assert!(rest.is_empty());
    assert_eq!(line(&message), "aborted m in 0 out 0 cached 0: text \"Half an\"");
    server.until_gone(1).await;
}

// spec: P-41
#[tokio::test]
async fn a_call_that_was_cancelled_before_it_began_sends_nothing() {
    let server = MockServer::start([]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (events, message) = finish(provider(&server).stream(ask(), cancel)).await;
    assert!(events.is_empty());
    assert_eq!(message.unwrap().stop_reason, StopReason::Aborted);
    assert!(server.requests().is_empty());
}

// spec: P-41
#[tokio::test]
async fn dropping_the_stream_or_cancelling_the_wait_closes_the_connection() {
    let begun = MockResponse::sse("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n").hang();
    let server = MockServer::start([begun, MockResponse::json(500, &json!({})).hang()]).await;
    let provider = provider(&server);
    let mut events = start(&provider, ask());
    while !matches!(next(&mut events).await, Some(Ok(ModelEvent::TextDelta(_)))) {}
    drop(events);
    server.until_gone(1).await;

    let cancel = CancellationToken::new();
    let events = provider.stream(ask(), cancel.clone());
    let asked = tokio::spawn(finish(events));
    while server.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(asked.await.unwrap().1.unwrap().stop_reason, StopReason::Aborted);
    server.until_gone(2).await;
}

// spec: P-15
#[tokio::test]
async fn a_server_that_keeps_the_connection_open_after_the_end_is_not_waited_for() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = MockServer::start([MockResponse::sse(body).hang()]).await;
    assert_eq!(answer(&server, ask()).await.unwrap().text(), "a");
    server.until_gone(1).await;
}

// spec: P-15
#[tokio::test]
async fn an_answer_that_was_not_streamed_is_understood() {
    let body = json!({
        "object": "chat.completion", "model": "m-2",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Well.", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}},
                {"id": "b", "type": "function", "function": {"name": "add", "arguments": "{}"}},
            ],
        }}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    });
    let server = MockServer::start([MockResponse::json(200, &body)]).await;
    let (events, message) = finish(start(&provider(&server), ask_with_tools())).await;
    let message = message.unwrap();
    check_deltas(&events, &message);
    assert_eq!(
        line(&message),
        "tools m-2 in 3 out 2 cached 0: text \"Well.\" call a add {\"a\":1} call b add {}"
    );
}
