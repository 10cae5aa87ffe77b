//! Splits server-sent events, the framing of most protocols.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use eventsource_stream::{Event, EventStream, EventStreamError};
use futures_core::Stream;
use memchr::memchr2;

use super::{
    body::{Body, BodyError, is_end},
    events::{FrameError, Framing, NOT_UTF8},
};

/// The events of a body of the type `text/event-stream`.
///
/// Most events are one line of data and an empty line. This type parses such events itself, in a tenth of the
/// time that the parser (`eventsource_stream`) takes; the parser gets everything else. Event ids are not
/// used, so they are not carried over to later events.
pub(crate) struct Sse {
    bytes: SseBytes,
    /// Complete lines that neither became an event nor went to the parser.
    lines: Bytes,
    parser: EventStream<Fed>,
    feed: Arc<Mutex<Feed>>,
    /// True if the parser got lines, or the end of the body, and was not polled since.
    is_fed: bool,
    /// True if the parser has an event that is not complete.
    is_within: bool,
}

impl Framing for Sse {
    type Event = Event;

    const CONTENT_TYPE: &'static str = "text/event-stream";

    /// A field, a comment, or a byte order mark.
    const BEGINS: &'static [&'static [u8]] = &[b"data", b"event", b"id", b"retry", b":", b"\xEF\xBB\xBF"];

    const HAS_COMMENTS: bool = true;

    fn new(body: Body) -> Self {
        let feed = Arc::default();
        let parser = EventStream::new(Fed(Arc::clone(&feed)));
        Self {
            bytes: SseBytes::new(body),
            lines: Bytes::new(),
            parser,
            feed,
            is_fed: false,
            is_within: false,
        }
    }

    fn whole(text: String) -> Event {
        Event { data: text, ..Event::default() }
    }
}

impl Stream for Sse {
    type Item = Result<Event, FrameError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if !self.is_within
                && let Some(event) = plain(&mut self.lines)
            {
                return Poll::Ready(Some(Ok(event)));
            }
            if !self.lines.is_empty() {
                self.is_within = !ENDS.iter().any(|end| self.lines.ends_with(end));
                let lines = mem::take(&mut self.lines);
                self.feed(|feed| feed.lines = Some(lines));
            }
            if self.is_fed {
                if let Poll::Ready(event) = Pin::new(&mut self.parser).poll_next(cx) {
                    return Poll::Ready(event.map(|event| event.map_err(frame_error)));
                }
                self.is_fed = false;
            }
            match ready!(Pin::new(&mut self.bytes).poll_next(cx)) {
                Some(Ok(lines)) => self.lines = lines,
                Some(Err(e)) => return Poll::Ready(Some(Err(frame_error(EventStreamError::Transport(e))))),
                None => self.feed(|feed| feed.is_at_end = true),
            }
        }
    }
}

impl Sse {
    fn feed(&mut self, feed: impl FnOnce(&mut Feed)) {
        feed(&mut self.feed.lock().unwrap_or_else(PoisonError::into_inner));
        self.is_fed = true;
    }
}

/// The line breaks that end an event; after them, the parser keeps no text.
const ENDS: [&[u8]; 2] = [b"\n\n", b"\r\n\r\n"];

/// Takes the first event of the lines, if it consists of an optional name, one line of data, and an empty
/// line.
fn plain(lines: &mut Bytes) -> Option<Event> {
    let (name, rest) = field(lines, b"event: ").unwrap_or((b"", lines));
    let (data, rest) = field(rest, b"data: ")?;
    let rest = rest.strip_prefix(b"\n")?;
    // The last line of a body may break off within a character.
    let text = |bytes| str::from_utf8(bytes).ok().map(str::to_owned);
    let (event, data) = (text(name)?, text(data)?);
    let length = lines.len() - rest.len();
    lines.advance(length);
    Some(Event { event, data, ..Event::default() })
}

/// Returns the value of a field at the start of the lines, and the lines after it.
fn field<'a>(lines: &'a [u8], name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let value = lines.strip_prefix(name)?;
    // The parser also accepts a carriage return as the end of a line.
    let end = memchr2(b'\n', b'\r', value).filter(|end| value[*end] == b'\n')?;
    Some((&value[..end], &value[end + 1..]))
}

/// The input stream of the parser: the lines in the feed; pending while the feed is empty.
struct Fed(Arc<Mutex<Feed>>);

#[derive(Default)]
struct Feed {
    lines: Option<Bytes>,
    is_at_end: bool,
    has_begun: bool,
}

impl Stream for Fed {
    type Item = Result<Bytes, BodyError>;

    /// Returns the lines that [`Sse`] fed last. It registers no waker, because [`Sse`] feeds the next lines
    /// and is woken by their source.
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut feed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !mem::replace(&mut feed.has_begun, true) {
            // An empty line has no meaning, and the parser panics on a byte order mark in its first input.
            return Poll::Ready(Some(Ok(Bytes::from_static(b"\n"))));
        }
        match feed.lines.take() {
            Some(lines) => Poll::Ready(Some(Ok(lines))),
            None if feed.is_at_end => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

fn frame_error(error: EventStreamError<BodyError>) -> FrameError {
    match error {
        EventStreamError::Transport(BodyError::NotText) => FrameError::Malformed(NOT_UTF8.to_owned()),
        EventStreamError::Transport(e) => FrameError::Body(e),
        // Whole lines were checked before, so the last line broke off within a character.
        EventStreamError::Utf8(_) => {
            FrameError::BrokeOff("the answer ended in the middle of a character".to_owned())
        }
        EventStreamError::Parser(e) => FrameError::Malformed(format!("not an event stream: {:?}", e.code)),
    }
}

/// The body as the event parser gets it.
struct SseBytes {
    body: Body,
    place: Place,
    /// Bytes that were received and not given to the parser.
    rest: Bytes,
    /// The beginning of a line whose end has not been received.
    line: BytesMut,
}

/// The position within a stream of events.
enum Place {
    /// Only complete byte order marks were received so far, and this number of bytes of the next one.
    Start(u8),
    Middle,
    /// The last event was closed. If the body broke off, this error follows.
    End(Option<BodyError>),
}

/// The byte order mark in UTF-8.
const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// The approximate number of bytes that the parser gets at once. The parser copies the rest of its input
/// after each line, so with large inputs it would copy most of the data many times.
const AT_ONCE: usize = 2 * 1024;

/// The maximum number of bytes of a line: an image fits, and a line without an end does not fill the memory.
const LONGEST_LINE: usize = 32 << 20;

/// The bytes for the event parser, in complete lines: the parser parses a partial line again with each
/// chunk, and waits for the end of the body if a line is not UTF-8. A last event without its empty line is
/// closed here, because some servers omit that line. Byte order marks at the beginning are removed here,
/// because the parser panics on them.
impl Stream for SseBytes {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.lines() {
                // Most text is ASCII, which is quicker to check.
                Some(lines) if lines.is_ascii() => return Poll::Ready(Some(Ok(lines))),
                Some(lines) => return Poll::Ready(Some(self.text_of(lines))),
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

    /// Removes the byte order marks at the beginning of the body.
    fn without_marks(&mut self, mut bytes: Bytes) -> Bytes {
        while let Place::Start(seen) = self.place {
            match bytes.first() {
                None => return bytes,
                Some(byte) if *byte == MARK[usize::from(seen)] => {
                    bytes.advance(1);
                    self.place = Place::Start((seen + 1) % 3);
                }
                Some(_) => {
                    // The bytes were no mark after all, and thus no valid UTF-8.
                    self.line.extend_from_slice(&MARK[..usize::from(seen)]);
                    self.place = Place::Middle;
                }
            }
        }
        bytes
    }

    /// Returns the lines up to the first one that is not UTF-8; later lines are returned by the next call.
    fn text_of(&mut self, mut lines: Bytes) -> Result<Bytes, BodyError> {
        let Err(error) = str::from_utf8(&lines) else { return Ok(lines) };
        let Some(end) = lines[..error.valid_up_to()].iter().rposition(is_end) else {
            return Err(self.broken(BodyError::NotText));
        };
        let behind = lines.split_off(end + 1);
        self.rest = [behind, mem::take(&mut self.rest)].concat().into();
        Ok(lines)
    }

    /// Makes this error the last item of the stream.
    fn broken(&mut self, error: BodyError) -> BodyError {
        self.place = Place::End(None);
        self.rest.clear();
        self.line.clear();
        error
    }

    /// Returns the next lines, a little more than [`AT_ONCE`] bytes; `None` if no complete line was
    /// received.
    fn lines(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        let far = self.rest.iter().skip(AT_ONCE).position(is_end).map(|place| AT_ONCE + place);
        let Some(end) = far.or_else(|| self.rest.iter().rposition(is_end)) else {
            self.line.extend_from_slice(&self.rest);
            self.rest.clear();
            return None;
        };
        let ends_in_two = self.rest[end..].starts_with(b"\r\n");
        let length = end + 1 + usize::from(ends_in_two);
        // Most pieces are whole events.
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
