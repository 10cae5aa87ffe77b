//! The whole conversation, message by message, under whatever the model sees of it now.

use std::sync::Arc;

use archon_types::{
    CarriedMessage, Content, Message, Said, Speaker, TokenCounter, Trust, UserMessage, ViewPart, WindowItem,
};
use serde::{Deserialize, Serialize};

use super::truncate;
use crate::text_mode::OBSERVATION;

/// A message as it came, and as it entered the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// As it came.
    pub(crate) message: Arc<Message>,
    /// As it entered, where it was too large for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clipped: Option<Arc<Message>>,
    /// Estimated tokens of what entered; counted once.
    pub(crate) tokens: u64,
    /// Who said it; nobody knows of what was stored before that was noted.
    #[serde(default)]
    pub(crate) by: Speaker,
    /// How far it is believed; not at all, if it was stored before that was noted.
    #[serde(default)]
    pub(crate) trust: Trust,
    /// What was said, where `message` is that in other words or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<Arc<Message>>,
}

impl Entry {
    /// A message that nobody vouches for.
    pub(crate) fn new(message: Arc<Message>, tokens: u64, by: Speaker) -> Self {
        Self { message, clipped: None, tokens, by, trust: Trust::Untrusted, said: None }
    }

    /// What entered the window.
    pub(crate) fn entered(&self) -> &Arc<Message> {
        self.clipped.as_ref().unwrap_or(&self.message)
    }

    /// What was said, and by whom.
    pub(crate) fn said(&self) -> Said {
        Said::new(self.as_said().clone(), self.by).believed(self.trust)
    }

    /// How far all of it is believed, with what the model is told from memory.
    pub(crate) fn least_trust(&self) -> Trust {
        match &**self.as_said() {
            Message::User(user) => self.trust.min(user.least_told()),
            _ => self.trust,
        }
    }

    fn as_said(&self) -> &Arc<Message> {
        self.said.as_ref().unwrap_or(&self.message)
    }

    /// Whether the model sees it as it was said.
    pub(crate) fn is_whole(&self) -> bool {
        self.said.is_none() && self.clipped.is_none()
    }

    /// The entry of a later run, which begins with what the model saw of this one.
    pub(crate) fn seen_as(&self, message: Arc<Message>, tokens: u64) -> Self {
        let said = self.as_said();
        let said = (!Arc::ptr_eq(said, &message)).then(|| said.clone());
        Self { said, trust: self.trust, ..Self::new(message, tokens, self.by) }
    }
}

impl Entry {
    /// Whether it is that of an earlier fold, whose messages it shares.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.entered(), other.entered())
            && (self.tokens, self.by, self.trust) == (other.tokens, other.by, other.trust)
    }
}

impl From<CarriedMessage> for Entry {
    fn from(carried: CarriedMessage) -> Self {
        let CarriedMessage { message, tokens, by, trust, said } = carried;
        Self { trust, said, ..Self::new(message, tokens, by) }
    }
}

/// What a later run reads of it.
impl From<&Entry> for CarriedMessage {
    fn from(entry: &Entry) -> Self {
        let Entry { tokens, by, trust, said, .. } = entry.seen_as(entry.entered().clone(), entry.tokens);
        Self { message: entry.entered().clone(), tokens, by, trust, said }
    }
}

/// Whether the message answers a tool call, in text mode as an observation.
pub(crate) fn is_result(message: &Message) -> bool {
    match message {
        Message::ToolResult(_) => true,
        Message::User(user) => {
            user.content.first().and_then(Content::as_text).is_some_and(|t| t.starts_with(OBSERVATION))
        }
        Message::Assistant(_) => false,
    }
}

/// The messages that `parts` make of the first `covers` entries; `None` if they break a rule of
/// [`CompactionStrategy`](archon_types::CompactionStrategy).
pub(crate) fn items(
    entries: &[Entry],
    pins: &[usize],
    parts: &[ViewPart],
    covers: u64,
    counter: &dyn TokenCounter,
) -> Option<Vec<WindowItem>> {
    let (covered, rest) = entries.split_at_checked(usize::try_from(covers).ok()?)?;
    // A turn is covered as a whole or not at all.
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
            ViewPart::Keep { .. } => items.extend((from..to).map(|at| kept(&covered[at], at, pins))),
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

/// An entry as an item that stays as it is.
pub(crate) fn kept(entry: &Entry, at: usize, pins: &[usize]) -> WindowItem {
    let from = at as u64;
    WindowItem {
        part: ViewPart::Keep { from, to: from + 1 },
        message: entry.entered().clone(),
        tokens: entry.tokens,
        pinned: pins.binary_search(&at).is_ok(),
    }
}

/// An item that a part made.
pub(crate) fn changed(part: &ViewPart, message: Message, counter: &dyn TokenCounter) -> WindowItem {
    let tokens = counter.count_message(&message);
    WindowItem { part: part.clone(), message: Arc::new(message), tokens, pinned: false }
}

/// A user message that stands for a stretch which ends with `last`.
pub(crate) fn digest(text: &str, last: &Message) -> Message {
    Message::user(text, last.timestamp())
}

/// The message with another text in place of its content; a result keeps its call.
pub(crate) fn rewritten(message: &Message, text: &str) -> Message {
    let content = vec![Content::text(text)];
    match message {
        Message::ToolResult(result) => {
            Message::ToolResult(archon_types::ToolResultMessage { content, ..result.clone() })
        }
        other => Message::User(UserMessage::new(content, other.timestamp())),
    }
}

/// Items in order as the fewest parts.
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

/// Whether every call has its one result right behind it, and every result its call.
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
