//! Tool results that the model removes from its context window; they stay in the log.

use serde::{Deserialize, Serialize};

use crate::values::ToolCallId;

use super::{
    message::Message,
    tool_result::{ToolResult, metadata},
};

/// The name of the tool with which a model removes results that it no longer needs. In a run with this tool
/// each result shows the id of its call.
pub const CLEANUP_TOOL: &str = "cleanup_tool_call";

/// A tool result in the window of a run's model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenResult {
    /// The id of the call.
    pub call: ToolCallId,
    /// The tool's name.
    pub tool: String,
    /// Its estimated tokens.
    pub tokens: u64,
    /// True if the model has removed it.
    pub is_cleaned_up: bool,
}

impl SeenResult {
    /// Creates it from a message of the window; `None` if the message is no tool result.
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

/// A result that the model removed, with the note that replaces it. It is stored under
/// [`metadata::CLEANED_UP`] in the result of the call that removed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CleanedUp {
    /// The call of the removed result.
    pub tool_call_id: ToolCallId,
    /// The reason.
    pub cleanup_reason: String,
    /// The part worth keeping, as a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_summary: Option<String>,
    /// Estimated tokens of the removed result.
    pub original_tokens: u64,
}

impl CleanedUp {
    /// Creates the removal of a result.
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

    /// Returns the removals of a call of the [tool](CLEANUP_TOOL), from its result.
    pub fn of(result: &ToolResult) -> Vec<Self> {
        let said = result.metadata.get(metadata::CLEANED_UP).filter(|_| !result.is_error());
        said.and_then(|said| Vec::deserialize(said).ok()).unwrap_or_default()
    }
}

/// The beginning of a note.
const OPENING: &str = "[Cleaned up - ";
