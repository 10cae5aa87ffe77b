//! The wire format of the chunks of a Gemini stream, private to this protocol. Unknown fields and unknown
//! kinds of parts are no error.

use std::borrow::Cow;

use archon_types::{Json, Usage};
use serde::Deserialize;

/// One event, or a whole answer that was not streamed.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    pub(super) candidates: Vec<Candidate>,
    pub(super) prompt_feedback: Option<Box<PromptFeedback>>,
    pub(super) usage_metadata: Option<Box<UsageMetadata>>,
    #[serde(borrow)]
    pub(super) model_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) response_id: Option<Cow<'a, str>>,
    pub(super) error: Option<Box<Json>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate {
    /// The index of the answer; only the first answer is requested and read.
    pub(super) index: u32,
    pub(super) content: Option<Content>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    pub(super) parts: Vec<Part>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Part {
    pub(super) text: Option<String>,
    /// True if the text is thinking.
    pub(super) thought: bool,
    pub(super) thought_signature: Option<String>,
    pub(super) function_call: Option<Box<FunctionCall>>,
    pub(super) inline_data: Option<Box<Blob>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) args: Option<Json>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Blob {
    pub(super) mime_type: String,
    pub(super) data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
    pub(super) block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

impl From<&UsageMetadata> for Usage {
    fn from(wire: &UsageMetadata) -> Self {
        let count = |count: Option<u64>| count.unwrap_or(0);
        let cached = count(wire.cached_content_token_count);
        let prompt = count(wire.prompt_token_count).saturating_add(count(wire.tool_use_prompt_token_count));
        Self {
            // On the wire, prompt tokens include cached tokens, and the answer's tokens do not include
            // thoughts.
            input: prompt.saturating_sub(cached),
            output: count(wire.candidates_token_count).saturating_add(count(wire.thoughts_token_count)),
            cache_read: cached,
            cache_write: 0,
            total_tokens: count(wire.total_token_count),
        }
    }
}
