//! Results of tools that the model gives up: they leave its window, and stay in the log.

use serde::{Deserialize, Serialize};

use crate::{Message, ToolCallId, ToolResult, metadata};

/// The name of the tool by which a model gives up results it no longer needs. A run that has it marks each result with
/// the id of its call.
pub const CLEANUP_TOOL: &str = "cleanup_tool_call";

/// A tool's result that a run's model sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenResult {
    /// The call that it answers.
    pub call: ToolCallId,
    /// The tool's name.
    pub tool: String,
    /// Its estimated tokens.
    pub tokens: u64,
    /// The model has given it up.
    pub is_cleaned_up: bool,
}

impl SeenResult {
    /// A result as it stands in a window; `None` for any other message.
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

/// What the model gave up, and what it reads instead. Stands under [`metadata::CLEANED_UP`] in the result of the call
/// by which it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CleanedUp {
    /// The call whose result it was.
    pub tool_call_id: ToolCallId,
    /// Why.
    pub cleanup_reason: String,
    /// What is worth keeping of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_summary: Option<String>,
    /// Estimated tokens of what was given up.
    pub original_tokens: u64,
}

impl CleanedUp {
    /// A result that is given up.
    pub fn new(result: &SeenResult, reason: impl Into<String>, summary: Option<String>) -> Self {
        Self {
            tool_call_id: result.call.clone(),
            cleanup_reason: reason.into(),
            cleanup_summary: summary,
            original_tokens: result.tokens,
        }
    }

    /// What the model reads in place of the result.
    pub fn note(&self) -> String {
        let end = self.cleanup_summary.as_ref().map_or(String::new(), |summary| format!(": {summary}"));
        format!("{OPENING}{}]{end}", self.cleanup_reason)
    }

    /// What a call of the [tool](CLEANUP_TOOL) gave up, by its result.
    pub fn of(result: &ToolResult) -> Vec<Self> {
        let said = result.metadata.get(metadata::CLEANED_UP).filter(|_| !result.is_error());
        said.and_then(|said| Vec::deserialize(said).ok()).unwrap_or_default()
    }
}

/// How a note begins.
const OPENING: &str = "[Cleaned up - ";
