//! The complete conversation, message by message, from which every view is made.

use std::sync::Arc;

use archon_types::{
    Attributed, Content, Message, SnapshotMessage, Speaker, TokenCounter, Trust, UserMessage, ViewPart,
    WindowItem,
};
use serde::{Deserialize, Serialize};

use super::truncate;
use crate::text_mode::OBSERVATION;

/// A message as it arrived, and as it entered the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The message as it arrived.
    pub(crate) message: Arc<Message>,
    /// The shortened message that entered the window, if the message was too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clipped: Option<Arc<Message>>,
    /// Estimated tokens of the message that entered the window, counted once.
    pub(crate) tokens: u64,
    /// The author; unknown in state that older versions stored.
    #[serde(default)]
    pub(crate) by: Speaker,
    /// The trust level; untrusted in state that older versions stored.
    #[serde(default)]
    pub(crate) trust: Trust,
    /// The original message, if `message` is a rewording or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<Arc<Message>>,
    /// The name under which a tool result is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pinned: Option<String>,
}

impl Entry {
    /// Creates an untrusted entry.
    pub(crate) fn new(message: Arc<Message>, tokens: u64, by: Speaker) -> Self {
        Self { message, clipped: None, tokens, by, trust: Trust::Untrusted, said: None, pinned: None }
    }

    /// Returns the message that entered the window.
    pub(crate) fn entered(&self) -> &Arc<Message> {
        self.clipped.as_ref().unwrap_or(&self.message)
    }

    /// Returns the original message with its author and trust level.
    pub(crate) fn attributed(&self) -> Attributed {
        Attributed::new(self.original().clone(), self.by).with_trust(self.trust)
    }

    /// Returns the lowest trust level of the message and of the files and memories in it.
    pub(crate) fn least_trust(&self) -> Trust {
        match &**self.original() {
            Message::User(user) => self.trust.min(user.added_trust()),
            _ => self.trust,
        }
    }

    fn original(&self) -> &Arc<Message> {
        self.said.as_ref().unwrap_or(&self.message)
    }

    /// Returns true if the model sees the original message.
    pub(crate) fn is_whole(&self) -> bool {
        self.said.is_none() && self.clipped.is_none()
    }

    /// Returns the entry for a later run, which starts with `message` instead of this entry.
    pub(crate) fn seen_as(&self, message: Arc<Message>, tokens: u64) -> Self {
        let said = self.original();
        let said = (!Arc::ptr_eq(said, &message)).then(|| said.clone());
        let pinned = self.pinned.clone();
        Self { said, trust: self.trust, pinned, ..Self::new(message, tokens, self.by) }
    }

    /// Returns true if this entry equals `other`, an entry of an earlier fold: the same shared message, tokens,
    /// author, trust level and name of the pin.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.entered(), other.entered())
            && (self.tokens, self.by, self.trust) == (other.tokens, other.by, other.trust)
            && self.pinned == other.pinned
    }
}

impl From<SnapshotMessage> for Entry {
    fn from(stored: SnapshotMessage) -> Self {
        let SnapshotMessage { message, tokens, speaker: by, trust, original: said, pinned } = stored;
        Self { trust, said, pinned, ..Self::new(message, tokens, by) }
    }
}

/// The part of the entry that a later run reads.
impl From<&Entry> for SnapshotMessage {
    fn from(entry: &Entry) -> Self {
        let seen = entry.seen_as(entry.entered().clone(), entry.tokens);
        let Entry { tokens, by, trust, said, pinned, .. } = seen;
        Self { message: entry.entered().clone(), tokens, speaker: by, trust, original: said, pinned }
    }
}

/// Returns true if the message is the result of a tool call; in text mode, an observation.
pub(crate) fn is_result(message: &Message) -> bool {
    match message {
        Message::ToolResult(_) => true,
        Message::User(user) => {
            user.content.first().and_then(Content::as_text).is_some_and(|t| t.starts_with(OBSERVATION))
        }
        Message::Assistant(_) => false,
    }
}

/// Applies `parts` to the first `covers` entries and returns the messages; `None` if the parts break a
/// rule of [`CompactionStrategy`](archon_types::CompactionStrategy).
pub(crate) fn items(
    entries: &[Entry],
    pins: &[usize],
    parts: &[ViewPart],
    covers: u64,
    counter: &dyn TokenCounter,
) -> Option<Vec<WindowItem>> {
    let (covered, rest) = entries.split_at_checked(usize::try_from(covers).ok()?)?;
    // A turn must be covered as a whole or not at all.
    if rest.first().is_some_and(|entry| matches!(&*entry.message, Message::ToolResult(_))) {
        return None;
    }
    let mut items = Vec::with_capacity(parts.len());
    let mut next = 0;
    for part in parts {
        let range = part.range();
        if range.start < next || range.is_empty() || range.end > covers {
            return None;
        }
        next = range.end;
        let (from, to) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
        match part {
            ViewPart::Keep { .. } => {
                items.extend((from..to).map(|at| unchanged_item(&covered[at], at, pins)))
            }
            ViewPart::Digest { text, .. } => {
                let message = digest(text, &covered[to - 1].message);
                items.push(changed(part, message, counter));
            }
            ViewPart::Truncate { lines, .. } if is_result(&covered[from].message) => {
                let message = truncate::message_to_lines(covered[from].entered(), *lines);
                items.push(changed(part, message, counter));
            }
            ViewPart::Rewrite { text, .. } if is_result(&covered[from].message) => {
                items.push(changed(part, rewritten(&covered[from].message, text), counter));
            }
            _ => return None,
        }
    }
    let pinned = items.iter().filter(|item| item.pinned).count();
    let expected = pins.iter().filter(|pin| **pin < covered.len()).count();
    (pinned == expected && pairs_hold(&items)).then_some(items)
}

/// Returns the item of an unchanged entry.
pub(crate) fn unchanged_item(entry: &Entry, at: usize, pins: &[usize]) -> WindowItem {
    let from = at as u64;
    WindowItem {
        part: ViewPart::Keep { from, to: from + 1 },
        message: entry.entered().clone(),
        tokens: entry.tokens,
        pinned: pins.binary_search(&at).is_ok(),
    }
}

/// Returns the item of a message that a part changed.
pub(crate) fn changed(part: &ViewPart, message: Message, counter: &dyn TokenCounter) -> WindowItem {
    let tokens = counter.count_message(&message);
    WindowItem { part: part.clone(), message: Arc::new(message), tokens, pinned: false }
}

/// Returns a user message that replaces a stretch ending with `last`.
pub(crate) fn digest(text: &str, last: &Message) -> Message {
    Message::user(text, last.timestamp())
}

/// Returns the message with `text` as its content. A tool result keeps its call id.
pub(crate) fn rewritten(message: &Message, text: &str) -> Message {
    let content = vec![Content::text(text)];
    match message {
        Message::ToolResult(result) => {
            Message::ToolResult(archon_types::ToolResultMessage { content, ..result.clone() })
        }
        other => Message::User(UserMessage::new(content, other.timestamp())),
    }
}

/// Returns the items as view parts, with adjacent kept items merged.
pub(crate) fn parts(items: &[WindowItem]) -> Vec<ViewPart> {
    let mut parts: Vec<ViewPart> = Vec::new();
    for item in items {
        match (parts.last_mut(), &item.part) {
            (Some(ViewPart::Keep { to: end, .. }), ViewPart::Keep { from, to }) if *end == *from => {
                *end = *to
            }
            _ => parts.push(item.part.clone()),
        }
    }
    parts
}

/// Returns true if every call has one result directly after it, and every result its call.
fn pairs_hold(items: &[WindowItem]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for item in items {
        match &*item.message {
            Message::ToolResult(result) => {
                let Some(at) = open.iter().position(|id| *id == result.tool_call_id.as_str()) else {
                    return false;
                };
                open.swap_remove(at);
            }
            other if open.is_empty() => {
                open.extend(other.content().iter().filter_map(Content::as_tool_call).map(|c| c.id.as_str()));
            }
            _ => return false,
        }
    }
    open.is_empty()
}
