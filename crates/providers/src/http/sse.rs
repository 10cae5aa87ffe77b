//! Server-sent events: the framing of most protocols.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use eventsource_stream::{Event, EventStream, EventStreamError};
use futures_core::Stream;

use super::{
    body::{Body, BodyError},
    events::{FrameError, Framing},
};

/// The events of a body of the type `text/event-stream`.
pub(crate) struct Sse(EventStream<SseBytes>);

impl Framing for Sse {
    type Event = Event;

    const CONTENT_TYPE: &'static str = "text/event-stream";

    /// A field, a comment, or a byte order mark.
    const BEGINS: &'static [&'static [u8]] = &[b"data", b"event", b"id", b"retry", b":", b"\xEF\xBB\xBF"];

    fn new(body: Body) -> Self {
        Self(EventStream::new(SseBytes { body, place: Place::Start(0) }))
    }

    fn whole(text: String) -> Event {
        Event { data: text, ..Event::default() }
    }
}

impl Stream for Sse {
    type Item = Result<Event, FrameError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(Pin::new(&mut self.0).poll_next(cx));
        Poll::Ready(event.map(|event| event.map_err(frame_error)))
    }
}

fn frame_error(error: EventStreamError<BodyError>) -> FrameError {
    match error {
        EventStreamError::Transport(e) => FrameError::Body(e),
        // Bytes that are no UTF-8 are reported at the end of the body, so this may as well be an
        // answer that broke off in the middle of a character.
        EventStreamError::Utf8(_) => FrameError::BrokeOff("the answer broke off, or is not UTF-8".to_owned()),
        EventStreamError::Parser(e) => FrameError::Malformed(format!("no event stream: {:?}", e.code)),
    }
}

/// A body on its way into the parser of events.
struct SseBytes {
    body: Body,
    place: Place,
}

/// Where a stream of events is.
enum Place {
    /// Nothing but byte order marks came, and this many bytes of another.
    Start(u8),
    Middle,
    /// The last event was closed; this error follows.
    End(Option<BodyError>),
}

/// The byte order mark in UTF-8.
const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// The bytes for the parser of events. A last event that was not closed by an empty line is
/// closed here, because some servers forget the line. Byte order marks at the beginning are taken out
/// here, because the parser panics on one.
impl Stream for SseBytes {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Place::End(error) = &mut self.place {
                return Poll::Ready(error.take().map(Err));
            }
            let error = match ready!(self.body.poll_bytes(cx)) {
                Some(Ok(bytes)) => match self.without_marks(bytes) {
                    Some(bytes) => return Poll::Ready(Some(Ok(bytes))),
                    None => continue,
                },
                Some(Err(BodyError::Transport(e))) => Some(BodyError::Transport(e)),
                Some(Err(e)) => return Poll::Ready(Some(Err(e))),
                None => None,
            };
            self.place = Place::End(error);
            return Poll::Ready(Some(Ok(Bytes::from_static(b"\n\n"))));
        }
    }
}

impl SseBytes {
    /// The bytes without the marks that the body begins with; `None` when nothing else came.
    fn without_marks(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        while let Place::Start(seen) = self.place {
            match bytes.first() {
                None => return None,
                Some(byte) if *byte == MARK[usize::from(seen)] => {
                    bytes.advance(1);
                    self.place = Place::Start((seen + 1) % 3);
                }
                Some(_) => self.place = Place::Middle,
            }
        }
        Some(bytes)
    }
}
