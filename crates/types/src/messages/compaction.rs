//! Compaction: makes a conversation shorter so that it fits the model's context window.
//!
//! The conversation itself is never changed. A [`Compaction`] says which of its messages the model still
//! sees, and in which form. It is logged, so that every fold of the log has the same view; a fold without the
//! record undoes it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    context_config::ContextConfig,
    message::{Message, Usage},
    tokens::TokenCounter,
};

/// The result of a compaction. It refers to messages by their index in the run's whole conversation, from 0,
/// including messages of earlier runs of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Compaction {
    /// The level that was needed.
    pub level: CompactionLevel,
    /// True if the model's service had refused the request as too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overflow: bool,
    /// Estimated tokens of the messages before.
    pub tokens_before: u64,
    /// Estimated tokens of the messages after.
    pub tokens_after: u64,
    /// The number of messages in the conversation. Later messages follow the view unchanged.
    pub messages: u64,
    /// The parts that the model sees, in order. A message that is in no part is left out.
    pub view: Vec<ViewPart>,
}

impl Compaction {
    /// Creates a compaction of the first `messages` messages.
    pub fn new(level: CompactionLevel, messages: u64, view: Vec<ViewPart>) -> Self {
        Self { level, messages, view, ..Self::default() }
    }
}

/// The level of a compaction. Higher levels lose more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionLevel {
    /// Results that the model removed with the cleanup tool become a note.
    CleanUp,
    /// Only the newest reading of a file stays.
    #[default]
    Deduplicate,
    /// Old tool results are cut to some lines.
    TruncateResults,
    /// A model's summary replaces old turns.
    Summarize,
    /// Each old turn becomes one line.
    DigestTurns,
    /// Only the latest messages and the goal stay.
    Trim,
    /// The first and the latest messages stay; the middle becomes a summary.
    DropMiddle,
    /// Every tool result is cut, also the latest.
    TruncateAll,
    /// Only the very latest messages and the goal stay.
    ForceTrim,
}

/// One part of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "part", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewPart {
    /// Messages without a change.
    Keep {
        /// The index of the first.
        from: u64,
        /// One past the last.
        to: u64,
    },
    /// A message whose text is cut to its first and last lines.
    Truncate {
        /// The index of the message.
        at: u64,
        /// The number of lines that stay.
        lines: u32,
    },
    /// A message with its content replaced by a text; the id of its call stays.
    Rewrite {
        /// The index of the message.
        at: u64,
        /// The text that the model reads.
        text: String,
    },
    /// A user message that replaces a range of the conversation.
    Digest {
        /// The index of the first message that it replaces.
        from: u64,
        /// One past the last.
        to: u64,
        /// The text that the model reads.
        text: String,
    },
}

impl ViewPart {
    /// Returns the range of the conversation that the part covers.
    pub fn range(&self) -> std::ops::Range<u64> {
        match self {
            Self::Keep { from, to } | Self::Digest { from, to, .. } => *from..*to,
            Self::Truncate { at, .. } | Self::Rewrite { at, .. } => *at..at.saturating_add(1),
        }
    }
}

/// One message as the model sees it now, with the part of the view that it comes from.
#[derive(Clone, Debug)]
pub struct WindowItem {
    /// The part of the current view. A [`ViewPart::Keep`] has exactly one message here.
    pub part: ViewPart,
    /// The message that the model reads.
    pub message: Arc<Message>,
    /// Its estimated tokens.
    pub tokens: u64,
    /// True if it has to stay: the goal, or a message of a person in this run.
    pub pinned: bool,
}

/// The input of a [`CompactionStrategy`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CompactionInput<'a> {
    /// The messages that the model sees now, in order.
    pub items: &'a [WindowItem],
    /// The most tokens of the result, counted by `counter`.
    pub target: u64,
    /// Settings of the context window.
    pub config: &'a ContextConfig,
    /// The token counter.
    pub counter: &'a dyn TokenCounter,
    /// A model's summary of old turns, if one was made.
    pub summary: Option<&'a Summary>,
}

impl<'a> CompactionInput<'a> {
    /// Creates the input, without a summary.
    pub fn new(
        items: &'a [WindowItem],
        target: u64,
        config: &'a ContextConfig,
        counter: &'a dyn TokenCounter,
    ) -> Self {
        Self { items, target, config, counter, summary: None }
    }
}

/// Decides which messages to cut or replace when a conversation outgrows its window.
///
/// The view must keep every pinned message, have messages in order and at most once, and keep the results of
/// each call that it keeps. A view that breaks a rule is not used; the built-in tiers decide then. The result
/// should depend on the input alone. If it does not, a run can still be replayed, since the view is logged.
pub trait CompactionStrategy: Send + Sync {
    /// Returns the new view and its level, or `None` to change nothing.
    fn compact(&self, input: CompactionInput<'_>) -> Option<(CompactionLevel, Vec<ViewPart>)>;
}

/// A model's summary of a range of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The index of the first message that it covers.
    pub from: u64,
    /// One past the last.
    pub to: u64,
    /// The text; none if the model gave no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Tokens of the call.
    #[serde(default)]
    pub usage: Usage,
}

/// The fill level of the context window, in the words that the model reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextLevel {
    /// Below 70 %.
    #[default]
    Normal,
    /// From 70 %.
    Moderate,
    /// From 85 %.
    Aggressive,
    /// From 95 %.
    Critical,
}

impl ContextLevel {
    /// Returns the level for a fill level in percent.
    pub fn at(percent: u8) -> Self {
        match percent {
            0..70 => Self::Normal,
            70..85 => Self::Moderate,
            85..95 => Self::Aggressive,
            _ => Self::Critical,
        }
    }

    pub(crate) fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}
