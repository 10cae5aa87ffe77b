//! Facts from texts.

mod llm;
mod rules;

use archon_types::{BoxFuture, MemoryError, RunId, Timestamp, Trust};

use crate::Fact;

pub use llm::LlmExtractor;
pub use rules::RuleExtractor;

/// Finds facts in a text.
pub trait KnowledgeExtractor: Send + Sync {
    /// Names it and its version. What it has yet to read is marked with this, so two that work together have two names.
    fn id(&self) -> &str;

    /// The facts. What they are believed is at most what the passage is.
    fn extract<'a>(&'a self, passage: &'a Passage) -> BoxFuture<'a, Result<Vec<Fact>, MemoryError>>;
}

/// A text that facts are looked for in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Passage {
    /// What was said.
    pub text: String,
    /// Who said it: the subject of what says `I`.
    pub speaker: String,
    /// When.
    pub at: Timestamp,
    /// In which run.
    pub run: Option<RunId>,
    /// How far it is believed.
    pub trust: Trust,
    /// The id of the entry that it is, if it is kept: what is learnt from it is forgotten with it.
    pub entry: Option<String>,
}

impl Passage {
    /// A text that nobody vouches for.
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

    /// The same, believed so far.
    pub fn trusted(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// The same of a run.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// The same, kept as the entry of this id.
    pub fn of_entry(mut self, id: impl Into<String>) -> Self {
        self.entry = Some(id.into());
        self
    }
}
