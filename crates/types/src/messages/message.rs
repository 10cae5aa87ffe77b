//! Messages of people, models and tools, in the order in which a model reads them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Json,
    values::{MessageId, RunId, Timestamp, ToolCallId, TurnId, iso8601},
};

use super::{
    content::{Content, ToolCall},
    tool_result::{ToolResult, metadata},
    trust::{RecalledText, Speaker, Trust},
};

/// A message that a model can read.
///
/// Each provider converts tool results to its own format (a user block, a `tool` role, a function response).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// A message of a person, or of the framework.
    User(UserMessage),
    /// A message of the model.
    Assistant(AssistantMessage),
    /// The result of a tool call.
    ToolResult(ToolResultMessage),
}

/// A message of a person or of the framework.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserMessage {
    /// Text and images: what the speaker wrote, then the attached files, then the recalled blocks.
    pub content: Vec<Content>,
    /// The time of the message in Unix milliseconds.
    pub timestamp: Timestamp,
    /// The names of the attached files, one name for each block of an attached file in `content`. The speaker
    /// of the message did not write these blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<String>,
    /// The number of blocks at the end of `content` that Archon recalled from memory; the speaker of the
    /// message did not write them.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub recalled: u32,
    /// The lowest trust level of the recalled blocks.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub recalled_trust: Trust,
    /// The id of the delivery, if a request with an idempotency key put the message into an inbox: by it, a repeated
    /// request finds that the message has arrived. `None` for all other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
}

impl UserMessage {
    /// Creates a message without attached files and recalled blocks.
    pub fn new(content: Vec<Content>, timestamp: Timestamp) -> Self {
        Self {
            content,
            timestamp,
            attached: Vec::new(),
            recalled: 0,
            recalled_trust: Trust::default(),
            delivery: None,
        }
    }

    /// Creates a message from blocks that a client sent. The speaker wrote the text blocks. Each picture, PDF
    /// file or other data becomes an attached file, which is untrusted; its name is its own name or else its
    /// media type. Attached files come after all text, in their order.
    ///
    /// ```
    /// use archon_types::{Content, Media, Timestamp, Trust, UserMessage};
    ///
    /// let report = Content::from(Media::new(b"%PDF-1.7 ...", Some("report.pdf"))?);
    /// let message = UserMessage::of_blocks(vec![report, Content::text("Sum it up.")], Timestamp::default());
    /// assert_eq!(message.written_content(), [Content::text("Sum it up.")]);
    /// assert_eq!((message.attached[0].as_str(), message.added_trust()), ("report.pdf", Trust::Untrusted));
    /// # Ok::<(), archon_types::MediaError>(())
    /// ```
    pub fn of_blocks(blocks: Vec<Content>, timestamp: Timestamp) -> Self {
        let (media, written): (Vec<_>, _) = blocks.into_iter().partition(|block| block.as_media().is_some());
        let mut message = Self::new(written, timestamp);
        for block in media {
            let name = block.as_media().map(|media| media.name().unwrap_or(media.mime_type).to_owned());
            message.attach(name.unwrap_or_default(), block);
        }
        message
    }

    /// Adds a block after the other blocks that the speaker wrote, before attached files and recalled texts.
    pub fn add_written(&mut self, block: Content) {
        let place = self.written_content().len();
        self.content.insert(place, block);
    }

    /// Attaches a file with the name `name`; `block` has the text or the data of the file.
    pub fn attach(&mut self, name: impl Into<String>, block: Content) {
        let place = self.own_content().len();
        self.content.insert(place, block);
        self.attached.push(name.into());
    }

    /// Appends a text that was recalled from memory.
    pub fn add_recalled(&mut self, recalled: RecalledText) {
        self.recalled_trust = self.recalled_trust().min(recalled.trust);
        self.content.push(Content::text(recalled.text));
        self.recalled += 1;
    }

    /// Returns the lowest trust level of the recalled blocks; [`Trust::Trusted`] without recalled blocks.
    pub fn recalled_trust(&self) -> Trust {
        match self.recalled {
            0 => Trust::Trusted,
            _ => self.recalled_trust,
        }
    }

    /// Returns the lowest trust level of the blocks that the speaker did not write; [`Trust::Trusted`]
    /// without such blocks. An attached file is untrusted, like the result of a tool that reads a file.
    pub fn added_trust(&self) -> Trust {
        match self.attached.is_empty() {
            true => self.recalled_trust(),
            false => Trust::Untrusted,
        }
    }

    /// Returns the blocks that were not recalled from memory.
    pub fn own_content(&self) -> &[Content] {
        let recalled = usize::try_from(self.recalled).unwrap_or(usize::MAX);
        &self.content[..self.content.len().saturating_sub(recalled)]
    }

    /// Returns the blocks that the speaker wrote: neither attached nor recalled from memory.
    pub fn written_content(&self) -> &[Content] {
        let own = self.own_content();
        &own[..own.len().saturating_sub(self.attached.len())]
    }

    /// Returns the blocks of the attached files, each with the name of its file.
    pub fn attached_content(&self) -> impl Iterator<Item = (&str, &Content)> {
        let blocks = &self.own_content()[self.written_content().len()..];
        self.attached.iter().map(String::as_str).zip(blocks)
    }
}

/// The complete answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssistantMessage {
    /// The blocks of text, thinking and tool calls, in the model's order.
    pub content: Vec<Content>,
    /// The reason why the model stopped.
    pub stop_reason: StopReason,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The id of the provider, for instance `openai`.
    pub provider: String,
    /// The tokens of this answer and of its request.
    pub usage: Usage,
    /// The time at which the answer was complete, in Unix milliseconds.
    pub timestamp: Timestamp,
    /// The reason why the service stopped the answer. Set for [`StopReason::Error`], and for a
    /// [`StopReason::Refusal`] without a text of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The text that ended the answer, if the service reports it. Set only for [`StopReason::StopSequence`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequence: Option<String>,
    /// For a model that runs in this process: the version of the engine, its kernel and its number of
    /// threads. Another engine may answer the same request differently. `None` for any other model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

impl AssistantMessage {
    /// Returns all text blocks, joined by newlines.
    pub fn text(&self) -> String {
        Content::join_text(&self.content).into_owned()
    }

    /// Returns the tool calls, in the model's order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Content::as_tool_call)
    }

    /// Marks a tool call at the end of the answer as malformed if the token limit cut the answer off, so that
    /// the call is never executed: its arguments may be incomplete even if they are valid JSON. Calls before
    /// the last block are complete and stay as they are.
    pub fn refuse_cut_call(&mut self) {
        let is_cut = self.stop_reason == StopReason::Length;
        let said = |block: &&mut Content| block.as_text().is_none_or(|text| !text.trim().is_empty());
        if is_cut && let Some(Content::ToolCall(call)) = self.content.iter_mut().rev().find(said) {
            Arc::make_mut(call)
                .refuse("the answer was cut off by its token limit, and the call may not be complete");
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResultMessage {
    /// The id of the [`ToolCall`].
    pub tool_call_id: ToolCallId,
    /// The name of the tool.
    pub tool_name: String,
    /// The content that the model reads.
    pub content: Vec<Content>,
    /// True unless the call succeeded.
    pub is_error: bool,
    /// The time of the result in Unix milliseconds.
    pub timestamp: Timestamp,
}

impl Message {
    /// Creates a user message with one text block.
    pub fn user(text: impl Into<String>, timestamp: Timestamp) -> Self {
        Self::User(UserMessage::new(vec![Content::text(text)], timestamp))
    }

    /// Creates the message in which the model reads the result of its tool call.
    pub fn tool_result(call: &ToolCall, result: &ToolResult, timestamp: Timestamp) -> Self {
        Self::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: result.content.clone(),
            is_error: result.is_error(),
            timestamp,
        })
    }

    /// Returns the blocks of the message.
    pub fn content(&self) -> &[Content] {
        match self {
            Self::User(m) => &m.content,
            Self::Assistant(m) => &m.content,
            Self::ToolResult(m) => &m.content,
        }
    }

    pub(crate) fn content_mut(&mut self) -> &mut [Content] {
        match self {
            Self::User(m) => &mut m.content,
            Self::Assistant(m) => &mut m.content,
            Self::ToolResult(m) => &mut m.content,
        }
    }

    /// Returns all text blocks, joined by newlines.
    pub fn text(&self) -> String {
        Content::join_text(self.content()).into_owned()
    }

    /// Returns the blocks that were not recalled from memory.
    pub fn own_content(&self) -> &[Content] {
        match self {
            Self::User(m) => m.own_content(),
            _ => self.content(),
        }
    }

    /// Returns the time at which the message was complete.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::User(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
        }
    }
}

/// The reason why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its answer. Also used for reasons that this version does not know.
    #[default]
    Stop,
    /// The model wrote a stop sequence; [`AssistantMessage::stop_sequence`] has the text.
    StopSequence,
    /// The answer reached its token limit, so it may be cut off.
    Length,
    /// The model waits for the results of tool calls.
    ToolUse,
    /// The service paused a long turn; the request is sent again with the answer so far.
    Pause,
    /// The model declined in the text of the answer, or a filter of the service stopped the answer, with the
    /// reason in `error_message`.
    Refusal,
    /// The provider failed or refused the request; `error_message` has the reason.
    Error,
    /// The caller cancelled the request.
    Aborted,
}

impl StopReason {
    /// Returns true if the answer is complete: not cut off, paused, refused or failed.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Stop | Self::StopSequence | Self::ToolUse)
    }
}

/// The number of tokens of one model call, or of several calls together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// The number of prompt tokens that were processed, without cached ones.
    pub input: u64,
    /// The number of tokens that the model produced.
    pub output: u64,
    /// The number of prompt tokens that were read from a cache.
    pub cache_read: u64,
    /// The number of prompt tokens that were written to a cache.
    pub cache_write: u64,
    /// The total as the provider reports it; 0 if the provider reports none.
    pub total_tokens: u64,
}

impl Usage {
    /// Returns the share of the prompt tokens that came from a cache, 0.0 to 1.0; 0.0 for an empty prompt.
    pub fn cache_hit_rate(&self) -> f64 {
        match self.input.saturating_add(self.cache_read).saturating_add(self.cache_write) {
            0 => 0.0,
            all => self.cache_read as f64 / all as f64,
        }
    }

    /// Returns the reported total of tokens, or the sum of the parts if no total was reported.
    pub fn total(&self) -> u64 {
        match self.total_tokens {
            0 => [self.output, self.cache_read, self.cache_write]
                .into_iter()
                .fold(self.input, u64::saturating_add),
            total => total,
        }
    }
}

impl std::ops::AddAssign for Usage {
    // Saturates, so that wrong numbers of a service cannot overflow.
    fn add_assign(&mut self, other: Self) {
        self.total_tokens = self.total().saturating_add(other.total());
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// An entry of a transcript: a message for the model, or data for the application only.
///
/// In JSON the two differ by their role: only an extension has the role `extension`.
#[allow(clippy::large_enum_variant, reason = "nearly all messages are for the model")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum AgentMessage {
    /// A message that is sent to the model.
    Llm(LlmMessage),
    /// Data that stays in the transcript and is never sent to the model.
    Extension(ExtensionMessage),
}

impl AgentMessage {
    /// Returns the message for the model; `None` for an extension.
    pub fn as_llm(&self) -> Option<&Message> {
        match self {
            Self::Llm(m) => Some(&m.message),
            Self::Extension(_) => None,
        }
    }

    /// Sets the time of a user message to `now` if the message has none ([`Timestamp::default`]).
    ///
    /// ```
    /// use archon_types::{AgentMessage, Message, Timestamp};
    ///
    /// let now = Timestamp::from_millis(1_700_000_000_000);
    /// let message = AgentMessage::from(Message::user("Hello", Timestamp::default())).dated(now);
    /// assert_eq!(message.as_llm().map(Message::timestamp), Some(now));
    /// ```
    pub fn dated(mut self, now: Timestamp) -> Self {
        if let Self::Llm(LlmMessage { message: Message::User(user), .. }) = &mut self
            && user.timestamp == Timestamp::default()
        {
            user.timestamp = now;
        }
        self
    }

    /// Sets the speaker of a message. An [`ExtensionMessage`] has no speaker and stays unchanged.
    ///
    /// ```
    /// use archon_types::{AgentMessage, Message, Speaker, Timestamp};
    ///
    /// let message = AgentMessage::from(Message::user("It is noon.", Timestamp::default()));
    /// assert_eq!(message.with_speaker(Speaker::Program).speaker(), Some(Speaker::Program));
    /// ```
    pub fn with_speaker(mut self, speaker: Speaker) -> Self {
        if let Self::Llm(m) = &mut self {
            m.speaker = Some(speaker);
        }
        self
    }

    /// Returns the speaker; `None` if the message names none.
    pub fn speaker(&self) -> Option<Speaker> {
        match self {
            Self::Llm(m) => m.speaker,
            Self::Extension(_) => None,
        }
    }

    /// Sets the mark of a message: data for a tool of the run that receives the message. An
    /// [`ExtensionMessage`] has no mark and stays unchanged.
    ///
    /// ```
    /// use archon_types::{AgentMessage, Message, Timestamp, ToolMark};
    ///
    /// let mark = ToolMark::new("activate_skill", serde_json::json!({ "skill": "release-notes" }));
    /// let message = AgentMessage::from(Message::user("/release-notes for 1.2", Timestamp::default()));
    /// assert_eq!(message.with_mark(mark.clone()).mark(), Some(&mark));
    /// ```
    pub fn with_mark(mut self, mark: ToolMark) -> Self {
        if let Self::Llm(m) = &mut self {
            m.mark = Some(Box::new(mark));
        }
        self
    }

    /// Returns the mark of the message: data for a tool of the run that receives the message. `None` if there
    /// is no mark.
    pub fn mark(&self) -> Option<&ToolMark> {
        match self {
            Self::Llm(m) => m.mark.as_deref(),
            Self::Extension(_) => None,
        }
    }
}

impl From<Message> for AgentMessage {
    fn from(message: Message) -> Self {
        Self::Llm(LlmMessage { message, turn_id: None, metadata: None, speaker: None, mark: None })
    }
}

crate::values::from_text! {
    /// A person's message without a time, which the receiver sets.
    AgentMessage = |text: String| Message::user(text, Timestamp::default()).into()
}

impl From<ExtensionMessage> for AgentMessage {
    fn from(message: ExtensionMessage) -> Self {
        Self::Extension(message)
    }
}

/// A message for the model, with metadata of the application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmMessage {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// The turn that the message belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The id, the author and the conversation of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MessageMetadata>,
    /// The speaker of the message. `None` for the default: a person or, in a child run, the model of the
    /// calling agent. Set the speaker for messages from an event or a web hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Speaker>,
    /// The mark for a tool of the run that receives the message. The model does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Box<ToolMark>>,
}

/// Data on a message for a tool of the run, such as the skill that a person activates with the message. When
/// the run receives the message, and again when the run is resumed, it passes the mark to the tool with
/// [`Toolbox::recall`](crate::Toolbox::recall), as a result with the metadata key
/// [`SEEN`](super::tool_result::metadata::SEEN).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolMark {
    /// The name of the tool.
    pub tool: String,
    /// The object from which the tool restores its state. The run adds the field `run` with its own id.
    pub seen: Json,
}

impl ToolMark {
    /// Creates a mark for the tool with the name `tool`, which restores its state from the object `seen`.
    pub fn new(tool: impl Into<String>, seen: Json) -> Self {
        Self { tool: tool.into(), seen }
    }

    /// Returns the mark as a result for [`Toolbox::recall`](crate::Toolbox::recall), with the id of `run`
    /// added.
    pub fn result(&self, run: &RunId) -> ToolResult {
        let mut seen = self.seen.clone();
        if let Json::Object(fields) = &mut seen {
            fields.insert("run".to_owned(), run.as_str().into());
        }
        ToolResult::default().with_metadata(metadata::SEEN, seen)
    }
}

/// The id, author, conversation and time of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageMetadata {
    /// The id, globally unique: a version 4 UUID outside of tests.
    pub message_id: MessageId,
    /// The time of the message, in ISO-8601 in JSON.
    #[serde(with = "iso8601")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The id of the conversation; empty if there is none.
    #[serde(default)]
    pub conversation_id: String,
    /// The id of the person; empty if unknown.
    #[serde(default)]
    pub user_id: String,
}

impl MessageMetadata {
    /// Creates metadata without a conversation and without a person.
    pub fn new(message_id: impl Into<MessageId>, timestamp: Timestamp) -> Self {
        Self {
            message_id: message_id.into(),
            timestamp,
            conversation_id: String::new(),
            user_id: String::new(),
        }
    }
}

/// Data of an application in the transcript, which is never sent to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtensionMessage {
    role: ExtensionRole,
    /// The application's name for this kind of data, for instance `ui_update`.
    pub kind: String,
    /// The data of the application.
    pub data: Json,
}

impl ExtensionMessage {
    /// Creates an extension message with data of this kind.
    pub fn new(kind: impl Into<String>, data: Json) -> Self {
        Self { role: ExtensionRole::Extension, kind: kind.into(), data }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
enum ExtensionRole {
    Extension,
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: M-23, M-25
    #[test]
    fn user_message_recalled_trust_is_the_lowest_of_its_recalled_texts() {
        let mut user = UserMessage::new(vec![Content::text("Where?")], Timestamp::default());
        assert_eq!(user.recalled_trust(), Trust::Trusted);
        let plain = serde_json::to_string(&user).unwrap();
        assert!(!plain.contains("recalled"), "{plain}");
        for (told, least) in [
            (Trust::Trusted, Trust::Trusted),
            (Trust::Model, Trust::Model),
            (Trust::Trusted, Trust::Model),
            (Trust::Untrusted, Trust::Untrusted),
            (Trust::Trusted, Trust::Untrusted),
        ] {
            user.add_recalled(RecalledText::new("In Bern.", told));
            let json = serde_json::to_string(&user).unwrap();
            let read: UserMessage = serde_json::from_str(&json).unwrap();
            assert_eq!((&read, read.recalled_trust()), (&user, least));
        }
        assert_eq!(user.own_content(), [Content::text("Where?")]);
    }

    // spec: M-23, M-25
    #[test]
    fn user_message_with_a_file_keeps_it_apart_from_the_written_and_the_recalled_text() {
        let text = |text: &str| Content::text(text);
        let mut user = UserMessage::new(vec![text("See @a.txt")], Timestamp::default());
        assert_eq!(user.added_trust(), Trust::Trusted);
        assert!(!serde_json::to_string(&user).unwrap().contains("attached"));
        user.add_recalled(RecalledText::new("In Bern.", Trust::Trusted));
        user.attach("a.txt", text("milk"));
        user.add_written(text("Please."));
        let read: UserMessage = serde_json::from_str(&serde_json::to_string(&user).unwrap()).unwrap();
        assert_eq!(read, user);
        assert_eq!(read.written_content(), ["See @a.txt", "Please."].map(text));
        assert_eq!(read.attached_content().collect::<Vec<_>>(), [("a.txt", &text("milk"))]);
        assert_eq!(read.content[3..], [text("In Bern.")]);
        assert_eq!((read.added_trust(), read.recalled_trust()), (Trust::Untrusted, Trust::Trusted));
        // A damaged log may have more names than blocks.
        let mut damaged = UserMessage::new(Vec::new(), Timestamp::default());
        damaged.attached.push("a.txt".to_owned());
        assert_eq!((damaged.written_content().len(), damaged.attached_content().count()), (0, 0));
    }
}
