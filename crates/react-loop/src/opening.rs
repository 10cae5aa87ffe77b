//! Initial input of a run: a restored conversation, prompts, and messages that already wait.

use archon_types::{
    AgentMessage, Attributed, Content, Context, InputFilter, InputVerdict, LlmMessage, Message, ModeSource,
    PromptSource, RecordBody, Redactor, RunMemory, SessionMode, Speaker,
};
use std::sync::Arc;

/// Initial input of a run. If the input is empty, the run answers the last message of its conversation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Opening {
    /// A conversation from outside the journal, which comes before all other input.
    pub restored: Vec<Message>,
    /// True if the input filters check the restored conversation, too, because it does not come from runs of this
    /// program.
    pub checks_restored: bool,
    /// Prompts of the run.
    pub prompts: Vec<AgentMessage>,
    /// Steering messages that arrived before the run started.
    pub steers: Vec<AgentMessage>,
    /// Follow-ups that arrived before the run started.
    pub follow_ups: Vec<AgentMessage>,
    /// The new mode of the session; `None` keeps the present mode.
    pub mode: Option<SessionMode>,
    /// `Some` compacts the conversation before the first request. The text has a person's instructions for the summary,
    /// and may be empty. A run without another input ends after the compaction.
    pub compaction: Option<String>,
}

impl Opening {
    /// Creates the input of a run that starts with prompts.
    pub fn new(prompts: Vec<AgentMessage>) -> Self {
        Self { prompts, ..Self::default() }
    }

    /// Creates the input of a run that only compacts its conversation; `instructions` are those of a
    /// person for the summary.
    pub fn compacting(instructions: Option<String>) -> Self {
        Self { compaction: Some(instructions.unwrap_or_default()), ..Self::default() }
    }

    /// Returns true if the input has no new message and requests no compaction: the run then answers the last message
    /// of the conversation.
    pub fn is_continuation(&self) -> bool {
        !self.has_messages() && self.compaction.is_none()
    }

    fn has_messages(&self) -> bool {
        !(self.prompts.is_empty() && self.steers.is_empty() && self.follow_ups.is_empty())
    }

    /// Returns true if there are messages, and none has content.
    pub(crate) fn is_empty_prompt(&self) -> bool {
        self.has_messages() && !self.says_something()
    }

    /// Returns true if a user message has text or pictures.
    fn says_something(&self) -> bool {
        let says = |message: &AgentMessage| match message.as_llm() {
            Some(message @ Message::User(_)) => message.content().iter().any(|c| c.as_text() != Some("")),
            _ => false,
        };
        [&self.prompts, &self.steers, &self.follow_ups].into_iter().flatten().any(says)
    }

    /// Takes the secrets of the run out of every message, as they are taken out of the log.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        self.restored.iter_mut().for_each(|message| redactor.clean_message(message));
        for message in [&mut self.prompts, &mut self.steers, &mut self.follow_ups].into_iter().flatten() {
            if let AgentMessage::Llm(message) = message {
                redactor.clean_message(&mut message.message);
            }
        }
        self
    }

    /// Applies the filters to every message, in order. Warnings of filters are added to the message; the
    /// first rejection is the error.
    pub(crate) async fn filtered(mut self, filters: &[Arc<dyn InputFilter>]) -> Result<Self, String> {
        if self.checks_restored {
            for message in &mut self.restored {
                check_restored(message, filters).await?;
            }
        }
        for message in [&mut self.prompts, &mut self.steers, &mut self.follow_ups].into_iter().flatten() {
            for filter in filters {
                let Some(text) = message.as_llm() else { break };
                match filter.check(text).await {
                    InputVerdict::Warn(warning) => {
                        if let AgentMessage::Llm(LlmMessage { message: Message::User(user), .. }) = message {
                            user.add_written(Content::text(warning));
                        }
                        // The warning is not the author's text and may repeat a page, so the message has
                        // no known author any more.
                        *message = message.clone().with_speaker(Speaker::Unknown);
                    }
                    InputVerdict::Reject(reason) => return Err(reason),
                    _ => {}
                }
            }
        }
        Ok(self)
    }

    /// Adds recalled memories to each message. A cancel ends the recall.
    pub(crate) async fn recalled(
        mut self,
        memory: Option<&dyn RunMemory>,
        mut window: Vec<Attributed>,
        context: &Context,
    ) -> Self {
        let Some(memory) = memory else { return self };
        window.extend(
            self.restored.iter().map(|message| Attributed::new(message.clone(), Speaker::of(message))),
        );
        for message in [&mut self.prompts, &mut self.steers, &mut self.follow_ups].into_iter().flatten() {
            let Some(text) = message.as_llm() else { continue };
            let recall = memory.recall(context, text, &window);
            if let Some(Some(recalled)) = context.cancel.run_until_cancelled(recall).await
                && let AgentMessage::Llm(LlmMessage { message: Message::User(user), .. }) = message
            {
                user.add_recalled(recalled);
            }
        }
        self
    }

    /// Returns the records of this input.
    pub(crate) fn into_records(self) -> impl Iterator<Item = RecordBody> {
        let said = |messages: Vec<AgentMessage>, source| {
            messages.into_iter().map(move |message| RecordBody::MessageAdded { message, source })
        };
        let restored = (!self.restored.is_empty())
            .then_some(RecordBody::ConversationRestored { messages: self.restored });
        restored
            .into_iter()
            .chain(said(self.prompts, PromptSource::Prompt))
            .chain(said(self.steers, PromptSource::Steer))
            .chain(said(self.follow_ups, PromptSource::FollowUp))
            .chain(self.mode.map(|mode| RecordBody::ModeChanged { mode, source: ModeSource::Person }))
            .chain(self.compaction.map(|text| RecordBody::CompactionRequested {
                instructions: Some(text).filter(|text| !text.trim().is_empty()),
            }))
    }
}

/// Applies the filters to a message of a restored conversation, whose author is unknown already.
async fn check_restored(message: &mut Message, filters: &[Arc<dyn InputFilter>]) -> Result<(), String> {
    for filter in filters {
        let verdict = filter.check(message).await;
        match (verdict, &mut *message) {
            (InputVerdict::Warn(warning), Message::User(user)) => user.add_written(Content::text(warning)),
            (InputVerdict::Warn(warning), Message::Assistant(said)) => {
                said.content.push(Content::text(warning));
            }
            (InputVerdict::Reject(reason), _) => return Err(reason),
            _ => {}
        }
    }
    Ok(())
}
