//! What a run finds when it begins: the conversation that earlier runs of its session left.

use std::sync::Arc;

use archon_types::{CarriedResult, CarriedSpending, Message, Said, Speaker, Tokenizer};

use super::{Messages, entries::Entry};

/// The conversation before a run, with the tokens that were counted already.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub(crate) messages: Messages,
    pub(crate) entries: Vec<Entry>,
    /// Who counted the entries; nobody if they are not counted.
    pub(crate) counted_by: Option<Tokenizer>,
    /// What the runs before spent, for a run that shares their budget.
    pub(crate) spent: CarriedSpending,
    /// Rules under which nobody is to be asked for the rest of the session, in the folder that they were given in.
    pub(crate) trusted: Vec<String>,
    pub(crate) workspace: Option<String>,
    /// What calls have told of the files that they read or wrote; known only of what was read from logs.
    pub(crate) seen: Vec<CarriedResult>,
}

impl History {
    /// The messages, oldest first.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// What a run that begins with it reads as it was said, with nothing cut.
    pub(crate) fn in_full(&self) -> Vec<Said> {
        self.entries.iter().filter(|entry| entry.is_whole()).map(Entry::said).collect()
    }

    /// Whether the model has the next word: a person or a tool had the last one.
    pub(crate) fn wants_answer(&self) -> bool {
        self.messages.last().is_some_and(|message| !matches!(**message, Message::Assistant(_)))
    }
}

impl From<Messages> for History {
    fn from(messages: Messages) -> Self {
        let entry = |message: &Arc<Message>| Entry::new(message.clone(), 0, Speaker::of(message));
        Self { entries: messages.iter().map(entry).collect(), messages, ..Self::default() }
    }
}
