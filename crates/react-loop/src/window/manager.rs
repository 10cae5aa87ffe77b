//! The context manager: stores the whole conversation, chooses the part that the model sees, and compacts
//! the conversation when it does not fit the window.
//!
//! The manager is a part of the machine, and only records change it. Its decisions (compactions and notices to the
//! model) are records too, so a log always folds to the same view. Every original message remains in the log.

mod compactions;
mod pins;

use std::{collections::BTreeSet, sync::Arc};

use archon_types::{
    AssistantMessage, Attributed, CLEANUP_TOOL, CallId, CleanedUp, Compaction, CompactionLevel,
    ContextConfig, ContextLevel, Message, RunConfig, SeenResult, Speaker, Summary, Timestamp, TokenCounter,
    Tokenizer, ToolMode, Trust, Usage, ViewPart, WindowItem,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    ContextParts, ContextUsage, History, Messages, QueueNotice, ToolGate, cleanup,
    entries::{Entry, items, unchanged_item},
    file_reads::{self, FileReads},
    name_calls,
    result_sizes::ResultSizes,
    truncate::{ResultLimit, clip, with_names},
    usage::{ContextTracker, gate, queue_notice},
};
use crate::CallState;

/// Keeps a conversation within the model's context window.
#[derive(Clone, Debug)]
pub struct ContextManager {
    state: State,
    /// The messages that the model sees, derived from the state.
    view: Messages,
    parts: ContextParts,
}

/// The stored part of the manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    config: Option<ContextConfig>,
    entries: Vec<Entry>,
    /// The lowest trust level of all messages that entered the window.
    #[serde(default)]
    least: Trust,
    /// Indexes of the pinned messages, which are never removed, in order.
    pins: Vec<usize>,
    /// The latest compaction. Without one, the model sees every entry.
    layout: Option<Compaction>,
    /// Estimated tokens of the view. `fixed_tokens` are those of the system prompt and the tools, which
    /// every request contains.
    tokens: u64,
    fixed_tokens: u64,
    tracker: ContextTracker,
    /// A model's summary that no compaction has used yet.
    summary: Option<Summary>,
    compacted: Option<Compacted>,
    /// The level of window usage that the latest notice told the model.
    status: ContextLevel,
    recovery: Recovery,
    /// True if the size of the window became smaller since the last request, because of a change of the
    /// model.
    #[serde(default)]
    shrunk: bool,
    /// Results of the current turn.
    arrived: Vec<(CallId, Entry)>,
    results: ResultSizes,
    reads: FileReads,
    /// True if the model has the tool to give up results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cleans_up: bool,
    /// Results that the model gave up in the turn that ended last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cleaned_up: Vec<CleanedUp>,
    /// True if a tool takes media, so that the model reads their names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    names_media: bool,
    /// The tools whose results may be pinned and trusted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    instructing: BTreeSet<String>,
    /// The names of results that were too large to be pinned any longer, since the last request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unpinned: Vec<String>,
}

/// Messages that a model should summarize. Indexes count, from 0, the messages of [`ContextManager::whole`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryDue {
    /// Index of the first message to summarize.
    pub from: u64,
    /// Index after the last message to summarize.
    pub to: u64,
    /// Maximum number of tokens of the summary.
    pub max_tokens: u32,
    /// The messages as text, each with its speaker. If they are too long, the oldest are left out.
    pub transcript: String,
    /// The instructions of a person for the summary; empty for none.
    pub instructions: String,
}

/// Time of the latest compaction, and the size of its view in estimated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Compacted {
    at: Timestamp,
    tokens: u64,
}

/// Counts of the current request: refusals because of its length, and steps that made it shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Recovery {
    overflows: u32,
    steps: u32,
}

impl ContextManager {
    /// Creates the window of a run that starts after `history`.
    pub(crate) fn new(run: &RunConfig, system: Option<&str>, history: History, parts: ContextParts) -> Self {
        let mut state = State { config: run.context.clone(), ..State::default() };
        state.cleans_up = run.tools.iter().any(|tool| tool.name == CLEANUP_TOOL);
        state.results = ResultSizes::of(&run.tools);
        state.names_media = run.has_media_tool();
        let instructing = run.tools.iter().filter(|tool| tool.annotations.instructs);
        state.instructing = instructing.map(|tool| tool.name.clone()).collect();
        let History { messages, mut entries, counted_by, status, .. } = history;
        // The history contains the notices that the model has read.
        state.status = status;
        if let Some(config) = &run.context {
            let counter = parts.counter(config.tokenizer);
            if counted_by != Some(config.tokenizer) {
                entries.iter_mut().for_each(|e| e.tokens = counter.count_message(&e.message));
            }
            state.tokens = sum(entries.iter().map(|e| e.tokens));
            state.fixed_tokens = system.map_or(0, |text| counter.count(text));
            // In text mode the system prompt lists the tools.
            for tool in run.tools.iter().filter(|_| run.tool_mode == ToolMode::Native) {
                for text in [&tool.name, &tool.description, &tool.parameters.to_string()] {
                    state.fixed_tokens = state.fixed_tokens.saturating_add(counter.count(text));
                }
            }
        }
        state.pins.extend(entries.iter().position(|e| matches!(&*e.message, Message::User(_))));
        state.least = least(&entries);
        state.entries = entries;
        let mut manager = Self { state, view: messages, parts };
        manager.update_pins();
        manager
    }

    /// Returns the conversation as the model sees it.
    pub fn messages(&self) -> &Messages {
        &self.view
    }

    /// Returns the conversation before any compaction by this run: the messages that the run got from earlier runs,
    /// which may have compacted them, and then every message of this run as it arrived.
    pub fn whole(&self) -> impl ExactSizeIterator<Item = &Arc<Message>> {
        self.state.entries.iter().map(|entry| &entry.message)
    }

    /// Returns the messages of [`whole`](Self::whole) in their original form, with their authors. A message that an
    /// earlier run replaced by a summary is not restored.
    pub fn attributed(&self) -> impl ExactSizeIterator<Item = Attributed> {
        self.state.entries.iter().map(Entry::attributed)
    }

    /// Returns the usage of the window; without a [`ContextConfig`], the messages count 0 tokens.
    pub fn usage(&self) -> ContextUsage {
        let arrived = sum(self.state.arrived.iter().map(|(_, entry)| entry.tokens));
        let tokens = self.state.tracker.corrected(self.state.tokens.saturating_add(arrived));
        let budget = self.state.config.as_ref().map_or(u64::MAX, |config| {
            let fixed = self.state.tracker.corrected(self.state.fixed_tokens);
            config.max_context_tokens.saturating_sub(config.system_prompt_tokens.max(fixed))
        });
        ContextUsage { tokens, budget }
    }

    /// Returns the shortened text for a tool's `result`; `None` if the text is small enough.
    pub fn truncate_tool_result(&self, result: &str) -> Option<String> {
        let config = self.state.config.as_ref()?;
        ResultLimit::of(config, self.usage().level()).cut(result)
    }

    /// Records that a file was read. Returns true if the file is new or has changed since the last read.
    pub fn register_file_read(&mut self, path: &str, content: &str) -> bool {
        self.state.reads.register(path, &[content.into()])
    }

    /// Returns the decision whether tools may run, by the usage of the window. `calls` is the number of calls that are
    /// due; it appears in the text of a warning. Without a [`ContextConfig`] tools may always run.
    pub fn tool_gate(&self, calls: usize) -> ToolGate {
        match self.state.config {
            Some(_) => gate(self.usage(), calls, self.state.results.average()),
            None => ToolGate::Open,
        }
    }

    /// Returns a notice for people if `queued` calls still wait and the usage is at least 85 %; otherwise `None`.
    pub fn queue_notice(&self, queued: usize) -> Option<QueueNotice> {
        self.state.config.as_ref().and_then(|_| queue_notice(self.usage(), queued))
    }

    /// Returns the tool results that the model sees and may give up, oldest first.
    pub fn results(&self) -> Vec<SeenResult> {
        let (mut items, counter) = (self.items(), self.counter());
        for result in &self.state.cleaned_up {
            cleanup::give_up(&mut items, result, counter);
        }
        cleanup::tool_results(&items, counter)
    }

    /// Records that the service refused the request as too long. Returns true if a recovery is allowed.
    pub(crate) fn overflowed(&mut self) -> bool {
        let Some(config) = &self.state.config else { return false };
        let may = self.state.recovery.overflows < config.max_overflow_recoveries;
        self.state.recovery.overflows += u32::from(may);
        may
    }

    /// Returns the approximate tokens of the next request; 0 without a [`ContextConfig`].
    pub(crate) fn request_tokens(&self) -> u64 {
        self.state.tracker.corrected(self.state.tokens.saturating_add(self.state.fixed_tokens))
    }

    /// Converts estimated tokens to tokens as the service counts them.
    pub(crate) fn corrected(&self, tokens: u64) -> u64 {
        self.state.tracker.corrected(tokens)
    }

    /// Counts the system prompt again after it changed.
    pub(crate) fn instructed(&mut self, before: Option<&str>, now: Option<&str>) {
        let Some(config) = &self.state.config else { return };
        let counter = self.parts.counter(config.tokenizer);
        let count = |text: Option<&str>| text.map_or(0, |text| counter.count(text));
        let rest = self.state.fixed_tokens.saturating_sub(count(before));
        self.state.fixed_tokens = rest.saturating_add(count(now));
    }

    /// Sets the window size, in tokens, of the model that is asked from now on; `None` if the size is
    /// unknown. The window is never larger than the one with which the run was started.
    pub(crate) fn resized(&mut self, run: &RunConfig, window: Option<u64>) {
        let Some(configured) = run.context.as_ref().map(|config| config.max_context_tokens) else { return };
        if let Some(config) = &mut self.state.config {
            let before = config.max_context_tokens;
            config.max_context_tokens = window.map_or(configured, |window| window.min(configured));
            self.state.shrunk = config.max_context_tokens < before;
            self.update_pins();
        }
    }

    /// Records that a request was sent.
    pub(crate) fn note_request(&mut self) {
        self.state.cleaned_up.clear();
        self.state.unpinned.clear();
        self.state.shrunk = false;
        self.state.tracker.note_request(self.state.tokens.saturating_add(self.state.fixed_tokens));
    }

    /// Records that the request was answered.
    pub(crate) fn answered(&mut self, usage: Usage) {
        self.state.recovery = Recovery::default();
        if self.state.config.is_some() {
            self.state.tracker.answered(usage);
        }
    }

    /// Stores a model's summary for the next compaction.
    pub(crate) fn summarized(&mut self, summary: &Summary) {
        if self.state.config.is_some() {
            self.state.summary = Some(summary.clone());
        }
    }

    /// Applies a recorded compaction to the view, if it fits the conversation.
    pub(crate) fn compacted(&mut self, compaction: &Compaction, at: Timestamp) {
        if compaction.overflow {
            self.state.recovery.steps = self.state.recovery.overflows;
        }
        let is_cleanup = compaction.level == CompactionLevel::CleanUp;
        if is_cleanup {
            self.state.cleaned_up.clear();
        } else {
            self.state.summary = None;
            self.state.shrunk = false;
        }
        if self.covered(compaction).is_none() {
            return;
        }
        self.state.layout = Some(compaction.clone());
        let items = self.items();
        self.view = Arc::new(items.iter().map(|item| item.message.clone()).collect());
        self.state.tokens = self.state.config.as_ref().map_or(0, |_| sum(items.iter().map(|i| i.tokens)));
        // A cleanup by the model does not delay the next compaction.
        if !is_cleanup {
            self.state.compacted = Some(Compacted { at, tokens: self.state.tokens });
        }
        self.state.status = self.state.status.min(self.usage().level());
    }

    /// Adds the notice to the model about its window.
    pub(crate) fn add_notice(&mut self, level: ContextLevel, text: &str, at: Timestamp) {
        self.state.status = level;
        self.push(Message::user(text, at), Speaker::Program);
    }

    pub(crate) fn push(&mut self, message: Message, by: Speaker) {
        let entry = self.entry(message, by);
        self.enter(entry);
    }

    /// Adds a message of a restored conversation. The message is untrusted. As in a conversation that is
    /// continued from the log, only the first message of the user is pinned, because a long conversation
    /// could not be compacted otherwise.
    pub(crate) fn push_restored(&mut self, message: Message) {
        if matches!(message, Message::User(_)) && self.state.pins.is_empty() {
            self.state.pins.push(self.state.entries.len());
        }
        let by = Speaker::of(&message);
        let tokens = self.count(&message);
        self.enter(Entry::new(message.into(), tokens, by));
    }

    /// Pins the last message if it is a user message. A run without a prompt of its own answers this message.
    pub(crate) fn pin_last(&mut self) {
        let Some(last) = self.state.entries.len().checked_sub(1) else { return };
        let is_prompt = matches!(&*self.state.entries[last].message, Message::User(_));
        if is_prompt && self.state.pins.last() != Some(&last) {
            self.state.pins.push(last);
        }
    }

    /// Adds a prompt of this run and pins it.
    pub(crate) fn push_prompt(&mut self, message: Message, by: Speaker) {
        self.state.pins.push(self.state.entries.len());
        self.push(message, by);
    }

    /// Adds a pinned prompt. The model sees `message`; `said` is the message as its author wrote it.
    pub(crate) fn push_prompt_as(&mut self, message: Message, said: Message, by: Speaker) {
        self.state.pins.push(self.state.entries.len());
        let entry = Entry { said: Some(said.into()), ..self.entry(message, by) };
        self.enter(entry);
    }

    /// Adds the message with the result of a call, cut to the maximum size of one result.
    pub(crate) fn push_result(&mut self, call: &CallState, message: Message) {
        let entry = self.result_entry(call, message);
        self.enter(entry);
    }

    /// Holds the result of a call until its whole turn enters the window. The tokens of the result are
    /// counted here, once.
    pub(crate) fn arrived(&mut self, call: &CallState) {
        let Some((result, at)) = call.result() else { return };
        if self.state.arrived.iter().all(|(id, _)| *id != call.id) {
            let message = call.result_message(result, at);
            if let (Some(path), false) = (file_reads::path(&call.call), result.is_error()) {
                self.state.reads.register(path, &result.content);
            }
            if call.call.name == CLEANUP_TOOL {
                self.state.cleaned_up.extend(CleanedUp::of(result));
            }
            let entry = self.result_entry(call, message);
            self.state.arrived.push((call.id, entry));
        }
    }

    /// Adds the text of an answer without its calls, which are not run or are described in the text. An
    /// answer that has only calls adds no message.
    pub(crate) fn push_spoken(&mut self, mut answer: AssistantMessage) {
        answer.content.retain(|block| block.as_tool_call().is_none());
        if !answer.content.is_empty() {
            self.push(Message::Assistant(answer), Speaker::Model);
        }
    }

    /// Adds an answer and the results of its calls, in the order of the calls.
    pub(crate) fn push_turn(&mut self, mut answer: AssistantMessage, calls: &[CallState]) {
        name_calls(&mut answer, calls);
        self.push(Message::Assistant(answer), Speaker::Model);
        calls.iter().for_each(|call| self.arrived(call));
        let mut arrived = std::mem::take(&mut self.state.arrived);
        for call in calls {
            if let Some(at) = arrived.iter().position(|(id, _)| *id == call.id) {
                self.enter(arrived.swap_remove(at).1);
            }
        }
    }

    /// Returns the conversation for the next run of the session: the view and its token counts.
    pub(crate) fn into_history(self) -> History {
        let counted_by = self.state.config.as_ref().map(|config| config.tokenizer);
        let entries = match &self.state.layout {
            None => self.state.entries.iter().map(|e| e.seen_as(e.entered().clone(), e.tokens)).collect(),
            Some(_) => self.items().into_iter().map(|item| self.entry_of(item)).collect(),
        };
        let status = self.state.status;
        History { messages: self.view, entries, counted_by, status, ..History::default() }
    }

    /// Returns an item as an entry of the next run. A digest of several messages has no author; its trust
    /// level is the lowest of all messages that the compaction covers, because the digest may repeat any
    /// of them.
    fn entry_of(&self, item: WindowItem) -> Entry {
        let at = usize::try_from(item.part.range().start).unwrap_or(usize::MAX);
        match self.state.entries.get(at) {
            Some(entry) if !matches!(item.part, ViewPart::Digest { .. }) => {
                entry.seen_as(item.message, item.tokens)
            }
            _ => {
                let covered = self.state.layout.as_ref().map_or(0, |layout| layout.messages);
                let covered = self.state.entries.len() - self.rest(covered).len();
                let trust = least(&self.state.entries[..covered]);
                Entry { trust, ..Entry::new(item.message, item.tokens, Speaker::Program) }
            }
        }
    }

    /// Returns the entry of a message. Messages of the model and the program may repeat any earlier
    /// message, so their trust level is at most the lowest so far. A message of another run's model is
    /// untrusted, because the context of that model is unknown here.
    fn entry(&self, message: Message, by: Speaker) -> Entry {
        let trust = match (by, &message) {
            (Speaker::Program, _) => self.state.least,
            (Speaker::Model, Message::Assistant(_)) => by.trust().min(self.state.least),
            (Speaker::Model, _) => Trust::Untrusted,
            _ => by.trust(),
        };
        let tokens = self.count(&message);
        Entry { trust, ..Entry::new(message.into(), tokens, by) }
    }

    fn enter(&mut self, mut entry: Entry) {
        if let Some(named) = with_names(entry.entered()).filter(|_| self.state.names_media) {
            entry.tokens = self.count(&named);
            entry.clipped = Some(named.into());
        }
        self.state.least = self.state.least.min(entry.least_trust());
        self.state.tokens = self.state.tokens.saturating_add(entry.tokens);
        // Changes the view in place, unless a request that was made from it is still alive.
        Arc::make_mut(&mut self.view).push(entry.entered().clone());
        let is_pinned = entry.pinned.is_some();
        self.state.entries.push(entry);
        if is_pinned {
            self.update_pins();
        }
    }

    fn result_entry(&mut self, call: &CallState, message: Message) -> Entry {
        let trust = self.trust_of(call);
        if let Some((name, tokens)) = self.pin_of(call, &message) {
            self.state.results.add(tokens);
            let entry = Entry::new(Arc::new(message), tokens, Speaker::Tool);
            return Entry { pinned: Some(name), trust, ..entry };
        }
        let limit = self.state.config.as_ref().map(|c| ResultLimit::of(c, self.usage().level()));
        let mut clipped = limit.and_then(|limit| clip(&message, limit));
        if self.state.cleans_up {
            let entered = clipped.as_ref().unwrap_or(&message);
            clipped = cleanup::marked(entered, self.counter()).or(clipped);
        }
        let clipped = clipped.map(Arc::new);
        let tokens = self.count(clipped.as_deref().unwrap_or(&message));
        self.state.results.add(tokens);
        Entry { clipped, trust, ..Entry::new(Arc::new(message), tokens, Speaker::Tool) }
    }

    /// Returns the tokens of a message; 0 without a [`ContextConfig`].
    fn count(&self, message: &Message) -> u64 {
        self.state.config.as_ref().map_or(0, |_| self.counter().count_message(message))
    }

    /// Returns the messages that the model sees now.
    fn items(&self) -> Vec<WindowItem> {
        let layout = self.state.layout.as_ref();
        let mut items = layout.and_then(|layout| self.covered(layout)).unwrap_or_default();
        let from = self.state.entries.len() - self.rest(layout.map_or(0, |l| l.messages)).len();
        let rest = self.state.entries[from..].iter().enumerate();
        items.extend(rest.map(|(i, entry)| unchanged_item(entry, from + i, &self.state.pins)));
        items
    }

    /// Returns the messages that take the place of those that a compaction covers.
    fn covered(&self, compaction: &Compaction) -> Option<Vec<WindowItem>> {
        let state = &self.state;
        items(&state.entries, &state.pins, &compaction.view, compaction.messages, self.counter())
    }

    /// Returns the entries that a compaction does not cover.
    fn rest(&self, covers: u64) -> &[Entry] {
        let covers = usize::try_from(covers).unwrap_or(usize::MAX);
        self.state.entries.get(covers..).unwrap_or_default()
    }

    fn counter(&self) -> &dyn TokenCounter {
        let tokenizer = self.state.config.as_ref().map_or(Tokenizer::Estimate, |config| config.tokenizer);
        self.parts.counter(tokenizer)
    }
}

fn least(entries: &[Entry]) -> Trust {
    entries.iter().map(Entry::least_trust).min().unwrap_or(Trust::Trusted)
}

fn sum(tokens: impl Iterator<Item = u64>) -> u64 {
    tokens.fold(0, u64::saturating_add)
}

/// Compares without `parts`, which belong to the program and not to the run.
impl PartialEq for ContextManager {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state && self.view == other.view
    }
}

impl Serialize for ContextManager {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.state.serialize(s)
    }
}

impl<'de> Deserialize<'de> for ContextManager {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let state = State::deserialize(d)?;
        let mut manager = Self { state, view: Messages::default(), parts: ContextParts::default() };
        manager.view = Arc::new(manager.items().into_iter().map(|item| item.message).collect());
        Ok(manager)
    }
}
