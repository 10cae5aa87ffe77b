//! The wire format of the events of a Messages stream, private to this protocol.
//!
//! One flat struct serves for all events; the type of an event determines which fields are set. An unknown
//! type or field is no error.

use std::borrow::Cow;

use archon_types::{Json, Usage};
use serde::Deserialize;

/// One event, or a whole answer that was not streamed.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) index: u32,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    pub(super) content_block: Option<Box<Block>>,
    pub(super) message: Option<Box<Message>>,
    pub(super) usage: Option<Box<WireUsage>>,
    pub(super) error: Option<Box<Json>>,
}

/// The type of an event, without its other fields.
#[derive(Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    name: Cow<'a, str>,
}

impl<'a> Kind<'a> {
    /// Returns the type of an event; `None` if it has none.
    pub(super) fn of(event: &'a str) -> Option<Self> {
        serde_json::from_str(event).ok()
    }

    /// Returns true if the decoder reads events of this type.
    pub(super) fn is_known(&self) -> bool {
        is_known(&self.name)
    }
}

/// Returns true if the decoder reads events of this type.
pub(super) fn is_known(kind: &str) -> bool {
    KNOWN.contains(&kind)
}

const KNOWN: [&str; 9] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "message",
    "ping",
    "error",
];

/// The new part of a block, or of the message.
#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<Box<str>>,
    pub(super) partial_json: Option<String>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Cow<'a, str>>,
    pub(super) stop_details: Option<Box<StopDetails>>,
    pub(super) stop_sequence: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct StopDetails {
    pub(super) category: Option<String>,
    pub(super) explanation: Option<String>,
}

/// The beginning of a block, or a whole block.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) signature: String,
    pub(super) data: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Json,
}

/// The beginning of a message, or a whole message.
#[derive(Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) model: String,
    #[serde(default)]
    pub(super) content: Vec<Block>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<Box<StopDetails>>,
    pub(super) stop_sequence: Option<String>,
    pub(super) usage: Option<Box<WireUsage>>,
}

/// Token counts; each covers the whole answer so far.
#[derive(Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

impl WireUsage {
    /// Replaces earlier counts by those of this event. Input tokens do not include cached tokens.
    pub(super) fn update(&self, usage: &mut Usage) {
        usage.input = self.input_tokens.unwrap_or(usage.input);
        usage.output = self.output_tokens.unwrap_or(usage.output);
        usage.cache_write = self.cache_creation_input_tokens.unwrap_or(usage.cache_write);
        usage.cache_read = self.cache_read_input_tokens.unwrap_or(usage.cache_read);
    }
}
