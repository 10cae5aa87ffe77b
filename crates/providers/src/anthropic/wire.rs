//! The events of a Messages stream as they stand on the wire. Nobody else's types.
//!
//! One flat struct for all events: which fields are set follows from the type, and an unknown type, or an
//! unknown field, is no fault.

use std::borrow::Cow;

use archon_types::{Json, Usage};
use serde::Deserialize;

/// One event; also a whole answer that was not streamed.
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

/// What an event is, whatever else it holds.
#[derive(Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    name: Cow<'a, str>,
}

impl<'a> Kind<'a> {
    /// That of an event that says what it is.
    pub(super) fn of(event: &'a str) -> Option<Self> {
        serde_json::from_str(event).ok()
    }

    /// Whether we read events of this kind.
    pub(super) fn is_known(&self) -> bool {
        KNOWN.contains(&&*self.name)
    }
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

/// What is new in a block, or in the message.
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

/// A block as it begins, or whole.
#[derive(Deserialize)]
pub(super) struct Block {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) thinking: String,
    #[serde(default)]
    pub(super) signature: String,
    #[serde(default)]
    pub(super) data: String,
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) input: Json,
}

/// The message as it begins, or whole.
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

/// Tokens; each count is of the whole answer so far.
#[derive(Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

impl WireUsage {
    /// What is said here replaces what was said before. Cached tokens are not part of the input's.
    pub(super) fn update(&self, usage: &mut Usage) {
        usage.input = self.input_tokens.unwrap_or(usage.input);
        usage.output = self.output_tokens.unwrap_or(usage.output);
        usage.cache_write = self.cache_creation_input_tokens.unwrap_or(usage.cache_write);
        usage.cache_read = self.cache_read_input_tokens.unwrap_or(usage.cache_read);
    }
}
