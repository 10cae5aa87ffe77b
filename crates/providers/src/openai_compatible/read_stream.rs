//! Decodes an answer from the bytes of a stream, without a connection, for fuzz tests.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use archon_types::{
    AssistantMessage, BoxFuture, CancellationToken, Clock, ModelEvent, ProviderError, Request, Timestamp,
};
use bytes::Bytes;
use futures_core::Stream as _;
use http_body::Frame;

use crate::{
    answer::BodyEnd,
    http::{
        Timeouts,
        body::Body,
        events::{Decoder as _, Framing as _, Progress},
        sse::Sse,
        watch::Watch,
    },
    profile::Compat,
};

/// The body of an answer, as a list of chunks.
struct Pieces(VecDeque<Vec<u8>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece.into()))))
    }
}

/// A clock that stands still: generated ids contain the time, and the same bytes must give the same message.
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Decodes the bytes of a chat-completions event stream into the message of the answer. For fuzz tests.
///
/// # Errors
/// The same errors as [`Provider::stream`](archon_types::Provider::stream).
#[doc(hidden)]
pub fn read_chat_stream(
    pieces: impl IntoIterator<Item = Vec<u8>>,
) -> Result<AssistantMessage, ProviderError> {
    let body = reqwest::Body::wrap(Pieces(pieces.into_iter().collect()));
    let watch = Watch::new(CancellationToken::new(), Timeouts::default());
    let mut events = pin!(Sse::new(Body::of(body, watch)));
    let request = Request::new("m", Vec::new());
    let mut decoder = super::decoder("fuzz", &request, &Compat::DEFAULT, Some(Arc::new(StoppedClock)));
    let (mut out, mut cx) = (VecDeque::new(), Context::from_waker(Waker::noop()));
    // All pieces are there, so nothing is ever pending.
    let mut body = BodyEnd::Complete;
    while let Poll::Ready(Some(event)) = events.as_mut().poll_next(&mut cx) {
        let Ok(event) = event else {
            body = BodyEnd::Broken;
            break;
        };
        if decoder.event(event, &mut out)? == Progress::Last {
            break;
        }
    }
    decoder.end(body, &mut out)?;
    let done = out.pop_back().and_then(|event| match event {
        ModelEvent::Done(message) => Some(*message),
        _ => None,
    });
    done.ok_or_else(|| ProviderError::Protocol("the answer ended without a message".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_chat_stream_ends_with_a_message_or_an_error() {
        let text = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        let cut = |at: usize| read_chat_stream([text[..at].into(), text[at..].into()]);
        for at in 0..=text.len() {
            assert_eq!(cut(at).unwrap().text(), "a", "{at}");
        }
        let error = read_chat_stream([text[..40].into()]).unwrap_err();
        assert!(matches!(error, ProviderError::Network(_)), "{error:?}");
    }

    // spec: P-24, P-31
    #[test]
    fn a_chunk_that_is_torn_anywhere_is_a_network_error() {
        let text = r#"data: {"created":-1.5e-3,"choices":[{"index":0,"delta":{"content":"a"},"x":-0.25E+1,"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"x":true}}"#;
        for at in 0..text.len() {
            let error = read_chat_stream([text[..at].into()]).unwrap_err();
            assert!(matches!(error, ProviderError::Network(_)), "{}: {error:?}", &text[..at]);
        }
        // Other errors of syntax do not count as a cut.
        for wrong in ["data: {\"created\":1.}", "data: {\"a\":1.\n\ndata: {}\n\n", "data: hello.\n\n"] {
            let error = read_chat_stream([wrong.into()]).unwrap_err();
            assert!(matches!(error, ProviderError::Protocol(_)), "{wrong}: {error:?}");
        }
    }

    const EVENTS: [&str; 8] = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"ü\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"t\",\"arguments\":\"{\"}}]}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"u\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
        ": ping\r\n",
        "\u{feff}data",
        "data: 1\n\n",
    ];

    proptest::proptest! {
        // spec: P-24
        #[test]
        fn read_chat_stream_chunk_borders_do_not_matter(
            parts in proptest::collection::vec((0..EVENTS.len() + 2, ".{0,4}"), 0..8),
            step in 1usize..8,
        ) {
            let part = |(n, other): &(usize, String)| match EVENTS.get(*n) {
                Some(event) => event.as_bytes().to_vec(),
                // Invalid text: the first byte of a character, and then the end of the line.
                None if *n > EVENTS.len() => [other.as_bytes(), b"\xE6\n"].concat(),
                None => other.as_bytes().to_vec(),
            };
            let bytes = parts.iter().map(part).collect::<Vec<_>>().concat();
            let end = |read: Result<AssistantMessage, ProviderError>| read.map_err(|error| error.code().as_str());
            let whole = end(read_chat_stream([bytes.clone()]));
            let cut = end(read_chat_stream(bytes.chunks(step).map(<[u8]>::to_vec)));
            proptest::prop_assert_eq!(whole, cut);
        }
    }

    // spec: P-24
    #[test]
    fn read_chat_stream_keeps_events_before_an_invalid_line() {
        let bytes = b"data: 1\n\n1\xE6\n\n";
        for step in [2, bytes.len()] {
            let error = read_chat_stream(bytes.chunks(step).map(<[u8]>::to_vec)).unwrap_err();
            assert!(matches!(error, ProviderError::Protocol(_)), "{step}: {error:?}");
        }
    }
}
