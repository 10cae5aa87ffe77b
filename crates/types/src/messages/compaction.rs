//! Compaction: shortens a conversation so that it fits the model's context window.
//!
//! The conversation itself is never changed. A [`Compaction`] lists the messages that the model still sees,
//! and their form. The log stores it, so that every fold of the log has the same view; a fold without the
//! record has the whole conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    context_config::ContextConfig,
    message::{Message, Usage},
    tokens::TokenCounter,
};

/// The result of a compaction. A message is named by its index, from 0, in the whole conversation of the run,
/// including the earlier runs of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Compaction {
    /// The highest level of compaction that was needed to make the conversation fit.
    pub level: CompactionLevel,
    /// True if the model's service had refused the request because it was too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overflow: bool,
    /// The estimated number of tokens of the messages before the compaction.
    pub tokens_before: u64,
    /// The estimated number of tokens of the messages after the compaction.
    pub tokens_after: u64,
    /// The number of messages in the conversation at the time of the compaction. The model sees later
    /// messages unchanged, after those of `view`.
    pub messages: u64,
    /// The parts of the conversation that the model sees, in order. The model does not see a message that is
    /// in no part.
    pub view: Vec<ViewPart>,
}

impl Compaction {
    /// Creates a compaction of the first `messages` messages.
    pub fn new(level: CompactionLevel, messages: u64, view: Vec<ViewPart>) -> Self {
        Self { level, messages, view, ..Self::default() }
    }
}

/// The level of a compaction. Higher levels lose more of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionLevel {
    /// A note replaces each result that the model removed with the cleanup tool.
    CleanUp,
    /// Only the latest content of each file stays.
    #[default]
    Deduplicate,
    /// Old tool results are shortened to some lines.
    TruncateResults,
    /// A model's summary replaces old turns.
    Summarize,
    /// One line replaces each old turn.
    DigestTurns,
    /// Only the latest messages and the goal stay.
    Trim,
    /// The first and the latest messages stay; a summary replaces the middle.
    DropMiddle,
    /// Every tool result is shortened, also the latest.
    TruncateAll,
    /// Only a few of the latest messages and the goal stay.
    ForceTrim,
}

/// One part of a compacted conversation: a message or a range of messages, in the form that the model sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "part", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewPart {
    /// A range of unchanged messages.
    Keep {
        /// The index of the first message.
        from: u64,
        /// The index after the last message.
        to: u64,
    },
    /// A message whose text is shortened to its first and last lines.
    Truncate {
        /// The index of the message.
        at: u64,
        /// The number of lines that remain.
        lines: u32,
    },
    /// A message whose content a text replaces; the id of its tool call stays.
    Rewrite {
        /// The index of the message.
        at: u64,
        /// The text that the model reads.
        text: String,
    },
    /// A user message that replaces a range of the conversation.
    Digest {
        /// The index of the first message that is replaced.
        from: u64,
        /// The index after the last message that is replaced.
        to: u64,
        /// The text that the model reads.
        text: String,
    },
}

impl ViewPart {
    /// Returns the indexes of the messages that the part covers: from 0, in the whole conversation.
    pub fn range(&self) -> std::ops::Range<u64> {
        match self {
            Self::Keep { from, to } | Self::Digest { from, to, .. } => *from..*to,
            Self::Truncate { at, .. } | Self::Rewrite { at, .. } => *at..at.saturating_add(1),
        }
    }
}

/// One message as the model sees it now, with the part of the view that the message comes from.
#[derive(Clone, Debug)]
pub struct WindowItem {
    /// The part of the current view. Here a [`ViewPart::Keep`] has exactly one message.
    pub part: ViewPart,
    /// The message that the model reads.
    pub message: Arc<Message>,
    /// The estimated number of tokens of the message.
    pub tokens: u64,
    /// True if a compaction must keep the message as it is: the goal, a message of a person in this run, a
    /// pinned result, or the call of a pinned result.
    pub pinned: bool,
}

/// The input of a [`CompactionStrategy`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CompactionInput<'a> {
    /// The messages that the model sees now, in order.
    pub items: &'a [WindowItem],
    /// The maximum number of tokens of the compacted conversation, as `counter` counts them.
    pub target: u64,
    /// The settings of the context window.
    pub config: &'a ContextConfig,
    /// The token counter.
    pub counter: &'a dyn TokenCounter,
    /// A model's summary of old turns; `None` if none was made.
    pub summary: Option<&'a Summary>,
}

impl<'a> CompactionInput<'a> {
    /// Creates an input without a summary.
    pub fn new(
        items: &'a [WindowItem],
        target: u64,
        config: &'a ContextConfig,
        counter: &'a dyn TokenCounter,
    ) -> Self {
        Self { items, target, config, counter, summary: None }
    }
}

/// Selects the messages to shorten or replace when a conversation outgrows the context window.
///
/// Rules for the view that is returned: it has every pinned message; its messages are in order, each at most
/// once; if it has a tool call, it also has the results of the call. If a view breaks a rule, the built-in
/// strategy decides instead. The result should depend on the input alone. Replay does not need the strategy,
/// because the log has the view.
///
/// ```
/// use archon_types::{CompactionInput, CompactionLevel, CompactionStrategy, ViewPart};
///
/// /// Keeps the newest 20 messages and the pinned ones.
/// struct NewestOnly;
///
/// impl CompactionStrategy for NewestOnly {
///     fn compact(&self, input: CompactionInput<'_>) -> Option<(CompactionLevel, Vec<ViewPart>)> {
///         let first = input.items.len().checked_sub(20)?;
///         let items = input.items.iter().enumerate();
///         let kept = items.filter(|(place, item)| *place >= first || item.pinned);
///         Some((CompactionLevel::Trim, kept.map(|(_, item)| item.part.clone()).collect()))
///     }
/// }
/// ```
pub trait CompactionStrategy: Send + Sync {
    /// Returns the level of the compaction and the new view: the parts of the conversation that the model
    /// then sees. `None` changes nothing.
    fn compact(&self, input: CompactionInput<'_>) -> Option<(CompactionLevel, Vec<ViewPart>)>;
}

/// A model's summary of a range of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The index of the first message that the summary covers.
    pub from: u64,
    /// The index after the last message.
    pub to: u64,
    /// The text; `None` if the model gave no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tokens of the model call.
    #[serde(default)]
    pub usage: Usage,
}

/// The fill level of a context window. Messages about the window tell the model the name of the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextLevel {
    /// Below 70 % of the window.
    #[default]
    Normal,
    /// From 70 % of the window on.
    Moderate,
    /// From 85 % of the window on.
    Aggressive,
    /// From 95 % of the window on.
    Critical,
}

impl ContextLevel {
    /// Returns the level of a window that is filled to `percent` percent.
    pub fn at(percent: u8) -> Self {
        match percent {
            0..70 => Self::Normal,
            70..85 => Self::Moderate,
            85..95 => Self::Aggressive,
            _ => Self::Critical,
        }
    }
}
