//! The result of a tool call: one type for every tool, guard and failure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Json, values::RunId};

use super::{content::Content, media::Media};

/// The result of one tool call. `content` is for the model, the other fields are for people and programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolResult {
    /// The content that the model reads.
    pub content: Vec<Content>,
    /// The status of the call.
    #[serde(default)]
    pub status: ToolResultStatus,
    /// The full text of a failure, for logs and people. The model reads `content` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Structured data that is not sent to the model. [`metadata`] lists the usual keys.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub metadata: serde_json::Map<String, Json>,
    /// The child run that the call started; `None` if the call did not start a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run: Option<RunId>,
    /// The level of detail of `content`; `None` if the result was not formatted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// The file with all data of the result, if `content` only describes the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_file: Option<DataFile>,
}

impl ToolResult {
    /// Creates the result of a successful call.
    pub fn success(content: impl Into<Content>) -> Self {
        Self { content: vec![content.into()], ..Self::default() }
    }

    /// Creates the result of a failed call; the model reads `Error: {message}`.
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

    /// Creates the result of a call that did not succeed: the model reads `for_model`, and logs and people
    /// get `detail`.
    pub fn failed(status: ToolResultStatus, for_model: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(for_model)],
            status,
            error_message: Some(detail.into()),
            ..Self::default()
        }
    }

    /// Adds a metadata entry.
    ///
    /// ```
    /// use archon_types::{Content, ToolResult};
    ///
    /// let result = ToolResult::success(Content::text("3 rows")).with_metadata("rows", 3);
    /// assert_eq!(result.metadata["rows"], 3);
    /// ```
    pub fn with_metadata(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Adds the duration of the call and the version of the tool, as a tool engine does for every result.
    /// Values that the tool itself set stay unchanged.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use archon_types::{Content, ToolResult};
    ///
    /// let result = ToolResult::success(Content::text("42")).measured(Duration::from_millis(7), "1.0.0");
    /// ```
    pub fn measured(mut self, took: Duration, tool_version: &str) -> Self {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.metadata.entry(metadata::EXECUTION_TIME_MS).or_insert(ms.into());
        self.metadata.entry(metadata::TOOL_VERSION).or_insert(tool_version.into());
        self
    }

    /// Returns true unless the call succeeded.
    pub fn is_error(&self) -> bool {
        self.status != ToolResultStatus::Success
    }

    /// Returns all text blocks, joined by newlines.
    pub fn text(&self) -> String {
        Content::join_text(&self.content).into_owned()
    }
}

crate::values::from_text!(ToolResult = ToolResult::success);

impl From<Media> for ToolResult {
    fn from(media: Media) -> Self {
        Self::success(media)
    }
}

/// The usual keys of [`ToolResult::metadata`]. The tool engine sets
/// [`EXECUTION_TIME_MS`](metadata::EXECUTION_TIME_MS) and [`ATTEMPTS`](metadata::ATTEMPTS) in its results,
/// and [`TOOL_VERSION`](metadata::TOOL_VERSION) if the tool exists.
pub mod metadata {
    /// The duration of the execution in milliseconds.
    pub const EXECUTION_TIME_MS: &str = "execution_time_ms";
    /// The number of executions of the tool for this call; 0 for a call that was refused.
    pub const ATTEMPTS: &str = "attempts";
    /// The number of retries of a call that was retried.
    pub const RETRY_COUNT: &str = "retry_count";
    /// The error of the attempt before the last, for a call that was retried.
    pub const LAST_ERROR: &str = "last_error";
    /// The [`version`](crate::ToolSpec::version) of the tool.
    pub const TOOL_VERSION: &str = "tool_version";
    /// The [`code`](crate::ToolError::code) of the tool's error.
    pub const ERROR_TYPE: &str = "error_type";
    /// The number of tokens that the tool itself used.
    pub const TOKEN_USAGE: &str = "token_usage";
    /// The name of the agent, for a call of an agent.
    pub const AGENT: &str = "agent";
    /// The id of the child run, for a call of an agent. The log of the child run has the agent's conversation.
    pub const CONVERSATION_HISTORY: &str = "conversation_history";
    /// The number of turns of the child run, for a call of an agent.
    pub const ITERATIONS: &str = "iterations";
    /// The name of the [`OutcomeStatus`](crate::OutcomeStatus) of the child run, such as `finished`, for a call of
    /// an agent.
    pub const FINAL_STATE: &str = "final_state";
    /// The confidence of the tool in its result, 0.0 to 1.0.
    pub const CONFIDENCE_SCORE: &str = "confidence_score";
    /// The web address from which the content of the result comes.
    pub const SOURCE_URL: &str = "source_url";
    /// The response time of a service that the tool used, in milliseconds.
    pub const LATENCY_MS: &str = "latency_ms";
    /// An object from which a resumed session restores the state of a tool. An object with the field `file`
    /// has the version of this file that the call has read or written; an object with the field `command` has
    /// the state of this command in the background. For each file and each command, only the newest object is
    /// restored. Any other object, such as that of an activated skill, is restored once. A message passes
    /// such an object to a tool with a [`ToolMark`](crate::ToolMark).
    pub const SEEN: &str = "seen";
    /// True if the result has something that no earlier result had, such as new output of a command in the
    /// background. Then the call does not count as a repetition of an earlier one with the same arguments.
    pub const IS_NEW: &str = "is_new";
    /// The earlier tool results that the model removed from its context window with this call: a list of
    /// [`CleanedUp`](crate::CleanedUp).
    pub const CLEANED_UP: &str = "cleaned_up";
    /// A name under which the result is pinned: the context window keeps the result as it is, together with
    /// its call, in spite of compactions. Of two results with the same name, the later one is pinned. All
    /// pinned results together may take a quarter of the window; if they take more, the oldest ones lose
    /// their pins. The key is ignored unless the tool [instructs](crate::ToolAnnotations::instructs).
    pub const PINNED: &str = "pinned";
    /// The [`Trust`](crate::Trust) of the result's text, for instance `trusted`. The key is ignored unless the tool
    /// [instructs](crate::ToolAnnotations::instructs): the results of other tools are untrusted.
    pub const TRUST: &str = "trust";
    /// The [kind](crate::Correction::kind) of the correction that the tool engine made to invalid arguments,
    /// such as `replace_all`. The model reads a description of the correction.
    pub const CORRECTION: &str = "correction";
    /// Advice for the model, in the words that the model reads.
    pub const SUGGESTION: &str = "suggestion";
    /// `person` if a person answered or refused the call, so that the tool did not run.
    pub const ANSWERED_BY: &str = "answered_by";
    /// True if the purpose of the call was to ask a person for agreement, and the person agreed.
    pub const APPROVED: &str = "approved";
    /// For a call that was refused because nobody could be asked: the narrowest permission rule that would
    /// allow the call, or an empty text if no rule would.
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
    /// The call failed or was refused, or its effect is unknown.
    Error,
    /// The call was stopped because it exceeded its time limit.
    Timeout,
    /// The call was cancelled or never started.
    Cancelled,
}

/// A file with the data of a tool result. The data was too large for the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataFile {
    /// The path of the file.
    pub path: String,
    /// The size of the file in bytes.
    pub size_bytes: u64,
    /// The first 16 hexadecimal digits of the SHA-256 of the file.
    pub hash: String,
    /// A description of the data, as one line.
    pub summary: String,
}

/// The level of detail of a formatted result.
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
