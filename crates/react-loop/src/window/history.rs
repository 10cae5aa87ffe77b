//! What a run finds when it begins: the conversation that earlier runs of its session left.

use archon_types::Tokenizer;

use super::{Messages, entries::Entry};

/// The conversation before a run, with the tokens that were counted already.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) messages: Messages,
    pub(crate) entries: Vec<Entry>,
    /// Who counted the entries; nobody if they are not counted.
    pub(crate) counted_by: Option<Tokenizer>,
}

impl History {
    /// The messages, oldest first.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }
}

impl From<Messages> for History {
    fn from(messages: Messages) -> Self {
        let entry = |message: &_| Entry { message: std::sync::Arc::clone(message), clipped: None, tokens: 0 };
        Self { entries: messages.iter().map(entry).collect(), messages, counted_by: None }
    }
}
