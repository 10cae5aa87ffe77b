//! Draft of a compacted view: the messages that the model sees now, and the operations that remove or
//! shorten them. No operation separates a call from its results or removes a pinned message. The other results of
//! an answer with a pinned call may be shortened, but stay.

use std::{collections::HashMap, ops::Range};

use archon_types::{CompactionInput, Content, Json, Message, Summary, ToolCall, ViewPart, WindowItem};

use super::{
    cleanup, digest,
    entries::{changed, digest as digest_message, is_result, parts, rewritten},
    file_reads, truncate,
};

/// A compacted view under construction.
#[derive(Clone)]
pub(crate) struct Draft<'a> {
    input: CompactionInput<'a>,
    items: Vec<WindowItem>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(input: CompactionInput<'a>) -> Self {
        Self { input, items: input.items.to_vec() }
    }

    /// Returns the resulting view.
    pub(crate) fn view(&self) -> Vec<ViewPart> {
        parts(&self.items)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if the messages have at most the target number of tokens.
    pub(crate) fn fits(&self) -> bool {
        tokens_of(&self.items) <= self.input.target
    }

    /// Returns the range of messages that may change: after the first messages and before the last ones,
    /// which stay.
    pub(crate) fn middle(&self) -> Range<usize> {
        let config = self.input.config;
        let first = self.end_of_turn(config.keep_first as usize);
        let recent = self.start_of_turn(self.len().saturating_sub(config.keep_recent as usize));
        first..recent.max(first)
    }

    /// Replaces every read of a file except the newest by a pointer to the newest.
    pub(crate) fn deduplicate(&mut self) {
        let reads = self.file_reads();
        let mut newest: HashMap<&str, usize> = HashMap::new();
        for (at, key, _) in &reads {
            newest.insert(key, *at);
        }
        let mut pointers = Vec::new();
        for (at, key, path) in &reads {
            let new = newest[key.as_str()];
            let may = !self.items[*at].pinned && !matches!(self.items[*at].part, ViewPart::Rewrite { .. });
            if *at != new && may {
                let same = cleanup::is_same(&self.items[*at].message, &self.items[new].message);
                pointers.push((*at, file_reads::pointer(path, same)));
            }
        }
        for (at, text) in pointers {
            let item = &self.items[at];
            let message = rewritten(&item.message, &text);
            let part = ViewPart::Rewrite { at: item.part.range().start, text };
            let smaller = changed(&part, message, self.input.counter);
            if smaller.tokens < item.tokens {
                self.items[at] = smaller;
            }
        }
    }

    /// Cuts the tool results in `range` to the configured number of lines.
    pub(crate) fn truncate_results(&mut self, range: Range<usize>) {
        let lines = self.input.config.tool_output_max_lines;
        for item in &mut self.items[range] {
            let may =
                !item.pinned && !matches!(item.part, ViewPart::Digest { .. } | ViewPart::Rewrite { .. });
            if may && is_result(&item.message) && truncate::is_longer_than(&item.message, lines) {
                let part = ViewPart::Truncate { at: item.part.range().start, lines };
                *item = changed(&part, truncate::message_to_lines(&item.message, lines), self.input.counter);
            }
        }
    }

    /// Replaces the turns in `range` by one line each, if that is shorter.
    pub(crate) fn digest(&mut self, range: Range<usize>) {
        let input = self.input;
        self.replace(range, |stretch| {
            let short = digest_of(stretch, &digest::turns(stretch), input)?;
            (short.tokens < tokens_of(stretch)).then_some(vec![short]).or_else(|| Some(stretch.to_vec()))
        });
    }

    /// Returns the largest stretch of messages in the [`middle`](Self::middle) that has no pinned message, if it has
    /// several messages.
    pub(crate) fn old_turns(&self) -> Option<(Range<u64>, Vec<WindowItem>)> {
        let stretches = stretches(&self.items, self.middle());
        let longest = stretches
            .filter(|(stay, s)| !stay && s.len() > 1)
            .map(|(_, s)| s)
            .max_by_key(|s| tokens_of(s))?;
        let (first, last) = (longest.first()?.part.range(), longest.last()?.part.range());
        Some((first.start..last.end, longest.to_vec()))
    }

    /// Returns a draft in which a model's summary replaces the messages that the summary covers.
    pub(crate) fn summarized(&self, summary: Option<&Summary>) -> Option<Self> {
        let summary = summary?;
        let text = summary.text.as_deref()?;
        let start = self.items.iter().position(|item| is_of(summary, item))?;
        let end = start + self.items[start..].iter().take_while(|item| is_of(summary, item)).count();
        let mut shorter = self.clone();
        let text = digest::of_model(text);
        shorter.replace(start..end, |stretch| digest_of(stretch, &text, self.input).map(|item| vec![item]));
        Some(shorter)
    }

    /// Removes the messages in `range`, and inserts one summary of at most `lines` lines.
    pub(crate) fn drop_range(&mut self, range: Range<usize>, lines: usize) {
        let gone = self.droppable(range.clone());
        self.drop_for(range, digest::summary(&gone, lines));
    }

    /// Replaces the messages in `range` by `text`. Returns false, and changes nothing, if `text` is not
    /// shorter.
    fn drop_for(&mut self, range: Range<usize>, text: String) -> bool {
        if self.input.counter.count(&text) >= tokens_of(&self.droppable(range.clone())) {
            return false;
        }
        let (input, mut text) = (self.input, Some(text));
        self.replace(range, |stretch| digest_of(stretch, &text.take()?, input).map(|item| vec![item]));
        true
    }

    /// Removes the messages before the last `keep` ones. The last turn always remains whole.
    pub(crate) fn trim(&mut self, keep: usize, lines: usize) {
        self.drop_range(0..self.cut(keep), lines);
    }

    /// Returns a draft trimmed like [`trim`](Self::trim), with a model's summary. At most `lines` further
    /// lines summarize the removed messages that the model's summary does not cover.
    pub(crate) fn trimmed(&self, keep: usize, lines: usize, summary: Option<&Summary>) -> Option<Self> {
        let summary = summary?;
        let mut text = digest::of_model(summary.text.as_deref()?);
        let gone = self.droppable(0..self.cut(keep));
        let (of_model, since): (Vec<_>, Vec<_>) = gone.into_iter().partition(|item| is_of(summary, item));
        if of_model.is_empty() {
            return None;
        }
        if !since.is_empty() {
            text = format!("{text}\n{}", digest::summary(&since, lines));
        }
        let mut shorter = self.clone();
        shorter.drop_for(0..self.cut(keep), text).then_some(shorter)
    }

    /// Returns the messages that trimming removes, and their range, if a model's summary may be shorter.
    pub(crate) fn to_trim(&self, keep: usize) -> Option<(Range<u64>, Vec<WindowItem>)> {
        let gone = self.droppable(0..self.cut(keep));
        let (first, last) = (gone.first()?.part.range(), gone.last()?.part.range());
        let longest = self.input.config.summary_tokens.map_or(0, u64::from);
        (tokens_of(&gone) > longest).then_some((first.start..last.end, gone))
    }

    /// Returns the index of the first message that remains after trimming to the last `keep` messages.
    fn cut(&self, keep: usize) -> usize {
        let cut = self.end_of_turn(self.len().saturating_sub(keep));
        if cut == self.len() { self.start_of_turn(cut.saturating_sub(1)) } else { cut }
    }

    fn droppable(&self, range: Range<usize>) -> Vec<WindowItem> {
        let gone = stretches(&self.items, range).filter(|(stay, _)| !stay);
        gone.flat_map(|(_, stretch)| stretch.iter().cloned()).collect()
    }

    /// Replaces each stretch between pinned messages by the result of `change`; `None` removes the stretch.
    fn replace(
        &mut self,
        range: Range<usize>,
        mut change: impl FnMut(&[WindowItem]) -> Option<Vec<WindowItem>>,
    ) {
        let mut changed = self.items[..range.start].to_vec();
        for (stay, stretch) in stretches(&self.items, range.clone()) {
            match stay {
                true => changed.extend_from_slice(stretch),
                false => changed.extend(change(stretch).into_iter().flatten()),
            }
        }
        changed.extend_from_slice(&self.items[range.end..]);
        self.items = changed;
    }

    /// Returns the index of the first turn that starts at `at` or later.
    fn end_of_turn(&self, at: usize) -> usize {
        (at..self.len()).find(|i| !is_result(&self.items[*i].message)).unwrap_or(self.len())
    }

    /// Returns the index at which the turn that contains `at` starts.
    fn start_of_turn(&self, at: usize) -> usize {
        (0..=at.min(self.len()))
            .rev()
            .find(|i| *i == self.len() || !is_result(&self.items[*i].message))
            .unwrap_or(0)
    }

    /// Returns all reads of files: index of the result, key of the call, and path.
    fn file_reads(&self) -> Vec<(usize, String, String)> {
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut reads = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            match &*item.message {
                Message::ToolResult(result) if !result.is_error && !cleanup::is_cleaned_up(&item.message) => {
                    let call = calls.iter().find(|call| call.id == result.tool_call_id);
                    if let Some((call, path)) = call.and_then(|c| Some((c, file_reads::path(c)?))) {
                        reads.push((at, key(call), path.to_owned()));
                    }
                }
                Message::ToolResult(_) => {}
                other => {
                    calls = other
                        .content()
                        .iter()
                        .filter_map(Content::as_tool_call)
                        .map(ToolCall::target)
                        .collect()
                }
            }
        }
        reads
    }
}

/// Splits the messages in `range` into stretches of messages that stay (true) and that do not stay (false), in
/// order. A message stays if it is pinned, or if it is a result of a pinned answer.
fn stretches(items: &[WindowItem], range: Range<usize>) -> impl Iterator<Item = (bool, &[WindowItem])> {
    let mut is_of_pinned = false;
    let stays = items.iter().map(|item| {
        if !is_result(&item.message) {
            is_of_pinned = item.pinned && matches!(&*item.message, Message::Assistant(_));
        }
        item.pinned || is_of_pinned
    });
    let stays: Vec<bool> = stays.collect();
    let mut from = range.start;
    std::iter::from_fn(move || {
        let stay = *stays[from..range.end].first()?;
        let length = stays[from..range.end].iter().take_while(|other| **other == stay).count();
        let stretch = &items[from..from + length];
        from += length;
        Some((stay, stretch))
    })
}

/// Returns one message with `text` that replaces `stretch`.
fn digest_of(stretch: &[WindowItem], text: &str, input: CompactionInput<'_>) -> Option<WindowItem> {
    let (first, last) = (stretch.first()?, stretch.last()?);
    let (from, to) = (first.part.range().start, last.part.range().end);
    let message = digest_message(text, &last.message);
    Some(changed(&ViewPart::Digest { from, to, text: text.to_owned() }, message, input.counter))
}

/// Returns true if a model's summary covers the message.
fn is_of(summary: &Summary, item: &WindowItem) -> bool {
    let range = item.part.range();
    range.start >= summary.from && range.end <= summary.to
}

fn tokens_of(items: &[WindowItem]) -> u64 {
    items.iter().map(|item| item.tokens).fold(0, u64::saturating_add)
}

/// Returns a key of the arguments that does not depend on their order. Two reads with the same key read
/// the same part of a file.
fn key(call: &ToolCall) -> String {
    match &call.arguments {
        Json::Object(arguments) => {
            let mut all: Vec<String> = arguments.iter().map(|(k, v)| format!("{k}={v}")).collect();
            all.sort();
            all.join("\u{1f}")
        }
        other => other.to_string(),
    }
}
