//! The sources of the texts in a call's arguments: the records that have the same words. A person who decides about the
//! call sees them.
//!
//! Only exact words are found. The search is limited, so that it does not delay a question: at most eight texts of a
//! call are searched for, in at most 2 MiB of text.

use std::collections::{HashMap, VecDeque};

use archon_types::{
    AgentMessage, Answer, ApprovalRequest, AssistantMessage, CallId, Content, Interruption, Json, Message,
    Origin, Record, RecordBody, RunId, RunStarted, Speaker, ToolCall, TurnTrigger, UserMessage, one_line,
};
use serde::Serialize;

/// The source of a text in the records of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextSource {
    /// A message of the person.
    Message {
        /// The beginning of the message, as one line.
        beginning: String,
    },
    /// An answer of the person to a question.
    Answer {
        /// The beginning of the answer, as one line.
        beginning: String,
    },
    /// A file that is attached to a message.
    File {
        /// The name of the file.
        name: String,
    },
    /// The result of a tool call.
    ToolResult {
        /// The name of the tool; empty if it is unknown.
        tool: String,
        /// The first short text among the arguments of the call, such as a path; empty if there is none.
        argument: String,
    },
    /// A memory that was recalled for a message.
    Memory,
    /// The instructions of the project.
    Instructions,
    /// A message that the person may not have written: a message from an event, from a restored conversation, or with a
    /// text that an input filter added.
    OtherMessage,
}

/// An argument of a call, with an earlier record that has the same words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArgumentSource {
    /// The name of the argument.
    pub argument: String,
    /// The words that were found: the argument, or a text inside the argument. This field is `text` in JSON.
    #[serde(rename = "text")]
    pub words: String,
    /// The source of the words.
    pub source: TextSource,
    /// The run whose log has the record with the words.
    pub run: RunId,
    /// The sequence number of this record.
    pub seq: u64,
}

/// The texts of a conversation with their sources, computed from the records of its runs and of their child runs.
///
/// The source of words is the earliest text that has them. Texts of models are not sources. If a model wrote the words
/// first, even as a part of a longer text, only a later message or answer of the person can be their source: a later
/// result may only repeat the words of the model. Arguments that a person has changed are not sources, because some of
/// their words may still be the model's.
///
/// Apply all records of a run, from the first one on: the first record tells who wrote the prompts.
///
/// ```
/// use archon_types::{Message, PromptSource, Record, RecordBody, Timestamp};
/// use archon_views::{TextSource, TextSources};
///
/// let mut sources = TextSources::default();
/// let message = Message::user("Read notes/today.md.", Timestamp::default()).into();
/// let body = RecordBody::MessageAdded { message, source: PromptSource::Prompt };
/// sources.apply(&"run_1".into(), &Record { seq: 1, at: Timestamp::default(), body });
///
/// let found = sources.of_arguments(&serde_json::json!({ "path": "notes/today.md" }));
/// let beginning = "Read notes/today.md.".to_owned();
/// assert_eq!(found[0].source, TextSource::Message { beginning });
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextSources {
    /// The newest texts, oldest first.
    texts: VecDeque<Text>,
    /// The size of the texts in bytes.
    bytes: usize,
    runs: HashMap<RunId, RunState>,
    /// The run and the number of the record that is being applied.
    place: Option<(RunId, u64)>,
}

/// A text with its source; `None` for a text of a model.
#[derive(Clone, Debug)]
struct Text {
    text: String,
    source: Option<TextSource>,
    /// The run and the number of the record that has the text.
    place: Option<(RunId, u64)>,
}

#[derive(Clone, Debug, Default)]
struct RunState {
    /// The sequence number of the next record to apply.
    next: u64,
    /// True if another run called this run, so that a model wrote its prompts.
    is_called: bool,
    /// The sources of the results of open calls.
    calls: HashMap<CallId, TextSource>,
}

/// The maximum size of all kept texts, in bytes. The oldest texts are dropped.
const MOST_BYTES: usize = 2 * 1_024 * 1_024;
/// The maximum size of one kept text, in bytes. Only the beginning of a longer text is kept.
const MOST_OF_TEXT: usize = 128 * 1_024;
/// The maximum number of texts of a call that are searched for.
const MOST_ARGUMENTS: usize = 8;
/// The size of the largest text that is searched for, in bytes.
const MOST_WORDS: usize = 4 * 1_024;
/// The number of characters of the shortest text that is searched for: texts such as `true` or `ls` occur too often.
const FEWEST: usize = 8;
/// The maximum number of characters of a text that describes a source.
const SHOWN: usize = 60;

impl TextSources {
    /// Applies a record of a run. A record that was applied already changes nothing.
    pub fn apply(&mut self, run: &RunId, record: &Record) {
        if matches!(record.body, RecordBody::LogUnavailable { .. }) {
            // No log has this record, so its number says nothing.
            return;
        }
        let state = self.runs.entry(run.clone()).or_default();
        if record.seq < state.next {
            return;
        }
        state.next = record.seq + 1;
        self.place = Some((run.clone(), record.seq));
        match &record.body {
            RecordBody::RunStarted(started) => state.is_called = is_called(started),
            RecordBody::MessageAdded { message, .. } => {
                let by = speaker(message, state.is_called);
                if let Some(message) = message.as_llm() {
                    self.add_message(message, by);
                }
            }
            RecordBody::ConversationRestored { messages } => {
                messages.iter().for_each(|message| self.add_message(message, Speaker::of(message)));
            }
            RecordBody::InstructionsRead { text } => self.add(text, Some(&TextSource::Instructions)),
            RecordBody::ModelCallFinished { command, message, .. } => {
                let calls = (0..).zip(message.tool_calls());
                state.calls.extend(calls.map(|(n, call)| (CallId::new(*command, n), source_of_result(call))));
                self.add_answer_of_model(message);
            }
            RecordBody::ToolCallRefused { call, .. } => drop(state.calls.remove(call)),
            RecordBody::ToolCallFinished { call, result } => {
                let unknown = || TextSource::ToolResult { tool: String::new(), argument: String::new() };
                let source = state.calls.remove(call).unwrap_or_else(unknown);
                self.add_blocks(&result.content, Some(&source));
            }
            RecordBody::ApprovalAnswered {
                answer: Answer::Reply { text } | Answer::Cancel { reason: text },
                ..
            } => self.add(text, Some(&TextSource::Answer { beginning: one_line(text, SHOWN) })),
            RecordBody::ApprovalAnswered { call, answer: Answer::Edit { arguments } } => {
                if let Some(TextSource::ToolResult { argument, .. }) = state.calls.get_mut(call) {
                    *argument = short_text_in(arguments);
                }
                texts_in(arguments).into_iter().for_each(|text| self.add(text, None));
            }
            _ => {}
        }
    }

    /// Returns the source of words: the source of the earliest text that has exactly these words, not as a part of a
    /// longer word, path or address. Words of fewer than 8 characters or more than 4 KiB are not searched for.
    pub fn find(&self, words: &str) -> Option<&TextSource> {
        self.text_with(words)?.source.as_ref()
    }

    /// Returns the sources of the arguments that a question shows, as [`of_arguments`](Self::of_arguments) does.
    pub fn of_request(&self, request: &ApprovalRequest) -> Vec<ArgumentSource> {
        self.of_arguments(&request.details["arguments"])
    }

    /// Returns the arguments of a call whose words have a source, in the order of the arguments. Each text inside a
    /// list or an object is searched for on its own. Only the first eight texts that are neither too short nor too long
    /// are searched for.
    pub fn of_arguments(&self, arguments: &Json) -> Vec<ArgumentSource> {
        let named = arguments.as_object().into_iter().flatten();
        let texts = named.flat_map(|(name, value)| texts_in(value).into_iter().map(move |text| (name, text)));
        let searched = texts.filter(|(_, text)| is_searched(text.trim())).take(MOST_ARGUMENTS);
        let found = searched.filter_map(|(name, text)| {
            let found = self.text_with(text)?;
            let (source, (run, seq)) = (found.source.clone()?, found.place.clone()?);
            Some(ArgumentSource { argument: name.clone(), words: text.to_owned(), source, run, seq })
        });
        found.collect()
    }

    /// Returns the earliest text that has these words and a source.
    fn text_with(&self, words: &str) -> Option<&Text> {
        let words = words.trim();
        if !is_searched(words) {
            return None;
        }
        let mut is_of_model = false;
        for found in &self.texts {
            let Some(source) = &found.source else {
                is_of_model |= found.text.contains(words);
                continue;
            };
            let is_of_person = matches!(source, TextSource::Message { .. } | TextSource::Answer { .. });
            if (is_of_person || !is_of_model) && has_words(&found.text, words) {
                return Some(found);
            }
        }
        None
    }

    fn add_message(&mut self, message: &Message, by: Speaker) {
        match message {
            Message::User(_) if Interruption::of(message).is_some() => {}
            Message::User(user) => self.add_user_message(user, by),
            Message::Assistant(answer) => self.add_answer_of_model(answer),
            Message::ToolResult(result) => {
                let source =
                    TextSource::ToolResult { tool: result.tool_name.clone(), argument: String::new() };
                self.add_blocks(&result.content, Some(&source));
            }
        }
    }

    fn add_user_message(&mut self, user: &UserMessage, by: Speaker) {
        let written = user.written_content();
        let source = match by {
            Speaker::Person => {
                Some(TextSource::Message { beginning: one_line(&Content::join_text(written), SHOWN) })
            }
            Speaker::Model => None,
            _ => Some(TextSource::OtherMessage),
        };
        self.add_blocks(written, source.as_ref());
        for (name, block) in user.attached_content() {
            let source = TextSource::File { name: name.to_owned() };
            self.add_blocks(std::slice::from_ref(block), Some(&source));
        }
        let recalled = user.content.get(user.own_content().len()..).unwrap_or_default();
        self.add_blocks(recalled, Some(&TextSource::Memory));
    }

    fn add_answer_of_model(&mut self, answer: &AssistantMessage) {
        self.add_blocks(&answer.content, None);
        for call in answer.tool_calls() {
            texts_in(&call.arguments).into_iter().for_each(|text| self.add(text, None));
        }
    }

    fn add_blocks(&mut self, blocks: &[Content], source: Option<&TextSource>) {
        blocks.iter().filter_map(Content::as_text).for_each(|text| self.add(text, source));
    }

    fn add(&mut self, text: &str, source: Option<&TextSource>) {
        if text.len() < FEWEST {
            return;
        }
        let text = text.get(..text.floor_char_boundary(MOST_OF_TEXT)).unwrap_or(text);
        self.bytes += text.len();
        let place = self.place.clone();
        self.texts.push_back(Text { text: text.to_owned(), source: source.cloned(), place });
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.texts.pop_front()
        {
            self.bytes -= oldest.text.len();
        }
    }
}

/// Returns true if a model wrote the prompts of a run.
fn is_called(started: &RunStarted) -> bool {
    matches!(started.origin, Origin::CalledBy { .. }) || started.first_trigger == TurnTrigger::SubAgent
}

/// Returns the speaker of a prompt. A prompt of a run that another run called is never a person's.
fn speaker(message: &AgentMessage, is_called: bool) -> Speaker {
    let default = if is_called { Speaker::Model } else { Speaker::Person };
    message.speaker().filter(|by| *by != Speaker::Person).unwrap_or(default)
}

fn source_of_result(call: &ToolCall) -> TextSource {
    let call = call.target();
    TextSource::ToolResult { argument: short_text_in(&call.arguments), tool: call.name }
}

/// Returns the first short text among the arguments of a call; empty if there is none.
pub(crate) fn short_text_in(arguments: &Json) -> String {
    let is_short = |text: &&str| !text.contains('\n') && text.chars().count() <= SHOWN;
    texts_in(arguments).into_iter().find(is_short).unwrap_or_default().to_owned()
}

/// Returns the texts in a JSON value, without the names of its fields.
fn texts_in(value: &Json) -> Vec<&str> {
    match value {
        Json::String(text) => vec![text],
        Json::Array(values) => values.iter().flat_map(texts_in).collect(),
        Json::Object(named) => named.values().flat_map(texts_in).collect(),
        _ => Vec::new(),
    }
}

fn is_searched(words: &str) -> bool {
    words.len() <= MOST_WORDS && words.chars().nth(FEWEST - 1).is_some()
}

/// Returns true if a text has the words, and not as a part of a longer word, path or address. For instance, the end of
/// a path names another file than the whole path.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let behind = text.get(at + words.len()..).unwrap_or_default();
        !before.ends_with(['/', '\\', '.'])
            && !is_joined(words.chars().next(), before.chars().rev())
            && !is_joined(words.chars().next_back(), behind.chars())
    })
}

/// Returns true if words are a part of a longer word, path or address. `edge` is the first or last character of the
/// words, and `beside` are the characters of the text from there outwards.
fn is_joined(edge: Option<char>, beside: impl Iterator<Item = char>) -> bool {
    let mut beside = beside.peekable();
    let mut has_joint = false;
    while beside.next_if(|c| is_joint(*c)).is_some() {
        has_joint = true;
    }
    beside.next().is_some_and(|c| match has_joint {
        true => c.is_alphanumeric() || c == '_',
        false => is_of_word(c) && edge.is_some_and(|edge| is_of_word(edge) || is_joint(edge)),
    })
}

/// Returns true for a character that belongs to a word. Scripts without small and capital letters may write words
/// without spaces, so their letters do not count.
fn is_of_word(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || c.is_numeric() || c == '_'
}

/// Returns true for a character that joins words to a path, an address or a longer word.
fn is_joint(c: char) -> bool {
    matches!(c, '-' | '.' | '/' | '\\' | '@' | '+' | '~' | '%' | '#' | '?' | '&')
}
