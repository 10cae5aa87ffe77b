//! Extracts facts from texts.

mod llm;
mod rules;

use archon_types::{BoxFuture, MemoryError, RunId, Timestamp, Trust};

use crate::Fact;

pub use llm::LlmExtractor;
pub use rules::RuleExtractor;

/// Finds facts in a text.
pub trait KnowledgeExtractor: Send + Sync {
    /// Returns the extractor's name and version. Unread entries are marked with it, so two extractors on one
    /// store need different ids.
    fn id(&self) -> &str;

    /// Returns the facts. Their trust level is at most the passage's.
    fn extract<'a>(&'a self, passage: &'a Passage) -> BoxFuture<'a, Result<Vec<Fact>, MemoryError>>;
}

/// A text to extract facts from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Passage {
    /// The text.
    pub text: String,
    /// Name of the speaker: the subject of sentences with `I`.
    pub speaker: String,
    /// Time at which it was said.
    pub at: Timestamp,
    /// The run in which it was said.
    pub run: Option<RunId>,
    /// The text's trust level.
    pub trust: Trust,
    /// The id of its entry, if it is stored: the facts are forgotten together with the entry.
    pub entry: Option<String>,
}

impl Passage {
    /// Creates an untrusted passage.
    pub fn new(text: impl Into<String>, speaker: impl Into<String>, at: Timestamp) -> Self {
        Self {
            text: text.into(),
            speaker: speaker.into(),
            at,
            run: None,
            trust: Trust::Untrusted,
            entry: None,
        }
    }

    /// Sets the trust level.
    pub fn trusted(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the run.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Sets the id of the entry that the text is stored as.
    pub fn of_entry(mut self, id: impl Into<String>) -> Self {
        self.entry = Some(id.into());
        self
    }
}
