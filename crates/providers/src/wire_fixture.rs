//! Replays the body of a response to a provider, whole and split at every relevant position, and checks that
//! the result is always the same.
//!
//! No socket is used: the transport calls [`answer`] before it sends anything, so tens of thousands of
//! replays are cheap. All code above the socket is the real code. Tests of sockets use the mock server of
//! the test kit.

// This is a part of tests, so it may panic.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod exchanges;
mod orders;

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use archon_types::{
    AssistantMessage, CancellationToken, Content, ModelEvent, Provider, ProviderError, StopReason,
};
use bytes::Bytes;
use http_body::Frame;

pub(crate) use orders::assert_survives;

/// The base URL of a provider under test.
pub(crate) const BASE_URL: &str = "http://localhost/base";

/// A response as a service sends it.
#[derive(Clone, Debug)]
pub(crate) struct Fixture {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    breaks_off: bool,
}

impl Fixture {
    /// Creates a body of this content type, with status 200.
    pub(crate) fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status: 200, headers, body: body.into(), breaks_off: false }
    }

    /// Creates a stream of server-sent events.
    pub(crate) fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::new("text/event-stream", body)
    }

    /// Creates a JSON body with this status.
    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, ..Self::new("application/json", body) }
    }

    /// Sets the status.
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the fixture with its first `length` bytes, after which the body ends properly.
    pub(crate) fn cut(&self, length: usize) -> Self {
        Self { body: self.body[..length].to_vec(), ..self.clone() }
    }

    /// Returns the fixture with its first `length` bytes, after which the connection breaks.
    pub(crate) fn broken(&self, length: usize) -> Self {
        Self { breaks_off: true, ..self.cut(length) }
    }

    /// Returns the number of bytes of the body.
    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }

    fn pieces(&self, sizes: impl IntoIterator<Item = usize>) -> VecDeque<Bytes> {
        let mut rest = Bytes::copy_from_slice(&self.body);
        let mut pieces = VecDeque::new();
        for size in sizes {
            if rest.is_empty() {
                break;
            }
            pieces.push_back(rest.split_to(size.min(rest.len())));
        }
        pieces.push_back(rest);
        pieces
    }
}

/// A request that was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) method: String,
    pub(crate) url: String,
    /// Names in lower case and values, in the order of the request.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Sent {
    /// Returns the first header of this lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// The result of a response: the events that the provider streamed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    /// The text of all deltas.
    pub(crate) text: String,
    pub(crate) thinking: String,
    /// The id, the name and the argument text of each call, and true if the call was closed.
    pub(crate) calls: Vec<(String, String, String, bool)>,
    pub(crate) end: Result<AssistantMessage, ProviderError>,
}

impl Heard {
    /// Returns the message in one line, or the error.
    pub(crate) fn line(&self) -> String {
        match &self.end {
            Ok(message) => line(message),
            Err(e) => format!("{}: {e}", e.code()),
        }
    }

    /// Panics unless the deltas together equal the message.
    #[track_caller]
    pub(crate) fn assert_deltas_add_up(&self) {
        let Ok(message) = &self.end else { return };
        let texts: String = message.content.iter().filter_map(Content::as_text).collect();
        assert_eq!(self.text, texts, "the text of the deltas and of the message");
        let thought = |block: &Content| match block {
            Content::Thinking { thinking, .. } => Some(thinking.clone()),
            _ => None,
        };
        let thinking: String = message.content.iter().filter_map(thought).collect();
        assert_eq!(self.thinking, thinking, "the thinking of the deltas and of the message");
        if message.stop_reason == StopReason::Aborted {
            return;
        }
        assert_eq!(self.calls.len(), message.tool_calls().count(), "{:?}", self.calls);
        for (call, (id, name, arguments, closed)) in message.tool_calls().zip(&self.calls) {
            assert_eq!((call.id.as_str(), &call.name, true), (id.as_str(), name, *closed));
            match &call.malformed {
                Some(malformed) => assert_eq!(&malformed.text, arguments),
                None if matches!(&**arguments, "" | "null") => assert_eq!(call.arguments.to_string(), "{}"),
                None => {
                    let said: archon_types::Json = serde_json::from_str(arguments).unwrap();
                    assert_eq!(call.arguments, said);
                }
            }
        }
    }
}

/// Returns a message in one line: stop reason, model, tokens, blocks.
pub(crate) fn line(message: &AssistantMessage) -> String {
    let reason = match message.stop_reason {
        StopReason::Stop => "stop",
        StopReason::Length => "length",
        StopReason::ToolUse => "tools",
        StopReason::Error => "error",
        StopReason::StopSequence => "sequence",
        StopReason::Pause => "pause",
        StopReason::Refusal => "refusal",
        _ => "aborted",
    };
    let u = message.usage;
    let mut line = format!("{reason} {} in {} out {}", message.model, u.input, u.output);
    line += &format!(" read {} written {} total {}", u.cache_read, u.cache_write, u.total_tokens);
    for block in &message.content {
        line += "\n  ";
        line += &match block {
            Content::Text { text } => format!("text {text:?}"),
            Content::Thinking { thinking, signature: None } => format!("thinking {thinking:?}"),
            Content::Thinking { thinking, signature: Some(s) } => {
                format!("thinking {thinking:?} signed {s:?}")
            }
            Content::ToolCall(call) => match &call.malformed {
                None => format!("call {} {} {}", call.id, call.name, call.arguments),
                Some(malformed) => format!("call {} {} malformed {:?}", call.id, call.name, malformed.text),
            },
            other => format!("{other:?}"),
        };
    }
    if let Some(text) = &message.stop_sequence {
        line += &format!("\n  ended by {text:?}");
    }
    if let Some(error) = &message.error_message {
        line += &format!("\n  because: {error}");
    }
    line
}

/// Replays the fixture whole, byte by byte, in chunks of a few sizes, and **split in two at every byte**.
/// Panics unless message, deltas and error are always the same; returns them.
#[track_caller]
pub(crate) fn replay<P: Provider>(provider: &P, request: &archon_types::Request, fixture: &Fixture) -> Heard {
    runtime().block_on(async {
        let whole = listen_to_pieces(provider, request, fixture).await;
        note(provider, fixture, &whole);
        for at in 1..fixture.len() {
            let heard = listen(provider, request, fixture, [at], Pace::AtOnce).await;
            assert_eq!(heard, whole, "cut in two after {at} bytes");
        }
        whole
    })
}

/// Does the same as [`replay`] without a split at every byte, for a variant of a fixture that was replayed
/// already.
#[track_caller]
pub(crate) fn replay_in_pieces<P: Provider>(
    provider: &P,
    request: &archon_types::Request,
    fixture: &Fixture,
) -> Heard {
    let heard = runtime().block_on(listen_to_pieces(provider, request, fixture));
    note(provider, fixture, &heard);
    heard
}

async fn listen_to_pieces<P: Provider>(
    provider: &P,
    request: &archon_types::Request,
    fixture: &Fixture,
) -> Heard {
    let whole = listen(provider, request, fixture, [], Pace::AtOnce).await;
    whole.assert_deltas_add_up();
    for size in [1, 2, 3, 7, 64] {
        for pace in [Pace::AtOnce, Pace::Halting] {
            let sizes = std::iter::repeat_n(size, fixture.len() / size + 1);
            let heard = listen(provider, request, fixture, sizes, pace).await;
            assert_eq!(heard, whole, "in pieces of {size} bytes, {pace:?}");
        }
    }
    whole
}

/// Replays the fixture whole, once.
pub(crate) fn once<P: Provider>(provider: &P, request: &archon_types::Request, fixture: &Fixture) -> Heard {
    let heard = runtime().block_on(listen(provider, request, fixture, [], Pace::AtOnce));
    note(provider, fixture, &heard);
    heard
}

fn note<P: Provider>(provider: &P, fixture: &Fixture, heard: &Heard) {
    CANNED.with_borrow(|canned| exchanges::note(provider.id(), canned.sent.as_ref(), fixture, heard));
}

/// Returns the HTTP request that the provider sends for this request.
pub(crate) fn sent<P: Provider>(provider: &P, request: &archon_types::Request) -> Sent {
    let _ = once(provider, request, &Fixture::json(500, "{}"));
    CANNED.with_borrow(|canned| canned.sent.clone()).expect("a request")
}

/// Replays every prefix of the fixture, with a proper end and with a broken connection. Returns each result
/// with the number of bytes that were sent.
pub(crate) fn cut_anywhere<P: Provider>(
    provider: &P,
    request: &archon_types::Request,
    fixture: &Fixture,
) -> Vec<(usize, Heard)> {
    let mut all = Vec::new();
    runtime().block_on(async {
        for at in 0..fixture.len() {
            for cut in [fixture.cut(at), fixture.broken(at)] {
                all.push((at, listen(provider, request, &cut, [], Pace::AtOnce).await));
            }
        }
    });
    all
}

/// Returns the response to a request that is about to be sent; `None` if this thread replays no fixture.
pub(crate) fn answer(request: &reqwest::Request) -> Option<reqwest::Response> {
    CANNED.with_borrow_mut(|canned| {
        let (fixture, pieces, pace) = canned.next.take()?;
        canned.sent = Some(Sent::of(request));
        let mut response = http::Response::builder().status(fixture.status);
        for (name, value) in &fixture.headers {
            response = response.header(name, value);
        }
        let (breaks_off, waits) = (fixture.breaks_off, pace == Pace::Halting);
        let body = Pieces { pieces, breaks_off, waits, waited: false };
        Some(response.body(reqwest::Body::wrap(body)).expect("a response").into())
    })
}

/// The timing of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// All chunks at once.
    AtOnce,
    /// A wait before each chunk.
    Halting,
}

#[derive(Default)]
struct Canned {
    next: Option<(Fixture, VecDeque<Bytes>, Pace)>,
    sent: Option<Sent>,
}

thread_local! {
    /// The fixture for the next request of this thread.
    static CANNED: RefCell<Canned> = RefCell::default();
}

impl Sent {
    fn of(request: &reqwest::Request) -> Self {
        let headers = request.headers().iter();
        let shown =
            |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        Self {
            method: request.method().to_string(),
            url: request.url().to_string(),
            headers: headers.map(|(name, value)| (name.to_string(), shown(value))).collect(),
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }
}

async fn listen<P: Provider>(
    provider: &P,
    request: &archon_types::Request,
    fixture: &Fixture,
    sizes: impl IntoIterator<Item = usize>,
    pace: Pace,
) -> Heard {
    let pieces = fixture.pieces(sizes);
    CANNED.with_borrow_mut(|canned| {
        *canned = Canned { next: Some((fixture.clone(), pieces, pace)), sent: None };
    });
    let mut events = provider.stream(request.clone(), CancellationToken::new());
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    let end = loop {
        let event = poll_fn(|cx| events.as_mut().poll_next(cx)).await;
        match event.expect("an end before the end of the stream") {
            Ok(ModelEvent::TextDelta(delta)) => text += &delta,
            Ok(ModelEvent::ThinkingDelta(delta)) => thinking += &delta,
            Ok(ModelEvent::ToolCallStart { index, id, name }) => {
                assert_eq!(index as usize, calls.len(), "calls are counted from 0");
                calls.push((id, name, String::new(), false));
            }
            Ok(ModelEvent::ToolCallDelta { index, arguments }) => calls[index as usize].2 += &arguments,
            Ok(ModelEvent::ToolCallEnd { index }) => calls[index as usize].3 = true,
            Ok(ModelEvent::Done(message)) => break Ok(*message),
            Ok(_) => {}
            Err(e) => break Err(e),
        }
    };
    let more = poll_fn(|cx| events.as_mut().poll_next(cx)).await;
    assert!(more.is_none(), "{more:?} after the end {end:?}");
    Heard { text, thinking, calls, end }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A body in chunks.
struct Pieces {
    pieces: VecDeque<Bytes>,
    breaks_off: bool,
    waits: bool,
    waited: bool,
}

/// The error of a broken connection.
#[derive(Debug, thiserror::Error)]
#[error("connection reset")]
struct Reset;

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Reset;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Reset>>> {
        if self.waits && !std::mem::replace(&mut self.waited, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.waited = false;
        match self.pieces.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.breaks_off => {
                self.breaks_off = false;
                Poll::Ready(Some(Err(Reset)))
            }
            None => Poll::Ready(None),
        }
    }
}

mod tests {
    use std::sync::Arc;

    use archon_types::{BoxStream, Request};

    use super::*;
    use crate::http::{HttpOptions, Transport};

    /// A provider with a fault that the replay must find: its message depends on the number of pieces.
    struct CountsPieces(Arc<Transport>);

    impl Provider for CountsPieces {
        fn id(&self) -> &str {
            "counts-pieces"
        }

        fn stream(
            &self,
            _: Request,
            _: CancellationToken,
        ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
            let sent = self.0.send(self.0.post(Vec::new())).unwrap();
            let count = async move {
                let (mut response, mut pieces) = (sent.await.unwrap(), 0);
                while response.chunk().await.unwrap().is_some_and(|piece| !piece.is_empty()) {
                    pieces += 1;
                }
                let text = pieces.to_string();
                let content = vec![Content::text(text.as_str())];
                let message = AssistantMessage { content, ..AssistantMessage::default() };
                [Ok(ModelEvent::TextDelta(text)), Ok(ModelEvent::Done(Box::new(message)))]
            };
            Box::pin(futures_util::StreamExt::flat_map(
                futures_util::stream::once(count),
                futures_util::stream::iter,
            ))
        }
    }

    // spec: A-58
    #[test]
    #[should_panic(expected = "in pieces of 1 bytes")]
    fn wire_fixture_detects_a_provider_that_depends_on_chunk_borders() {
        let transport = Transport::new(BASE_URL, "/x", HttpOptions::default()).unwrap();
        replay(&CountsPieces(Arc::new(transport)), &Request::default(), &Fixture::sse("data: a"));
    }

    #[cfg(feature = "openai-compatible")]
    #[test]
    fn chat_stream_cut_anywhere_gives_the_same_message() {
        use crate::{OpenAiCompatible, OpenAiOptions};

        let clock = std::sync::Arc::new(archon_testkit::VirtualClock::new());
        let provider = OpenAiCompatible::new(BASE_URL, OpenAiOptions::default().with_clock(clock)).unwrap();
        let request = archon_types::Request::new("m", vec![]);
        let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Grüße\"},\"finish_reason\":\"stop\"}]}\r\n\r\n\
                    : comment\r\n\r\ndata: [DONE]\r\n\r\n";
        let heard = replay(&provider, &request, &Fixture::sse(body));
        assert_eq!(heard.line(), "stop m in 0 out 0 read 0 written 0 total 0\n  text \"Grüße\"");
        assert_eq!(sent(&provider, &request).url, format!("{BASE_URL}/chat/completions"));
        for (at, heard) in cut_anywhere(&provider, &request, &Fixture::sse(body)) {
            assert!(heard.end.is_ok() || at < body.find("\r\n").unwrap(), "cut at {at}: {heard:?}");
        }
        let failed = once(&provider, &request, &Fixture::json(429, "{}").header("retry-after", "3"));
        assert_eq!(failed.end.unwrap_err().retry_after(), Some(std::time::Duration::from_secs(3)));
    }
}
