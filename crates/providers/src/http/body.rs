//! Reads the bytes of a response, with timeouts and a maximum size.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::Body as _;

use super::watch::{Interrupt, Watch};

/// The maximum number of bytes of one answer. No model sends that many; a broken server might.
pub(super) const MOST_BYTES: usize = 256 << 20;
/// The maximum number of bytes of a body that is read whole: an error, or an answer that was not streamed.
pub(super) const MOST_WHOLE_BYTES: usize = 32 << 20;

/// The reason why no more bytes come.
#[derive(Debug)]
pub(crate) enum BodyError {
    Interrupted(Interrupt),
    Transport(reqwest::Error),
    TooLong,
    /// A line of text is not UTF-8.
    NotText,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The bytes of one response.
pub(crate) struct Body {
    /// Bytes that were read in advance.
    ahead: Option<Bytes>,
    body: reqwest::Body,
    watch: Watch,
    left: usize,
    /// The position within the current line; `None` if comments count as received data.
    line: Option<Line>,
}

impl Body {
    pub(crate) fn new(response: reqwest::Response, watch: Watch) -> Self {
        Self::of(response.into(), watch)
    }

    /// Creates a body from bytes of any source, not only from a connection.
    pub(crate) fn of(body: reqwest::Body, watch: Watch) -> Self {
        Self { ahead: None, body, watch, left: MOST_BYTES, line: None }
    }

    /// From now on, comments of an event stream and empty lines do not count as received data for the
    /// timeouts.
    pub(crate) fn ignore_comments(&mut self) {
        self.line = Some(Line::Start);
    }

    /// Returns the next bytes when they arrive, including empty chunks.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if let Some(bytes) = self.ahead.take() {
            return Poll::Ready(Some(Ok(bytes)));
        }
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers contain nothing that is needed.
                    let Ok(bytes) = frame.into_data() else { continue };
                    if self.line.as_mut().is_none_or(|line| line.says_something(&bytes)) {
                        self.watch.touch();
                    }
                    let Some(left) = self.left.checked_sub(bytes.len()) else {
                        return Poll::Ready(Some(Err(BodyError::TooLong)));
                    };
                    self.left = left;
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Poll::Ready(Some(Err(e))) => return Poll::Ready(Some(Err(BodyError::Transport(e)))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    let interrupt = ready!(self.watch.poll(cx));
                    return Poll::Ready(Some(Err(BodyError::Interrupted(interrupt))));
                }
            }
        }
    }

    /// Reads until the first bytes after white space show the kind of the body, and returns these bytes;
    /// empty for an empty body. Everything that was read is kept for later.
    pub(crate) async fn beginning(&mut self) -> Result<Bytes, BodyError> {
        const ENOUGH: usize = "retry:".len();
        let mut ahead = Bytes::new();
        loop {
            let begun: &[u8] = ahead.trim_ascii_start();
            // The first byte of a byte order mark, which has three, is 0xEF.
            let may_go_on = |byte: &u8| byte.is_ascii_alphabetic() || *byte == 0xEF;
            let tells_at_once = begun.first().is_some_and(|byte| !may_go_on(byte));
            if tells_at_once || begun.len() >= ENOUGH {
                break;
            }
            match std::future::poll_fn(|cx| self.poll_bytes(cx)).await {
                None => break,
                // In most cases the first piece is enough.
                Some(bytes) if ahead.is_empty() => ahead = bytes?,
                Some(bytes) => ahead = [ahead, bytes?].concat().into(),
            }
        }
        let beginning = ahead.slice_ref(ahead.trim_ascii_start());
        self.ahead = Some(ahead);
        Ok(beginning)
    }

    /// Reads the body to its end, as text. If it breaks off, returns the text so far with the error.
    pub(crate) async fn text(mut self) -> (String, Result<(), BodyError>) {
        let mut all = Vec::new();
        let end = loop {
            match std::future::poll_fn(|cx| self.poll_bytes(cx)).await {
                None => break Ok(()),
                Some(Err(e)) => break Err(e),
                Some(Ok(bytes)) => all.extend_from_slice(&bytes),
            }
            if all.len() > MOST_WHOLE_BYTES {
                break Err(BodyError::TooLong);
            }
        };
        (String::from_utf8_lossy(&all).into_owned(), end)
    }
}

/// The position within a line of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Start,
    /// In a comment: a line that begins with a colon.
    Comment,
    Other,
}

impl Line {
    /// Advances over these bytes. Returns true if any of them is neither in a comment nor at the end of a
    /// line. Bytes are scanned only until the result is known, and then from their end, since every streamed
    /// delta is checked.
    fn says_something(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            *self = match (*self, first) {
                (Self::Start, b':') => Self::Comment,
                (Self::Start, first) if !is_end(first) => Self::Other,
                (line, _) => line,
            };
            if *self == Self::Other && !is_end(first) {
                *self = Self::after(rest);
                return true;
            }
            let Some(end) = rest.iter().position(is_end) else { return false };
            *self = Self::Start;
            rest = &rest[end + 1..];
        }
        false
    }

    /// Returns the position after these bytes, which begin in a line that is not a comment.
    fn after(bytes: &[u8]) -> Self {
        let Some(end) = bytes.iter().rposition(is_end) else { return Self::Other };
        match bytes.get(end + 1) {
            None => Self::Start,
            Some(b':') => Self::Comment,
            Some(_) => Self::Other,
        }
    }
}

pub(super) fn is_end(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-35
    #[test]
    fn says_something_ignores_comments_for_any_chunk_borders() {
        for (text, expected) in [
            ("", false),
            (": keep-alive\n\n", false),
            (":\r\n\r\n: data: x\r\n", false),
            (": a\ndata: x\n\n", true),
            ("data: x\n\n: a\n", true),
            ("event: ping\n", true),
            ("\n\n{", true),
            ("data: x\n: a", true),
            ("data: x\n\ndata", true),
        ] {
            let mut whole = Line::Start;
            assert_eq!(whole.says_something(text.as_bytes()), expected, "{text:?}");
            let mut line = Line::Start;
            let said = text.bytes().fold(false, |said, byte| line.says_something(&[byte]) | said);
            assert_eq!((said, line), (expected, whole), "{text:?} byte by byte");
        }
    }
}
