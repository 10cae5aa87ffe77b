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
        Self(EventStream::new(SseBytes { body, place: Place::Start(0), rest: Bytes::new() }))
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
    /// What has come and the parser has not had.
    rest: Bytes,
}

/// About how many bytes the parser gets at once. It copies what it has left after each line, so of a read of half a
/// megabyte it would copy most of it a thousand times.
const AT_ONCE: usize = 2 * 1024;

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
            if !self.rest.is_empty() {
                return Poll::Ready(Some(Ok(lines(&mut self.rest))));
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
            return Poll::Ready(Some(Ok(Bytes::from_static(b"\n\n"))));
        }
    }
}

impl SseBytes {
    /// The bytes without the marks that the body begins with.
    fn without_marks(&mut self, mut bytes: Bytes) -> Bytes {
        while let Place::Start(seen) = self.place {
            match bytes.first() {
                None => return bytes,
                Some(byte) if *byte == MARK[usize::from(seen)] => {
                    bytes.advance(1);
                    self.place = Place::Start((seen + 1) % 3);
                }
                Some(_) => self.place = Place::Middle,
            }
        }
        bytes
    }
}

/// The first lines of `rest`, a little more than [`AT_ONCE`]. A line is not cut, as the parser begins each part of it anew.
fn lines(rest: &mut Bytes) -> Bytes {
    let end = rest.iter().skip(AT_ONCE).position(|byte| *byte == b'\n');
    rest.split_to(end.map_or(rest.len(), |end| AT_ONCE + end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parser_gets_whole_lines_a_few_at_a_time() {
        let line = |n: usize| format!("{}\r\n", "x".repeat(n));
        let text = [line(10), line(3 * AT_ONCE), line(100).repeat(50), "unfinished".repeat(500)].concat();
        let (mut rest, mut parts) = (Bytes::from(text.clone()), Vec::new());
        while !rest.is_empty() {
            parts.push(String::from_utf8(lines(&mut rest).to_vec()).unwrap());
        }
        assert_eq!(parts.concat(), text);
        let (last, others) = parts.split_last().unwrap();
        assert!(last.ends_with("unfinished"));
        assert!(others.iter().all(|part| part.ends_with("\r\n")), "{others:?}");
        assert_eq!(others[0].len(), 12 + 3 * AT_ONCE + 2);
        assert!(others[1..].iter().all(|part| part.len() <= AT_ONCE + 102));
    }
}
