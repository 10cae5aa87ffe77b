//! The result of a tool call: one type for every tool, guard and failure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Json, values::RunId};

use super::content::Content;

/// The result of one tool call. `content` is for the model, the rest is for people and programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolResult {
    /// The content that the model reads.
    pub content: Vec<Content>,
    /// The status of the call.
    #[serde(default)]
    pub status: ToolResultStatus,
    /// The full detail of a failure, for logs and people; the model reads `content` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Structured data that is not sent to the model. [`metadata`] has the usual keys.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub metadata: serde_json::Map<String, Json>,
    /// The run that a sub-agent's call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run: Option<RunId>,
    /// The level of detail of `content`, if the result was formatted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// The file with the whole data, if `content` only describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_file: Option<DataFile>,
}

impl ToolResult {
    /// Creates a success with this content.
    pub fn success(content: impl Into<Content>) -> Self {
        Self { content: vec![content.into()], ..Self::default() }
    }

    /// Creates a failure; the model reads `Error: {message}`.
    pub fn error(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::failed(ToolResultStatus::Error, format!("Error: {message}"), message)
    }

    /// Creates the result of a call that exceeded its time limit of `seconds`.
    pub fn timeout(seconds: f64) -> Self {
        let text = format!("Tool execution timed out after {seconds} seconds");
        Self::failed(ToolResultStatus::Timeout, text.clone(), text)
    }

    /// Creates the result of a call that was cancelled or skipped; the model reads `reason`.
    pub fn cancelled(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::failed(ToolResultStatus::Cancelled, reason.clone(), reason)
    }

    /// Creates a failure with different texts for the model and for the detail.
    pub fn failed(status: ToolResultStatus, for_model: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(for_model)],
            status,
            error_message: Some(detail.into()),
            ..Self::default()
        }
    }

    /// Adds a metadata entry.
    pub fn with_metadata(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Adds the duration and the version of the tool, which every result of an engine has, unless the tool
    /// set them itself.
    pub fn measured(mut self, took: Duration, tool_version: &str) -> Self {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.metadata.entry(metadata::EXECUTION_TIME_MS).or_insert(ms.into());
        self.metadata.entry(metadata::TOOL_VERSION).or_insert(tool_version.into());
        self
    }

    /// True unless the call succeeded.
    pub fn is_error(&self) -> bool {
        self.status != ToolResultStatus::Success
    }

    /// Returns all text blocks joined.
    pub fn text(&self) -> String {
        Content::join_text(&self.content).into_owned()
    }
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        Self::success(text)
    }
}

impl From<&str> for ToolResult {
    fn from(text: &str) -> Self {
        Self::success(text)
    }
}

/// The usual keys of [`ToolResult::metadata`]. An engine sets the first two on every result.
pub mod metadata {
    /// The duration of the execution, milliseconds.
    pub const EXECUTION_TIME_MS: &str = "execution_time_ms";
    /// How often the tool was called; 0 for a call that was refused.
    pub const ATTEMPTS: &str = "attempts";
    /// For a call that was retried: the number of retries.
    pub const RETRY_COUNT: &str = "retry_count";
    /// For a call that was retried: the error of the attempt before the last one.
    pub const LAST_ERROR: &str = "last_error";
    /// [`ToolSpec::version`](crate::ToolSpec::version).
    pub const TOOL_VERSION: &str = "tool_version";
    /// [`ToolError::code`](crate::ToolError::code) of a failure.
    pub const ERROR_TYPE: &str = "error_type";
    /// Tokens that the tool itself used.
    pub const TOKEN_USAGE: &str = "token_usage";
    /// For a call of an agent: its name.
    pub const AGENT: &str = "agent";
    /// For a call of an agent: the run whose log is its conversation.
    pub const CONVERSATION_HISTORY: &str = "conversation_history";
    /// For a call of an agent: the number of its turns.
    pub const ITERATIONS: &str = "iterations";
    /// For a call of an agent: the name of its [`OutcomeStatus`](crate::OutcomeStatus), such as `finished`.
    pub const FINAL_STATE: &str = "final_state";
    /// The confidence of the tool, 0.0 to 1.0.
    pub const CONFIDENCE_SCORE: &str = "confidence_score";
    /// The source of the content.
    pub const SOURCE_URL: &str = "source_url";
    /// The response time of a service that the tool used, milliseconds.
    pub const LATENCY_MS: &str = "latency_ms";
    /// The versions of files that the call has read or written, restored when the session is resumed: an
    /// object whose `file` names the file. For each file the latest counts.
    pub const SEEN: &str = "seen";
    /// The results that the model removed with this call: a list of [`CleanedUp`](crate::CleanedUp).
    pub const CLEANED_UP: &str = "cleaned_up";
    /// The engine's change of invalid arguments; the model reads it too.
    pub const CORRECTION: &str = "correction";
    /// Advice for the model, as the model reads it.
    pub const SUGGESTION: &str = "suggestion";
    /// For a call that a person answered or refused, so that it did not run: `person`.
    pub const ANSWERED_BY: &str = "answered_by";
    /// For a call that was refused because nobody could be asked: the narrowest rule that allows it, or an
    /// empty text if no rule does.
    pub const NOBODY_ASKED: &str = "nobody_asked";
}

/// The status of a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolResultStatus {
    /// The call succeeded.
    #[default]
    Success,
    /// The call failed, was refused, or its effect is unknown.
    Error,
    /// The call was stopped at its time limit.
    Timeout,
    /// The call was cancelled or never started.
    Cancelled,
}

/// Data of a result that was too large for the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataFile {
    /// The path.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// First 16 hexadecimal digits of its SHA-256.
    pub hash: String,
    /// A description of the data, in a line.
    pub summary: String,
}

/// The amount of detail in a formatted result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutputLevel {
    /// One line.
    Brief,
    /// A summary of the result.
    #[default]
    Standard,
    /// The whole result, or a file with it.
    Full,
}
