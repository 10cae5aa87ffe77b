//! The conversation at the beginning of a run, repeated in its log, so that the logs of earlier runs need not
//! be read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    messages::{ContextLevel, Message, Speaker, Tokenizer, ToolResult, Trust},
    values::RunId,
};

/// The state at the end of the runs before a run, as a fold of their logs: the conversation, or its last part
/// if `base` has the rest. Few runs of a session have one, and each message of a session is in few of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct SessionSnapshot {
    /// The number of earlier runs in the conversation.
    pub runs: u32,
    /// The run that carries the part before `messages` and `seen`; none if there is no such part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<RunId>,
    /// The messages as the model read them, oldest first.
    pub messages: Vec<SnapshotMessage>,
    /// Reports of calls about the files that they read or wrote, oldest first; for each file only the latest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SnapshotResult>,
    /// The tokenizer that counted the messages; none if they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<Tokenizer>,
    /// The level of the window of which the model was told last.
    #[serde(skip_serializing_if = "ContextLevel::is_normal")]
    pub context_level: ContextLevel,
    /// The used part of a budget that branches share.
    pub spent: SnapshotSpending,
    /// Rules under which nobody is asked for the rest of the session, in `workspace`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_rules: Vec<String>,
    /// The folder that the previous run worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The bytes of `messages` and `seen`.
    pub bytes: u64,
    /// The bytes of all messages that the earlier runs added.
    pub message_bytes: u64,
    /// The bytes that the earlier runs and this one carry in total.
    pub snapshot_bytes: u64,
}

/// A message of the conversation at the beginning of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotMessage {
    /// The message as the model reads it.
    pub message: Arc<Message>,
    /// Estimated tokens.
    #[serde(default)]
    pub tokens: u64,
    /// The speaker.
    #[serde(default)]
    pub speaker: Speaker,
    /// The trust level.
    #[serde(default)]
    pub trust: Trust,
    /// The original message, if the model reads a changed or shortened one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Arc<Message>>,
}

/// A call's report about a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotResult {
    /// The tool that was called.
    pub tool: String,
    /// The call's result, without its content.
    pub result: ToolResult,
}

/// The used part of a budget that several runs share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotSpending {
    /// Turns.
    pub turns: u32,
    /// Tokens.
    pub tokens: u64,
    /// Money in millionths of a currency unit.
    #[serde(default)]
    pub cost_micros: u64,
}
