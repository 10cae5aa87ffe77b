//! The wire format of the events of a Responses stream, private to this protocol.
//!
//! <https://platform.openai.com/docs/api-reference/responses-streaming>. The type of an event determines its
//! struct; unknown fields are skipped.

use std::borrow::Cow;

use archon_types::{Json, Usage};
use serde::Deserialize;

use crate::token_counts::with_cache_inside;

/// The type of an event or an object, for events without a name.
#[derive(Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    /// `response` for a whole answer that was not streamed.
    #[serde(borrow)]
    pub(super) object: Option<Cow<'a, str>>,
}

/// A delta of text, of thinking, of a refusal or of a tool call's arguments.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    pub(super) output_index: u64,
    pub(super) delta: String,
}

/// The beginning of a tool call without an item, as some servers send it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CallStart {
    pub(super) output_index: u64,
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
}

/// The complete arguments of a call.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ArgumentsDone {
    pub(super) output_index: u64,
    pub(super) arguments: Option<String>,
}

/// The beginning of a part of a summary.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PartAdded {
    pub(super) output_index: u64,
}

/// The beginning or the end of an item of the answer. There are many kinds of items, so they are not parsed
/// further.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ItemEvent {
    pub(super) output_index: u64,
    pub(super) item: Json,
}

/// The beginning, the progress or the end of the whole answer.
#[derive(Deserialize)]
pub(super) struct ResponseEvent<T> {
    pub(super) response: T,
}

#[derive(Deserialize)]
pub(super) struct Response {
    pub(super) model: Option<String>,
    pub(super) status: Option<String>,
    pub(super) usage: Option<WireUsage>,
    pub(super) error: Option<Json>,
    pub(super) incomplete_details: Option<Incomplete>,
}

/// All items of the answer, for the case that they did not come in deltas.
#[derive(Deserialize)]
pub(super) struct Output {
    #[serde(default)]
    pub(super) output: Vec<Json>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete {
    pub(super) reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl From<&WireUsage> for Usage {
    fn from(wire: &WireUsage) -> Self {
        let details = wire.input_tokens_details.as_ref();
        let cached = details.and_then(|d| d.cached_tokens).unwrap_or(0);
        let written = details.and_then(|d| d.cache_write_tokens).unwrap_or(0);
        with_cache_inside(Self {
            input: wire.input_tokens.unwrap_or(0),
            // The output's tokens include reasoning tokens.
            output: wire.output_tokens.unwrap_or(0),
            cache_read: cached,
            cache_write: written,
            total_tokens: wire.total_tokens.unwrap_or(0),
        })
    }
}
