//! Compaction: a smaller view of a conversation that has outgrown the model's context window.
//!
//! The conversation itself is never changed. A [`Compaction`] says which of its messages the model goes
//! on to see, and how; it stands in the log, so that whoever folds the log sees the same. Leaving the
//! record out of the fold undoes it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{ContextConfig, Message, TokenCounter, Usage};

/// What a compaction came to. Messages are named by their place in the run's whole conversation, from
/// 0, what an earlier run of the session left included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Compaction {
    /// How far it had to go.
    pub level: CompactionLevel,
    /// Set if the model's service had refused the request as too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overflow: bool,
    /// Estimated tokens of the messages before.
    pub tokens_before: u64,
    /// Estimated tokens of the messages after.
    pub tokens_after: u64,
    /// How many messages the conversation had. Later ones follow the view as they are.
    pub messages: u64,
    /// What the model sees of them, in order. A message that no part names is left out.
    pub view: Vec<ViewPart>,
}

impl Compaction {
    /// A compaction of the first `messages` messages.
    pub fn new(level: CompactionLevel, messages: u64, view: Vec<ViewPart>) -> Self {
        Self { level, messages, view, ..Self::default() }
    }
}

/// How far a compaction goes. Later ones lose more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionLevel {
    /// A note stands for each result that the model gave up.
    CleanUp,
    /// Only the newest reading of a file stays.
    #[default]
    Deduplicate,
    /// Old tool results are cut to some lines.
    TruncateResults,
    /// A model's summary stands for old turns.
    Summarize,
    /// Old turns become a line each.
    DigestTurns,
    /// Only the latest messages stay, and the goal.
    Trim,
    /// The first and the latest messages stay; the middle becomes a summary.
    DropMiddle,
    /// Every tool result is cut, the latest too.
    TruncateAll,
    /// Only the very latest messages stay, and the goal.
    ForceTrim,
}

/// One part of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "part", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewPart {
    /// Messages as they entered the window.
    Keep {
        /// The first.
        from: u64,
        /// One past the last.
        to: u64,
    },
    /// A message whose text is cut to its first and last lines.
    Truncate {
        /// Which.
        at: u64,
        /// Lines that stay.
        lines: u32,
    },
    /// A message with another text in place of its content: it keeps its call.
    Rewrite {
        /// Which.
        at: u64,
        /// What the model reads.
        text: String,
    },
    /// A user message that stands for a stretch of the conversation.
    Digest {
        /// The first message it stands for.
        from: u64,
        /// One past the last.
        to: u64,
        /// What the model reads.
        text: String,
    },
}

impl ViewPart {
    /// The stretch of the conversation that the part stands for.
    pub fn range(&self) -> std::ops::Range<u64> {
        match self {
            Self::Keep { from, to } | Self::Digest { from, to, .. } => *from..*to,
            Self::Truncate { at, .. } | Self::Rewrite { at, .. } => *at..at.saturating_add(1),
        }
    }
}

/// One message as the model sees it now, with what it stands for.
#[derive(Clone, Debug)]
pub struct WindowItem {
    /// Which part of the present view it is. [`ViewPart::Keep`] holds one message here.
    pub part: ViewPart,
    /// What the model reads.
    pub message: Arc<Message>,
    /// Its estimated tokens.
    pub tokens: u64,
    /// It has to stay: the goal, or what a person said in this run.
    pub pinned: bool,
}

/// What a [`CompactionStrategy`] is given.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CompactionInput<'a> {
    /// What the model sees now, in order.
    pub items: &'a [WindowItem],
    /// Tokens that the result should not exceed, counted by `counter`.
    pub target: u64,
    /// Sizes and shares.
    pub config: &'a ContextConfig,
    /// Counts tokens.
    pub counter: &'a dyn TokenCounter,
    /// A model's summary of old turns, if it was asked for one.
    pub summary: Option<&'a Summary>,
}

impl<'a> CompactionInput<'a> {
    /// A question to a strategy.
    pub fn new(
        items: &'a [WindowItem],
        target: u64,
        config: &'a ContextConfig,
        counter: &'a dyn TokenCounter,
    ) -> Self {
        Self { items, target, config, counter, summary: None }
    }
}

/// Decides what gives way when a conversation outgrows its window.
///
/// The view must keep every pinned message, name messages in order and at most once, and keep a call's
/// results where it keeps the call. A view that breaks this is not used; the built-in tiers decide then.
/// The answer should follow from the question alone. Where it does not, a run still replays: the view
/// stands in its log.
pub trait CompactionStrategy: Send + Sync {
    /// The view to use from now on and how far it goes, or `None` if everything should stay.
    fn compact(&self, input: CompactionInput<'_>) -> Option<(CompactionLevel, Vec<ViewPart>)>;
}

/// A model's summary of a stretch of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The first message it stands for.
    pub from: u64,
    /// One past the last.
    pub to: u64,
    /// What the model said; nothing if it gave no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Tokens of the call.
    #[serde(default)]
    pub usage: Usage,
}

/// How full the window is, in the words that the model is told.
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
    /// The level at a share of the window, in percent.
    pub fn at(percent: u8) -> Self {
        match percent {
            0..70 => Self::Normal,
            70..85 => Self::Moderate,
            85..95 => Self::Aggressive,
            _ => Self::Critical,
        }
    }
}
