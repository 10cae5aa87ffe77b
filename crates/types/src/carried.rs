//! The conversation that a run begins with, repeated in its log, so that whoever folds the log need not fold the logs of
//! all runs before it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Message, RunId, Speaker, Tokenizer, ToolResult, Trust};

/// What the runs before a run left, as a fold of their logs: the conversation, or the end of it where `base` has its
/// beginning. Few runs of a session have one, and each message of a session is in few of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct Carried {
    /// How many runs the conversation had before this one.
    pub runs: u32,
    /// The run that carries what comes before `messages` and `seen`; without one nothing comes before them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<RunId>,
    /// What the model read, oldest first.
    pub messages: Vec<CarriedMessage>,
    /// What calls told of the files that they read or wrote, oldest first; of each file the latest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<CarriedResult>,
    /// Who counted the tokens of the messages; nobody if they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<Tokenizer>,
    /// What was spent of the budget that a branch shares.
    pub spent: CarriedSpending,
    /// Rules under which nobody is asked for the rest of the session, in `workspace`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// The folder that the run before worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Bytes of `messages` and `seen`.
    pub bytes: u64,
    /// Bytes of all messages that the runs before this one added.
    pub bytes_said: u64,
    /// Bytes of all that the runs before this one, and this one, carry.
    pub bytes_carried: u64,
}

/// A message of a conversation that a run begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CarriedMessage {
    /// As the model reads it.
    pub message: Arc<Message>,
    /// Estimated tokens.
    #[serde(default)]
    pub tokens: u64,
    /// Who said it.
    #[serde(default)]
    pub by: Speaker,
    /// How far it is believed.
    #[serde(default)]
    pub trust: Trust,
    /// What was said, where the model reads that in other words or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Arc<Message>>,
}

/// What a call told of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CarriedResult {
    /// The tool that was called.
    pub tool: String,
    /// The call's result, without its content.
    pub result: ToolResult,
}

/// What was spent of a budget that several runs share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CarriedSpending {
    /// Turns.
    pub turns: u32,
    /// Tokens.
    pub tokens: u64,
    /// In millionths of a currency unit.
    #[serde(default)]
    pub money: u64,
}
