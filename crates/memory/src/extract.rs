//! Extracts facts from texts.

mod llm;
mod relations;
mod rules;

use archon_types::{BoxFuture, MemoryError, RunId, Timestamp, Trust};

use crate::Fact;

pub use llm::LlmExtractor;
pub use rules::RuleExtractor;

/// Finds facts in a text.
///
/// ```
/// use archon_memory::{Fact, KnowledgeExtractor, Passage};
/// use archon_types::{BoxFuture, MemoryError};
///
/// /// Learns the language of a person.
/// struct Languages;
///
/// impl KnowledgeExtractor for Languages {
///     fn id(&self) -> &str {
///         "languages-1"
///     }
///
///     fn extract<'a>(&'a self, passage: &'a Passage) -> BoxFuture<'a, Result<Vec<Fact>, MemoryError>> {
///         let is_german = passage.text.contains("Ich spreche Deutsch");
///         let fact = Fact::new(&passage.speaker, "speaks", "German").trusted(passage.trust);
///         let facts = is_german.then_some(fact).into_iter().collect::<Vec<_>>();
///         Box::pin(std::future::ready(Ok(facts)))
///     }
/// }
/// ```
pub trait KnowledgeExtractor: Send + Sync {
    /// Returns the extractor's name and version. Unread entries are marked with this id, so two extractors
    /// on one store need different ids.
    fn id(&self) -> &str;

    /// Returns the facts that a passage states, and the facts that, as the passage says, no longer hold
    /// ([`Fact::no_longer`]). A fact with a higher trust level than the passage gets the level of the passage.
    fn extract<'a>(&'a self, passage: &'a Passage) -> BoxFuture<'a, Result<Vec<Fact>, MemoryError>>;
}

/// A text to extract facts from.
///
/// ```
/// use archon_memory::Passage;
/// use archon_types::{Timestamp, Trust};
///
/// let passage = Passage::new("I live in Rome.", "Anna", Timestamp::from_millis(0))
///     .trusted(Trust::Trusted)
///     .of_run("run_1".into())
///     .of_entry("mem_1");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Passage {
    /// The text from which facts are extracted.
    pub text: String,
    /// The name of the speaker, which is the subject of sentences with `I`.
    pub speaker: String,
    /// The time at which the text was said.
    pub at: Timestamp,
    /// The run in which the text was said.
    pub run: Option<RunId>,
    /// The trust level of the text.
    pub trust: Trust,
    /// The id of the entry with this text, if it is stored: the facts are forgotten together with the entry.
    pub entry: Option<String>,
}

impl Passage {
    /// Creates an untrusted passage.
    pub fn new(text: impl Into<String>, speaker: impl Into<String>, at: Timestamp) -> Self {
        Self { text: text.into(), speaker: speaker.into(), at, ..Self::default() }
    }

    /// Sets the trust level of the text. Default: untrusted.
    pub fn trusted(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the run in which the text was said.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Sets the id of the entry that stores the text.
    pub fn of_entry(mut self, id: impl Into<String>) -> Self {
        self.entry = Some(id.into());
        self
    }
}
