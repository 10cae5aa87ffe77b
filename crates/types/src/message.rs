//! Messages: what a person, a model or a tool said, in the order in which a model reads them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Content, Json, MessageId, RunError, Speaker, Timestamp, Told, ToolCall, ToolCallId, ToolResult, Trust,
    TurnId, iso8601,
};

/// A message that a model can read.
///
/// How a tool result is spelled on the wire (a user block, a `tool` role, a function response) is
/// each provider's business.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// From the person, or from the framework on its own behalf.
    User(UserMessage),
    /// From the model.
    Assistant(AssistantMessage),
    /// From a tool.
    ToolResult(ToolResultMessage),
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserMessage {
    /// Text and images.
    pub content: Vec<Content>,
    /// When it was said, Unix milliseconds.
    pub timestamp: Timestamp,
    /// How many of the last blocks nobody said: the model is told them from memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub told: u32,
    /// How far the least believed of these blocks is believed. Nobody vouches for what was told before that was noted.
    #[serde(default, skip_serializing_if = "is_untrusted")]
    pub told_trust: Trust,
}

impl UserMessage {
    /// What was said, at a time.
    pub fn new(content: Vec<Content>, timestamp: Timestamp) -> Self {
        Self { content, timestamp, told: 0, told_trust: Trust::default() }
    }

    /// Adds what the model is told from memory.
    pub fn tell(&mut self, told: Told) {
        self.told_trust = self.least_told().min(told.trust);
        self.content.push(Content::text(told.text));
        self.told += 1;
    }

    /// How far the least believed of what is told from memory is believed; [`Trust::Trusted`] if nothing is told.
    pub fn least_told(&self) -> Trust {
        match self.told {
            0 => Trust::Trusted,
            _ => self.told_trust,
        }
    }

    /// The blocks that somebody said.
    pub fn said(&self) -> &[Content] {
        let told = usize::try_from(self.told).unwrap_or(usize::MAX);
        &self.content[..self.content.len().saturating_sub(told)]
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_untrusted(trust: &Trust) -> bool {
    *trust == Trust::Untrusted
}

/// What a model said, once it has said all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssistantMessage {
    /// Text, thinking and tool calls in the model's order.
    pub content: Vec<Content>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The provider's id, for instance `openai`.
    pub provider: String,
    /// Tokens of this answer and of the request that led to it.
    pub usage: Usage,
    /// When the answer was complete, Unix milliseconds.
    pub timestamp: Timestamp,
    /// Why the service stopped the answer: set for [`StopReason::Error`], and for a [`StopReason::Refusal`] that the
    /// model did not put into words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The text that ended the answer, where the service says which: set for [`StopReason::StopSequence`] only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequence: Option<String>,
    /// What computed the answer, for a model in this process: the engine's version, its kernel and its threads. Another
    /// one can answer the same request otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

impl AssistantMessage {
    /// All text blocks joined.
    pub fn text(&self) -> String {
        Content::join_text(&self.content).into_owned()
    }

    /// The tool calls, in the model's order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Content::as_tool_call)
    }

    /// In an answer that its limit cut off, the last block may be a call that is not complete, whatever its arguments
    /// look like: none at all, or fewer than were meant. Marks it as malformed, so that it is never run. A call that
    /// something follows was complete.
    pub fn refuse_cut_call(&mut self) {
        let is_cut = self.stop_reason == StopReason::Length;
        let said = |block: &&mut Content| block.as_text().is_none_or(|text| !text.trim().is_empty());
        if is_cut && let Some(Content::ToolCall(call)) = self.content.iter_mut().rev().find(said) {
            Arc::make_mut(call)
                .refuse("the answer was cut off by its token limit, and the call may not be complete");
        }
    }
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResultMessage {
    /// The id of the [`ToolCall`] that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub tool_name: String,
    /// What the model reads.
    pub content: Vec<Content>,
    /// True unless the call succeeded.
    pub is_error: bool,
    /// When the result was there, Unix milliseconds.
    pub timestamp: Timestamp,
}

impl Message {
    /// A user message of one text block.
    pub fn user(text: impl Into<String>, timestamp: Timestamp) -> Self {
        Self::User(UserMessage::new(vec![Content::text(text)], timestamp))
    }

    /// The message that carries `result` back to the model.
    pub fn tool_result(call: &ToolCall, result: &ToolResult, timestamp: Timestamp) -> Self {
        Self::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: result.content.clone(),
            is_error: result.is_error(),
            timestamp,
        })
    }

    /// The blocks of the message.
    pub fn content(&self) -> &[Content] {
        match self {
            Self::User(m) => &m.content,
            Self::Assistant(m) => &m.content,
            Self::ToolResult(m) => &m.content,
        }
    }

    /// All text blocks joined.
    pub fn text(&self) -> String {
        Content::join_text(self.content()).into_owned()
    }

    /// The blocks that somebody said: all but what the model is told from memory.
    pub fn said(&self) -> &[Content] {
        match self {
            Self::User(m) => m.said(),
            _ => self.content(),
        }
    }

    /// When the message was complete.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::User(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
        }
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum StopReason {
    /// It was done; also for reasons that we do not know.
    #[default]
    Stop,
    /// It wrote one of the texts that end an answer; [`AssistantMessage::stop_sequence`] is the text.
    StopSequence,
    /// It ran into its output limit: what it said may be cut off.
    Length,
    /// It waits for the results of tool calls.
    ToolUse,
    /// The service interrupted a long turn, to be asked again with what was said so far.
    Pause,
    /// It declined, in the words of the answer, or a filter of the service stopped it, as `error_message` says.
    Refusal,
    /// The provider failed or refused; the text says why.
    Error,
    /// The caller cancelled.
    Aborted,
}

impl StopReason {
    /// Whether the model said all that it wanted to say: not cut, stopped, refused or broken.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Stop | Self::StopSequence | Self::ToolUse)
    }

    pub(crate) fn is_stop(&self) -> bool {
        *self == Self::Stop
    }
}

/// Tokens of one model call, or the sum of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens that were processed, cached ones left out.
    pub input: u64,
    /// Tokens that the model produced.
    pub output: u64,
    /// Prompt tokens that came from a cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to a cache.
    pub cache_write: u64,
    /// As the provider reports it; 0 when it does not.
    pub total_tokens: u64,
}

impl Usage {
    /// Share of the prompt that came from a cache, 0.0 to 1.0; 0.0 for an empty prompt.
    pub fn cache_hit_rate(&self) -> f64 {
        match self.input.saturating_add(self.cache_read).saturating_add(self.cache_write) {
            0 => 0.0,
            all => self.cache_read as f64 / all as f64,
        }
    }

    /// The reported total, or the sum of the parts where none was reported.
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
    // Saturating: the numbers are a service's, and no service can make a run overflow.
    fn add_assign(&mut self, other: Self) {
        self.total_tokens = self.total().saturating_add(other.total());
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// An entry of a transcript: a message for the model, or something that only the application reads.
///
/// Told apart by shape: an extension has the role `extension`, which no [`Message`] has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum AgentMessage {
    /// Sent to the model.
    Llm(LlmMessage),
    /// Kept in the transcript and filtered out of every request.
    Extension(ExtensionMessage),
}

impl AgentMessage {
    /// The message that a model would read; `None` for an extension.
    pub fn as_llm(&self) -> Option<&Message> {
        match self {
            Self::Llm(m) => Some(&m.message),
            Self::Extension(_) => None,
        }
    }

    /// The texts of messages that a model would read, one under the other: a goal for who takes one text.
    ///
    /// # Errors
    /// [`RunError::EmptyPrompt`]: there is no text.
    pub fn joined_text(messages: &[Self]) -> Result<String, RunError> {
        let texts: Vec<_> = messages.iter().filter_map(Self::as_llm).map(Message::text).collect();
        match texts.join("\n\n") {
            text if text.trim().is_empty() => Err(RunError::EmptyPrompt),
            text => Ok(text),
        }
    }

    /// The same message, dated now if it has no date: [`Timestamp::default`].
    pub fn dated(mut self, now: Timestamp) -> Self {
        if let Self::Llm(LlmMessage { message: Message::User(user), .. }) = &mut self
            && user.timestamp == Timestamp::default()
        {
            user.timestamp = now;
        }
        self
    }

    /// The same, said by somebody.
    pub fn said_by(mut self, speaker: Speaker) -> Self {
        if let Self::Llm(m) = &mut self {
            m.by = Some(speaker);
        }
        self
    }

    /// Who said it, if it says so.
    pub fn speaker(&self) -> Option<Speaker> {
        match self {
            Self::Llm(m) => m.by,
            Self::Extension(_) => None,
        }
    }
}

impl From<Message> for AgentMessage {
    fn from(message: Message) -> Self {
        Self::Llm(LlmMessage { message, turn_id: None, metadata: None, by: None })
    }
}

/// What a person says; whoever takes it dates it.
impl From<&str> for AgentMessage {
    fn from(text: &str) -> Self {
        Message::user(text, Timestamp::default()).into()
    }
}

/// What a person says; whoever takes it dates it.
impl From<String> for AgentMessage {
    fn from(text: String) -> Self {
        Message::user(text, Timestamp::default()).into()
    }
}

impl From<ExtensionMessage> for AgentMessage {
    fn from(message: ExtensionMessage) -> Self {
        Self::Extension(message)
    }
}

/// A message with what the application knows about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmMessage {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// The turn that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Who said it, where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MessageMetadata>,
    /// Who said it, if not the one whom a run takes for the speaker of its prompts: a person or, where another agent
    /// called it, that one's model. What an event brings should say so here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Speaker>,
}

/// Who said a message, where and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageMetadata {
    /// Unique everywhere; version 4 UUIDs outside tests.
    pub message_id: MessageId,
    /// When, in ISO-8601.
    #[serde(with = "iso8601")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The conversation; empty when there is none.
    #[serde(default)]
    pub conversation_id: String,
    /// The person; empty when unknown.
    #[serde(default)]
    pub user_id: String,
}

impl MessageMetadata {
    /// Metadata of a message outside any conversation, from nobody that is known.
    pub fn new(message_id: impl Into<MessageId>, timestamp: Timestamp) -> Self {
        Self {
            message_id: message_id.into(),
            timestamp,
            conversation_id: String::new(),
            user_id: String::new(),
        }
    }
}

/// Something that an application keeps in the transcript and that no model ever sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtensionMessage {
    role: ExtensionRole,
    /// The application's name for what this is, for instance `ui_update`.
    pub kind: String,
    /// Whatever the application wants to keep.
    pub data: Json,
}

impl ExtensionMessage {
    /// An extension message.
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
    fn what_is_told_is_believed_as_far_as_the_least_of_it() {
        let mut user = UserMessage::new(vec![Content::text("Where?")], Timestamp::default());
        assert_eq!(user.least_told(), Trust::Trusted);
        let plain = serde_json::to_string(&user).unwrap();
        assert!(!plain.contains("told"), "{plain}");
        for (told, least) in [
            (Trust::Trusted, Trust::Trusted),
            (Trust::Model, Trust::Model),
            (Trust::Trusted, Trust::Model),
            (Trust::Untrusted, Trust::Untrusted),
            (Trust::Trusted, Trust::Untrusted),
        ] {
            user.tell(Told::new("In Bern.", told));
            let json = serde_json::to_string(&user).unwrap();
            let read: UserMessage = serde_json::from_str(&json).unwrap();
            assert_eq!((&read, read.least_told()), (&user, least));
            // As it was written before that was noted.
            let old = json.replace(&format!(r#","told_trust":"{}""#, least.as_str()), "");
            let old: UserMessage = serde_json::from_str(&old).unwrap();
            assert_eq!(old.least_told(), Trust::Untrusted);
        }
        assert_eq!(user.said(), [Content::text("Where?")]);
    }
}
