//! What a tool call came to: the one result type that every tool, guard and failure ends in.

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
    /// Structured facts that are not sent to the model: `execution_time_ms`, `tool_version`,
    /// `exit_code`, `source_url` and the like. An object.
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

    /// True unless the call succeeded.
    pub fn is_error(&self) -> bool {
        self.status != ToolResultStatus::Success
    }

    /// All text blocks joined.
    pub fn text(&self) -> String {
        Content::join_text(&self.content)
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
