//! The wire format of the events of a ConverseStream, private to this protocol.
//!
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>. The header of
//! a message names its type; unknown fields are skipped.

use archon_types::{Json, Usage};
use serde::Deserialize;

/// The beginning of a block. Only tool calls have one; text and thinking begin with their first delta.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BlockStart {
    pub(super) content_block_index: u64,
    pub(super) start: Start,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    pub(super) tool_use: Option<ToolUse>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolUse {
    pub(super) tool_use_id: String,
    pub(super) name: String,
    /// `server_tool_use` for a tool that the service runs itself.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

/// A delta of a block.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BlockDelta {
    pub(super) content_block_index: u64,
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
    /// Encrypted reasoning in Base64.
    pub(super) redacted_content: Option<String>,
}

/// The end of a block.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BlockStop {
    pub(super) content_block_index: u64,
}

/// The end of the answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStop {
    #[serde(default)]
    pub(super) stop_reason: String,
    /// Additional fields of a model, for instance Anthropic's `stop_sequence`.
    pub(super) additional_model_response_fields: Option<Json>,
}

/// The token counts of the answer, in the last message.
#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) usage: Option<WireUsage>,
}

/// Token counts. Input tokens do not include tokens that were read from or written to the prompt cache.
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

/// An exception in the middle of a stream.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exception {
    #[serde(alias = "Message")]
    pub(super) message: Option<String>,
    /// The message of the model behind the service.
    pub(super) original_message: Option<String>,
}
