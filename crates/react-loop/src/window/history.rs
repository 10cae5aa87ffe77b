//! The conversation of earlier runs of a session, as a new run receives it.

use std::sync::Arc;

use archon_types::{
    AssistantMessage, Attributed, Content, ContextLevel, Message, Record, RecordBody, SessionMode,
    SnapshotResult, SnapshotSpending, Speaker, Tokenizer, Trust,
};

use super::{Messages, entries::Entry};

/// The conversation before a run, with its token counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub(crate) messages: Messages,
    pub(crate) entries: Vec<Entry>,
    /// The tokenizer that counted the entries; `None` if the entries are not counted.
    pub(crate) counted_by: Option<Tokenizer>,
    /// The level of window usage that the latest notice told the model.
    pub(crate) status: ContextLevel,
    /// The spending of the earlier runs, for a run that shares their budget.
    pub(crate) spent: SnapshotSpending,
    /// Permission rules of "always allow" answers, valid for the rest of the session in `workspace`.
    pub(crate) trusted: Vec<String>,
    pub(crate) workspace: Option<String>,
    /// The mode of the session.
    pub(crate) mode: SessionMode,
    /// Results of calls that read or wrote files. Known only if the history was read from logs.
    pub(crate) seen: Vec<SnapshotResult>,
}

impl History {
    /// Returns the messages, oldest first.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Adds the prompts and the answer of a run of a plan or a team, from its log.
    pub(crate) fn after(mut self, records: &[Arc<Record>]) -> Self {
        for Attributed { message, by, trust, .. } in prompts_and_answer(records) {
            let entry = Entry { trust, ..Entry::new(message, 0, by) };
            Arc::make_mut(&mut self.messages).push(entry.entered().clone());
            self.entries.push(entry);
            self.counted_by = None;
        }
        self
    }

    /// Returns the messages that a new run sees unchanged. Messages that were reworded or shortened are left out.
    pub fn in_full(&self) -> Vec<Attributed> {
        self.entries.iter().filter(|entry| entry.is_whole()).map(Entry::attributed).collect()
    }

    /// Returns true if the model must answer the last message: a prompt or a tool result.
    pub(crate) fn wants_answer(&self) -> bool {
        self.messages.last().is_some_and(|message| !matches!(**message, Message::Assistant(_)))
    }
}

/// Returns the prompts of the run of a plan or a team, and its answer if there is one. The answer is untrusted,
/// because it builds on the output of tools and other agents.
pub fn prompts_and_answer(records: &[Arc<Record>]) -> Vec<Attributed> {
    let message = |record: &Arc<Record>| match &record.body {
        RecordBody::MessageAdded { message, .. } => {
            let by = message.speaker().unwrap_or(Speaker::Person);
            Some(Attributed::new(message.as_llm()?.clone(), by).with_trust(by.trust()))
        }
        RecordBody::RunFinished(outcome) => {
            let content = vec![Content::text(outcome.answer()?)];
            let answer = AssistantMessage { content, timestamp: record.at, ..AssistantMessage::default() };
            Some(Attributed::new(Message::Assistant(answer), Speaker::Model).with_trust(Trust::Untrusted))
        }
        _ => None,
    };
    records.iter().filter_map(message).collect()
}

impl From<Messages> for History {
    fn from(messages: Messages) -> Self {
        let entry = |message: &Arc<Message>| Entry::new(message.clone(), 0, Speaker::of(message));
        Self { entries: messages.iter().map(entry).collect(), messages, ..Self::default() }
    }
}
