//! Tool results that the model removes from its context window. The log still has these results.

use serde::{Deserialize, Serialize};

use crate::values::ToolCallId;

use super::{
    message::Message,
    tool_result::{ToolResult, metadata},
};

/// The name of the tool with which a model removes tool results that it no longer needs from its context
/// window. In a run with this tool, each result shows the model the id of its call.
pub const CLEANUP_TOOL: &str = "cleanup_tool_call";

/// A tool result in the context window of a run's model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenResult {
    /// The id of the tool call.
    pub call: ToolCallId,
    /// The name of the tool.
    pub tool: String,
    /// The estimated number of tokens of the result.
    pub tokens: u64,
    /// True if the model has removed the result.
    pub is_cleaned_up: bool,
}

impl SeenResult {
    /// Describes the tool result in a message of the context window, with its estimated number of `tokens`;
    /// `None` if the message is not a tool result.
    pub fn of(message: &Message, tokens: u64) -> Option<Self> {
        let Message::ToolResult(result) = message else { return None };
        Some(Self {
            call: result.tool_call_id.clone(),
            tool: result.tool_name.clone(),
            tokens,
            is_cleaned_up: message.text().starts_with(OPENING),
        })
    }
}

/// A tool result that the model removed, with the reason and the summary that replace it. It is stored under
/// [`metadata::CLEANED_UP`] in the result of the call of the [cleanup tool](CLEANUP_TOOL).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CleanedUp {
    /// The id of the call whose result was removed.
    pub tool_call_id: ToolCallId,
    /// The model's reason for the removal.
    pub cleanup_reason: String,
    /// The model's summary of the part of the result that is worth keeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_summary: Option<String>,
    /// The estimated number of tokens of the removed result.
    pub original_tokens: u64,
}

impl CleanedUp {
    /// Describes the removal of `result` by the model, with the model's reason and its summary of the result.
    pub fn new(result: &SeenResult, reason: impl Into<String>, summary: Option<String>) -> Self {
        Self {
            tool_call_id: result.call.clone(),
            cleanup_reason: reason.into(),
            cleanup_summary: summary,
            original_tokens: result.tokens,
        }
    }

    /// Returns the note that the model reads in place of the result.
    pub fn note(&self) -> String {
        let end = self.cleanup_summary.as_ref().map_or(String::new(), |summary| format!(": {summary}"));
        format!("{OPENING}{}]{end}", self.cleanup_reason)
    }

    /// Returns the tool results that a call of the [cleanup tool](CLEANUP_TOOL) removed; `result` is the
    /// result of that call.
    pub fn of(result: &ToolResult) -> Vec<Self> {
        let said = result.metadata.get(metadata::CLEANED_UP).filter(|_| !result.is_error());
        said.and_then(|said| Vec::deserialize(said).ok()).unwrap_or_default()
    }
}

/// The beginning of every note that replaces a removed result.
const OPENING: &str = "[Cleaned up - ";
