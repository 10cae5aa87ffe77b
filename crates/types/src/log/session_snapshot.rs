//! The snapshot of a session's conversation at the beginning of a run, kept in the run's log, so that the
//! logs of earlier runs need not be read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    messages::{ContextLevel, Message, Speaker, Tokenizer, ToolResult, Trust},
    tools::SessionMode,
    values::RunId,
};

/// The state of a session before a run, folded from the logs of the earlier runs. The snapshot has the whole
/// conversation, or only the last part if the snapshot of an earlier run ([`base`](Self::base)) has the first
/// part. Few runs have a snapshot, and each message is in few snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct SessionSnapshot {
    /// The number of earlier runs in the conversation.
    pub runs: u32,
    /// The earlier run whose snapshot has the messages and results before those in `messages` and `seen`;
    /// `None` if there are no earlier ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<RunId>,
    /// The messages as the model read them, oldest first.
    pub messages: Vec<SnapshotMessage>,
    /// The result of the latest call for each file that tool calls read or wrote, and for each command in the
    /// background; the oldest result first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SnapshotResult>,
    /// The tokenizer that counted the tokens of the messages; `None` if they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<Tokenizer>,
    /// The last fill level of the context window that the model was told.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub context_level: ContextLevel,
    /// The turns, tokens and money that the earlier runs used, which a fork counts against its own limits.
    pub spent: SnapshotSpending,
    /// The permission rules that a person trusted: for the rest of the session, calls that match them need no
    /// question. The rules apply only in the folder `workspace`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_rules: Vec<String>,
    /// The mode of the session.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub mode: SessionMode,
    /// The folder that the previous run worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The size of `messages` and `seen` in bytes.
    pub bytes: u64,
    /// The size in bytes of all messages that the earlier runs added.
    pub message_bytes: u64,
    /// The total size in bytes of the snapshots of the earlier runs and of this one.
    pub snapshot_bytes: u64,
}

/// A message of the conversation at the beginning of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotMessage {
    /// The message as the model reads it.
    pub message: Arc<Message>,
    /// The estimated number of tokens.
    #[serde(default)]
    pub tokens: u64,
    /// The speaker of the message.
    #[serde(default)]
    pub speaker: Speaker,
    /// The trust level of the message.
    #[serde(default)]
    pub trust: Trust,
    /// The original message, if the model reads a changed or shortened version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Arc<Message>>,
    /// The name under which the message, a tool result, is pinned; `None` if it is not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
}

/// The result of a tool call about a file or a command in the background, without the content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotResult {
    /// The tool that was called.
    pub tool: String,
    /// The call's result, without its content.
    pub result: ToolResult,
}

/// The turns, tokens and money that earlier runs of a session used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotSpending {
    /// The number of turns.
    pub turns: u32,
    /// The number of tokens.
    pub tokens: u64,
    /// The cost in millionths of a currency unit.
    #[serde(default)]
    pub cost_micros: u64,
}
