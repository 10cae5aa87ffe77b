//! Server-sent events: the framing of most protocols.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use eventsource_stream::{Event, EventStream, EventStreamError};
use futures_core::Stream;

use super::{
    body::{Body, BodyError},
    events::{FrameError, Framing, NOT_UTF8},
};

/// The events of a body of the type `text/event-stream`.
pub(crate) struct Sse(EventStream<SseBytes>);

impl Framing for Sse {
    type Event = Event;

    const CONTENT_TYPE: &'static str = "text/event-stream";

    /// A field, a comment, or a byte order mark.
    const BEGINS: &'static [&'static [u8]] = &[b"data", b"event", b"id", b"retry", b":", b"\xEF\xBB\xBF"];

    const HAS_COMMENTS: bool = true;

    fn new(body: Body) -> Self {
        Self(EventStream::new(SseBytes::new(body)))
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
        EventStreamError::Transport(BodyError::NotText) => FrameError::Malformed(NOT_UTF8.to_owned()),
        EventStreamError::Transport(e) => FrameError::Body(e),
        // Whole lines were looked at before, so the last one broke off in the middle of a character.
        EventStreamError::Utf8(_) => FrameError::BrokeOff("the answer broke off in a character".to_owned()),
        EventStreamError::Parser(e) => FrameError::Malformed(format!("no event stream: {:?}", e.code)),
    }
}

/// A body on its way into the parser of events.
struct SseBytes {
    body: Body,
    place: Place,
    /// What has come and the parser has not had.
    rest: Bytes,
    /// The beginning of a line whose end has not come.
    line: BytesMut,
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

/// About how many bytes the parser gets at once. It copies what it has left after each line, so of a read of half a
/// megabyte it would copy most of it a thousand times.
const AT_ONCE: usize = 2 * 1024;

/// The most bytes of a line: a picture fits, and a line without an end does not fill the memory.
const LONGEST_LINE: usize = 32 << 20;

/// The bytes for the parser of events, in whole lines: it begins anew with each part of one, and waits for the end of the
/// body where a line is not UTF-8. A last event that was not closed by an empty line is closed here, because some
/// servers forget the line. Byte order marks at the beginning are taken out here, because the parser panics on one.
impl Stream for SseBytes {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.lines() {
                // Most text is ASCII, which is known sooner.
                Some(lines) if lines.is_ascii() || str::from_utf8(&lines).is_ok() => {
                    return Poll::Ready(Some(Ok(lines)));
                }
                Some(_) => return Poll::Ready(Some(Err(self.broken(BodyError::NotText)))),
                None if self.line.len() > LONGEST_LINE => {
                    return Poll::Ready(Some(Err(self.broken(BodyError::TooLong))));
                }
                None => {}
            }
            if let Place::End(error) = &mut self.place {
                return Poll::Ready(error.take().map(Err));
            }
            let error = match ready!(self.body.poll_bytes(cx)) {
                Some(Ok(bytes)) => {
                    self.rest = self.without_marks(bytes);
                    continue;
                }
                Some(Err(BodyError::Transport(e))) => Some(BodyError::Transport(e)),
                Some(Err(e)) => return Poll::Ready(Some(Err(e))),
                None => None,
            };
            self.place = Place::End(error);
            self.line.extend_from_slice(b"\n\n");
            return Poll::Ready(Some(Ok(self.line.split().freeze())));
        }
    }
}

impl SseBytes {
    fn new(body: Body) -> Self {
        Self { body, place: Place::Start(0), rest: Bytes::new(), line: BytesMut::new() }
    }

    /// The bytes without the marks that the body begins with.
    fn without_marks(&mut self, mut bytes: Bytes) -> Bytes {
        while let Place::Start(seen) = self.place {
            match bytes.first() {
                None => return bytes,
                Some(byte) if *byte == MARK[usize::from(seen)] => {
                    bytes.advance(1);
                    self.place = Place::Start((seen + 1) % 3);
                }
                Some(_) => {
                    // What began like a mark is none, nor anything else in UTF-8.
                    self.line.extend_from_slice(&MARK[..usize::from(seen)]);
                    self.place = Place::Middle;
                }
            }
        }
        bytes
    }

    /// Nothing comes after this error.
    fn broken(&mut self, error: BodyError) -> BodyError {
        self.place = Place::End(None);
        self.rest.clear();
        self.line.clear();
        error
    }

    /// The next lines of what has come, a little more than [`AT_ONCE`]; `None` once there is no end of a line in it.
    fn lines(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let far = self.rest.iter().skip(AT_ONCE).position(is_end).map(|place| AT_ONCE + place);
        let Some(end) = far.or_else(|| self.rest.iter().rposition(is_end)) else {
            self.line.extend_from_slice(&self.rest);
            self.rest.clear();
            return None;
        };
        let ends_in_two = self.rest[end..].starts_with(b"\r\n");
        let length = end + 1 + usize::from(ends_in_two);
        // Most pieces that come are whole events.
        let lines = match length == self.rest.len() {
            true => mem::take(&mut self.rest),
            false => self.rest.split_to(length),
        };
        if self.line.is_empty() {
            return Some(lines);
        }
        self.line.extend_from_slice(&lines);
        Some(self.line.split().freeze())
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
