//! The events of a ConverseStream as they stand on the wire. Nobody else's types.
//!
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>. Which of
//! these a message is says its header; fields that are not named here are skipped without being read.

use archon_types::{Json, Usage};
use serde::Deserialize;

/// A block begins. Only calls say so; text and thinking begin with their first piece.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStart {
    #[serde(default)]
    pub(super) content_block_index: u64,
    #[serde(default)]
    pub(super) start: Start,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    pub(super) tool_use: Option<ToolUse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse {
    #[serde(default)]
    pub(super) tool_use_id: String,
    #[serde(default)]
    pub(super) name: String,
    /// `server_tool_use` for a tool that the service runs by itself.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

/// A piece of a block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockDelta {
    #[serde(default)]
    pub(super) content_block_index: u64,
    #[serde(default)]
    pub(super) delta: Delta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta {
    pub(super) text: Option<String>,
    pub(super) tool_use: Option<Input>,
    pub(super) reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize)]
pub(super) struct Input {
    #[serde(default)]
    pub(super) input: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reasoning {
    pub(super) text: Option<String>,
    pub(super) signature: Option<String>,
    /// Base64 of what nobody may read.
    pub(super) redacted_content: Option<String>,
}

/// A block is complete.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStop {
    #[serde(default)]
    pub(super) content_block_index: u64,
}

/// The answer is complete.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStop {
    #[serde(default)]
    pub(super) stop_reason: String,
    /// Fields of a model that the service has no name for, for instance Anthropic's `stop_sequence`.
    pub(super) additional_model_response_fields: Option<Json>,
}

/// What the answer cost; the last message.
#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) usage: Option<WireUsage>,
}

/// Tokens that came from a cache or were written to one are not part of the input's.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        Self {
            input: wire.input_tokens.unwrap_or(0),
            output: wire.output_tokens.unwrap_or(0),
            cache_read: wire.cache_read_input_tokens.unwrap_or(0),
            cache_write: wire.cache_write_input_tokens.unwrap_or(0),
            total_tokens: wire.total_tokens.unwrap_or(0),
        }
    }
}

/// Why the service stopped in the middle.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exception {
    #[serde(alias = "Message")]
    pub(super) message: Option<String>,
    /// What the model itself said.
    pub(super) original_message: Option<String>,
}
