//! Splits Bedrock's answers into binary messages of the type `application/vnd.amazon.eventstream`.
//!
//! A message has its length, the length of its headers, a checksum of both, headers, a payload, and a
//! checksum of everything: <https://smithy.io/2.0/aws/amazon-eventstream.html>. Amazon's crate parses one
//! message; this module collects bytes until a message is complete, and refuses lengths out of range.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use aws_smithy_eventstream::frame::read_message_from;
use bytes::{Bytes, BytesMut};
use futures_core::Stream;

use crate::http::{
    body::Body,
    events::{FrameError, Framing},
};

/// The minimum length of a message in bytes: two lengths, their checksum and the checksum of everything.
const SHORTEST: usize = 16;
/// The maximum length of a message in bytes, as the format defines it; no event of a model is nearly as
/// long.
const LONGEST: usize = 24 << 20;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    /// The body of the message: JSON in all of Bedrock's messages.
    pub(crate) payload: Bytes,
}

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An event of this type.
    Event(String),
    /// An exception of this type.
    Exception(String),
    /// An error that the protocol does not define as an exception.
    Error { code: String, message: String },
    /// A JSON body that came instead of an event stream.
    Whole,
}

/// The messages of a body.
pub(crate) struct Frames {
    body: Body,
    cutter: Cutter,
    ended: bool,
}

impl Framing for Frames {
    type Event = Frame;

    const CONTENT_TYPE: &'static str = "application/vnd.amazon.eventstream";

    const BEGINS: &'static [&'static [u8]] = &[];

    const HAS_COMMENTS: bool = false;

    fn new(body: Body) -> Self {
        Self { body, cutter: Cutter::default(), ended: false }
    }

    fn whole(text: String) -> Frame {
        Frame { kind: FrameKind::Whole, payload: text.into() }
    }
}

impl Stream for Frames {
    type Item = Result<Frame, FrameError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            match self.cutter.next() {
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(None) => {}
                Err(what) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(FrameError::Malformed(what))));
                }
            }
            match ready!(self.body.poll_bytes(cx)) {
                Some(Ok(bytes)) => self.cutter.push(&bytes),
                Some(Err(e)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(FrameError::Body(e))));
                }
                None => {
                    self.ended = true;
                    if !self.cutter.is_empty() {
                        let what = "the answer ended in the middle of a message".to_owned();
                        return Poll::Ready(Some(Err(FrameError::BrokeOff(what))));
                    }
                }
            }
        }
    }
}

/// Splits bytes into messages.
#[derive(Default)]
pub(crate) struct Cutter(BytesMut);

impl Cutter {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next complete message; `None` if more bytes are needed. After an error, no further
    /// message can be read.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, String> {
        let Some(length) = self.0.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if !(SHORTEST..=LONGEST).contains(&length) {
            return Err(format!("not an event stream: a message length of {length} bytes is out of range"));
        }
        if self.0.len() < length {
            return Ok(None);
        }
        let message = read_message_from(self.0.split_to(length).freeze());
        let message = message.map_err(|e| format!("not an event stream: {e}"))?;
        let header = |name: &str| {
            let found = message.headers().iter().find(|header| header.name().as_str() == name);
            let text = found.and_then(|header| header.value().as_string().ok());
            text.map_or_else(String::new, |text| text.as_str().to_owned())
        };
        let kind = match header(":message-type").as_str() {
            "exception" => FrameKind::Exception(header(":exception-type")),
            "error" => FrameKind::Error { code: header(":error-code"), message: header(":error-message") },
            _ => FrameKind::Event(header(":event-type")),
        };
        Ok(Some(Frame { kind, payload: message.payload().clone() }))
    }
}

/// Returns the number of messages in the bytes of an event stream; `None` if they are not whole, valid
/// messages. For fuzz tests.
#[doc(hidden)]
pub fn count_event_stream_messages(bytes: &[u8]) -> Option<usize> {
    let mut cutter = Cutter::default();
    cutter.push(bytes);
    let mut count = 0;
    while cutter.next().ok()?.is_some() {
        count += 1;
    }
    cutter.is_empty().then_some(count)
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
