//! What a tool call came to: the one result type that every tool, guard and failure ends in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Content, Json, OutputLevel, RunId};

/// The result of one tool call. `content` is for the model, the rest is for people and programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolResult {
    /// What the model reads.
    pub content: Vec<Content>,
    /// How the call ended.
    #[serde(default)]
    pub status: ToolResultStatus,
    /// Full detail of a failure, for logs and people; the model reads `content` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Structured facts that are not sent to the model. [`metadata`] names the usual keys.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub metadata: serde_json::Map<String, Json>,
    /// The run that a sub-agent's call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run: Option<RunId>,
    /// How much detail `content` holds, where the result was formatted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// Where the whole data is, when `content` only describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_file: Option<DataFile>,
}

impl ToolResult {
    /// A success with the given content.
    pub fn success(content: impl Into<Content>) -> Self {
        Self { content: vec![content.into()], ..Self::default() }
    }

    /// A failure; the model reads `Error: {message}`.
    pub fn error(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::failed(ToolResultStatus::Error, format!("Error: {message}"), message)
    }

    /// A call that ran longer than its time limit of `seconds`.
    pub fn timeout(seconds: f64) -> Self {
        let text = format!("Tool execution timed out after {seconds} seconds");
        Self::failed(ToolResultStatus::Timeout, text.clone(), text)
    }

    /// A call that was cancelled or skipped; the model reads `reason` as it is.
    pub fn cancelled(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::failed(ToolResultStatus::Cancelled, reason.clone(), reason)
    }

    /// A failure whose text for the model and whose detail differ.
    pub fn failed(status: ToolResultStatus, for_model: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(for_model)],
            status,
            error_message: Some(detail.into()),
            ..Self::default()
        }
    }

    /// The same result with one more metadata entry.
    pub fn with_metadata(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// The same result with what every result of an engine has: how long it took and which version
    /// of the tool gave it. What the tool itself said of these stays.
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

    /// All text blocks joined.
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
    /// How long the tool ran, milliseconds.
    pub const EXECUTION_TIME_MS: &str = "execution_time_ms";
    /// [`ToolSpec::version`](crate::ToolSpec::version).
    pub const TOOL_VERSION: &str = "tool_version";
    /// [`ToolError::code`](crate::ToolError::code) of a failure.
    pub const ERROR_TYPE: &str = "error_type";
    /// Tokens that the tool itself spent.
    pub const TOKEN_USAGE: &str = "token_usage";
    /// Of an agent that was called: its name.
    pub const AGENT: &str = "agent";
    /// Of an agent that was called: the run whose log is the conversation that it had.
    pub const CONVERSATION_HISTORY: &str = "conversation_history";
    /// Of an agent that was called: how many turns it took.
    pub const ITERATIONS: &str = "iterations";
    /// Of an agent that was called: the name of its [`OutcomeStatus`](crate::OutcomeStatus), such as `finished`.
    pub const FINAL_STATE: &str = "final_state";
    /// How sure the tool is, 0.0 to 1.0.
    pub const CONFIDENCE_SCORE: &str = "confidence_score";
    /// Where the content comes from.
    pub const SOURCE_URL: &str = "source_url";
    /// How long a service that the tool asked took, milliseconds.
    pub const LATENCY_MS: &str = "latency_ms";
    /// Which version of which file the call has read or written, known again when the session is taken up: an object whose
    /// `file` names the file. Of each file the latest counts.
    pub const SEEN: &str = "seen";
    /// Results that the model gave up by this call: a list of [`CleanedUp`](crate::CleanedUp).
    pub const CLEANED_UP: &str = "cleaned_up";
    /// What the engine changed in arguments that could not work; the model reads it, too.
    pub const CORRECTION: &str = "correction";
    /// How the model could work better, as the model reads it.
    pub const SUGGESTION: &str = "suggestion";
    /// Of a call that was refused because nobody could be asked: the narrowest rule that allows it, or an empty text
    /// where no rule does.
    pub const NOBODY_ASKED: &str = "nobody_asked";
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolResultStatus {
    /// It did what was asked.
    #[default]
    Success,
    /// It failed, was refused, or its effect is unknown.
    Error,
    /// It was stopped at its time limit.
    Timeout,
    /// It was cancelled or never started.
    Cancelled,
}

/// Data of a result that was too large for the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataFile {
    /// Where it is.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// First 16 hexadecimal digits of its SHA-256.
    pub hash: String,
    /// What is in it, in a line.
    pub summary: String,
}
