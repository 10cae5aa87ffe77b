//! Memories: what is kept of a conversation, of a task, and for good.
//!
//! A store returns candidates with raw scores; fusing, fitting and formatting them is the business
//! of whoever asks. Each value of these traits is bound to its owner (one conversation, one task,
//! one tenant's collection), so nothing that is asked through it can reach another's.

use std::collections::BTreeSet;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Collection, Ids, Json, RunId, Timestamp, iso8601};

/// The conversation so far, in order.
pub trait Episodic: Send + Sync {
    /// Adds an entry at the end.
    fn append(&self, entry: MemoryEntry) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// Copies of the entries from index `since` on, oldest first; of these the last `limit`.
    fn get_messages(
        &self,
        limit: Option<usize>,
        since: usize,
    ) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>>;

    /// Forgets everything.
    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// The newest entries that together have at most `max_tokens`, oldest first.
    ///
    /// Stops at the first entry that does not fit, so the result has no gaps. `count` gives the
    /// tokens of a text.
    fn get_recent<'a>(
        &'a self,
        max_tokens: usize,
        count: &'a (dyn Fn(&str) -> usize + Send + Sync),
    ) -> BoxFuture<'a, Result<Vec<MemoryEntry>, MemoryError>> {
        Box::pin(async move {
            let mut entries = self.get_messages(None, 0).await?;
            let mut left = max_tokens;
            let fitting = entries.iter().rev().take_while(|entry| {
                let rest = left.checked_sub(count(&entry.content));
                left = rest.unwrap_or(left);
                rest.is_some()
            });
            let first = entries.len() - fitting.count();
            Ok(entries.split_off(first))
        })
    }
}

/// What the current task needs at hand: values by name.
pub trait Working: Send + Sync {
    /// Sets all of these values, or none of them.
    fn update(&self, values: serde_json::Map<String, Json>) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// A copy of everything.
    fn to_map(&self) -> BoxFuture<'_, Result<serde_json::Map<String, Json>, MemoryError>>;

    /// Forgets everything, as when a task is done.
    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// One value.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Json>, MemoryError>> {
        Box::pin(async move { Ok(self.to_map().await?.remove(key)) })
    }

    /// Sets one value.
    fn set<'a>(&'a self, key: &'a str, value: Json) -> BoxFuture<'a, Result<(), MemoryError>> {
        self.update(serde_json::Map::from_iter([(key.to_owned(), value)]))
    }
}

/// What is kept for good and found by meaning. Memories are passed as `Arc<dyn LongTerm>` and wrapped in one another, so their
/// futures are boxed in the trait itself.
pub trait LongTerm: Send + Sync {
    /// Keeps a text and returns its id.
    fn store<'a>(
        &'a self,
        content: &'a str,
        metadata: serde_json::Map<String, Json>,
    ) -> BoxFuture<'a, Result<String, MemoryError>>;

    /// What fits the query best, best first.
    fn query<'a>(&'a self, query: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>>;

    /// Forgets one entry; whether there was one.
    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>>;

    /// The newest entries, newest first, for instance to sum them up.
    ///
    /// # Errors
    /// [`MemoryError::Unsupported`] unless the store can list what it has.
    fn newest(&self, _limit: usize) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>> {
        Box::pin(async { Err(MemoryError::Unsupported { what: "listing entries" }) })
    }
}

/// Turns text into vectors whose closeness means likeness.
pub trait Embedder: Send + Sync {
    /// Names model and version; vectors of different ids cannot be compared.
    fn id(&self) -> &str;

    /// Length of the vectors.
    fn dimensions(&self) -> usize;

    /// One vector for each text, in order.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>>;
}

/// One thing that is remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct MemoryEntry {
    /// Unique within its collection.
    pub id: String,
    /// The text.
    pub content: String,
    /// When it was remembered; ISO-8601 in JSON.
    #[serde(with = "iso8601")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// Whatever else is known: role, source, user.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub metadata: serde_json::Map<String, Json>,
    /// The content's vector, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Vec<f32>>,
    /// [`Embedder::id`] of whoever made the vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Collection::is_root")]
    pub collection: Collection,
    /// What it is.
    #[serde(skip_serializing_if = "is_default")]
    pub kind: MemoryKind,
    /// How far it is believed.
    #[serde(skip_serializing_if = "is_default")]
    pub trust: Trust,
    /// The run that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What it is about: entries of one key are about one thing, at different times or from different
    /// sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Since when it holds; always if unset. Milliseconds since the epoch in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Timestamp>,
    /// From when on it no longer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Timestamp>,
    /// How much it matters, from 0 to 1; 0.5 counts where it is unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<f32>,
    /// When it was last of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
    /// Its place in the order of writing, given by the store; 0 before it is stored. Not part of its JSON.
    #[serde(skip)]
    pub position: u64,
}

/// What is wrong with a name, if it is its length.
fn too_long(part: &str, name: &str) -> Option<String> {
    let (found, most) = (name.len(), MemoryEntry::MAX_NAME_BYTES);
    (found > most).then(|| format!("its {part} has {found} bytes, at most {most} are kept"))
}

impl MemoryEntry {
    /// Checks the name of an embedder whose vector is to be given to the entry of this id.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] if it has more than [`MAX_NAME_BYTES`](Self::MAX_NAME_BYTES).
    pub fn check_embedder(id: &str, embedder: &str) -> Result<(), MemoryError> {
        let invalid = |problem| MemoryError::Invalid { id: id.to_owned(), problem };
        too_long("embedder", embedder).map_or(Ok(()), |problem| Err(invalid(problem)))
    }

    /// Whether another is this one as it was written: the same but for its vector, and for when it was of use.
    pub fn is_as_written(&self, other: &Self) -> bool {
        let said = |e: &Self| (e.kind, e.timestamp, e.trust, e.importance);
        let held = |e: &Self| (e.valid_from, e.valid_to, e.position);
        (said(self), held(self)) == (said(other), held(other))
            && (&self.id, &self.collection, &self.key) == (&other.id, &other.collection, &other.key)
            && (&self.content, &self.run, &self.metadata) == (&other.content, &other.run, &other.metadata)
    }

    /// An entry without metadata and vector.
    pub fn new(id: impl Into<String>, content: impl Into<String>, timestamp: Timestamp) -> Self {
        Self { id: id.into(), content: content.into(), timestamp, ..Self::default() }
    }

    /// What somebody said; the role stands in the metadata.
    pub fn said(
        id: impl Into<String>,
        role: impl Into<String>,
        content: impl Into<String>,
        timestamp: Timestamp,
    ) -> Self {
        let mut entry = Self::new(id, content, timestamp);
        entry.metadata.insert(ROLE.to_owned(), Json::String(role.into()));
        entry
    }

    /// Who said it, if somebody did.
    pub fn role(&self) -> Option<&str> {
        self.metadata.get(ROLE).and_then(Json::as_str)
    }

    /// The same with a vector.
    pub fn with_vector(mut self, embedder: impl Into<String>, vector: Vec<f32>) -> Self {
        (self.embedder, self.embedding) = (Some(embedder.into()), Some(vector));
        self
    }

    /// Whether a store may keep it. Every store asks this of every entry.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] for an empty text, a text or metadata of more than [`MAX_BYTES`](Self::MAX_BYTES), an
    /// id, a key, an embedder or a session of more than [`MAX_NAME_BYTES`](Self::MAX_NAME_BYTES), a vector that is
    /// empty, nobody's or not finite, an importance that is not between 0 and 1, and a validity that ends before it
    /// begins.
    pub fn check(&self) -> Result<(), MemoryError> {
        let Some(problem) = self.problem() else { return Ok(()) };
        // An id may itself be what is too long.
        let id = self.id.chars().take(Self::MAX_NAME_BYTES).collect();
        Err(MemoryError::Invalid { id, problem })
    }

    fn problem(&self) -> Option<String> {
        let problem = match &self.embedding {
            _ if self.id.is_empty() => "it has no id",
            _ if self.content.trim().is_empty() => "its text is empty",
            Some(_) if self.embedder.is_none() => "its vector names no embedder",
            Some(vector) if vector.is_empty() => "its vector is empty",
            Some(vector) if vector.iter().any(|x| !x.is_finite()) => {
                "its vector has a value that is no number"
            }
            _ if self.importance.is_some_and(|i| !(0.0..=1.0).contains(&i)) => {
                "its importance is not between 0 and 1"
            }
            _ if self.valid_from.zip(self.valid_to).is_some_and(|(from, to)| to < from) => {
                "it ends to hold before it begins"
            }
            _ => return self.too_long(),
        };
        Some(problem.to_owned())
    }

    /// What of it is longer than a store keeps.
    fn too_long(&self) -> Option<String> {
        let session = self.metadata.get(SESSION).and_then(Json::as_str);
        let names = [
            ("id", Some(self.id.as_str())),
            ("key", self.key.as_deref()),
            ("embedder", self.embedder.as_deref()),
            ("session", session),
        ];
        for (part, name) in names {
            if let Some(problem) = name.and_then(|name| too_long(part, name)) {
                return Some(problem);
            }
        }
        if self.content.len() > Self::MAX_BYTES {
            let found = self.content.len();
            return Some(format!(
                "its text has {found} bytes, at most {} are kept; split it",
                Self::MAX_BYTES
            ));
        }
        let metadata = serde_json::to_string(&self.metadata).map_or(0, |json| json.len());
        (metadata > Self::MAX_BYTES).then(|| {
            format!("its metadata has {metadata} bytes as JSON, at most {} are kept", Self::MAX_BYTES)
        })
    }

    /// The longest text that a store keeps, and the longest metadata as JSON: 1 MiB. Longer texts are to be split.
    pub const MAX_BYTES: usize = 1 << 20;

    /// The longest id, key, embedder and session that a store keeps. Databases find entries by them: beside the name of a
    /// collection, so much is what an index of PostgreSQL has room for.
    pub const MAX_NAME_BYTES: usize = 2 << 10;

    /// The entry with a fresh id and the time `now` where the JSON that it came from had none.
    pub fn with_missing_filled(mut self, ids: &dyn Ids, now: Timestamp) -> Self {
        if self.id.is_empty() {
            self.id = ids.fresh("mem");
        }
        if self.timestamp == Timestamp::default() {
            self.timestamp = now;
        }
        self
    }
}

const ROLE: &str = "role";
/// Which conversation an entry is of, in its metadata.
const SESSION: &str = "session";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemoryKind {
    /// Something worth keeping.
    #[default]
    Note,
    /// What somebody said in a conversation.
    Turn,
    /// What a stretch of a conversation came to.
    Summary,
    /// A fact of the knowledge: subject, relation, object.
    Fact,
    /// A value that a task has at hand.
    Value,
    /// Of something that was forgotten and that a session would keep again: that it was, and nothing of what it said.
    Forgotten,
}

impl MemoryKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Note, Self::Turn, Self::Summary, Self::Fact, Self::Value, Self::Forgotten];

    /// The kinds that say something: all but the marks of what was forgotten.
    pub const TOLD: [Self; 5] = [Self::Note, Self::Turn, Self::Summary, Self::Fact, Self::Value];

    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Turn => "turn",
            Self::Summary => "summary",
            Self::Fact => "fact",
            Self::Value => "value",
            Self::Forgotten => "forgotten",
        }
    }
}

/// How far a text is believed. What is believed less never takes the place of what is believed more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// From a page, a tool, an event or another tenant.
    #[default]
    Untrusted,
    /// Concluded by a model.
    Model,
    /// Said by the person whose memory it is, or by the program.
    Trusted,
}

impl Trust {
    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Model => "model",
            Self::Trusted => "trusted",
        }
    }

    /// Stands before such a text in a prompt, so that nobody takes it for the person's; empty for what is the person's.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Untrusted => "[from an untrusted source] ",
            Self::Model => "[an assistant said] ",
            Self::Trusted => "",
        }
    }
}

/// What is looked for in a [`LongTerm`] memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// What the entries should be about.
    pub text: String,
    /// Most entries that are returned. Default 5.
    pub limit: usize,
    /// Entries that score less are left out.
    pub threshold: Option<f32>,
    /// Entries must have these metadata values.
    pub metadata: serde_json::Map<String, Json>,
    /// Only what held then; what holds now if unset.
    pub as_of: Option<Timestamp>,
    /// Only what is trusted so far or further.
    pub trust: Trust,
    /// Only of these kinds; of any if empty.
    pub kinds: Vec<MemoryKind>,
    /// Only of this collection within the one that the memory is bound to.
    pub collection: Option<Collection>,
    /// None of these ids, for instance because whoever asks has them before it.
    pub without: BTreeSet<String>,
}

impl MemoryQuery {
    /// A query for up to 5 entries, whatever their score.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            limit: 5,
            threshold: None,
            metadata: serde_json::Map::new(),
            as_of: None,
            trust: Trust::Untrusted,
            kinds: Vec::new(),
            collection: None,
            without: BTreeSet::new(),
        }
    }
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Recalled {
    /// The entry.
    pub entry: MemoryEntry,
    /// How far it is about the question by itself, from 0 to 1. The order may count more: what stands around it, when
    /// it was, how much it matters.
    pub score: f32,
    /// How well the words fit, as the store says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lexical: Option<f32>,
    /// Cosine similarity of the vectors, where they were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<f32>,
}

impl Recalled {
    /// An entry and its score.
    pub fn new(entry: MemoryEntry, score: f32) -> Self {
        Self { entry, score, lexical: None, vector: None }
    }

    /// The text as a line of a prompt, where it is data, with its [mark](Trust::mark).
    pub fn line(&self) -> String {
        let words: Vec<&str> = self.entry.content.split_whitespace().collect();
        format!("{}{}", self.entry.trust.mark(), words.join(" "))
    }
}

/// Why a memory did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The storage failed: full, read-only, gone.
    #[error("cannot {action} memory at {place}: {source}")]
    Storage {
        /// What was tried, for instance `write`.
        action: &'static str,
        /// Where.
        place: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No vector could be made.
    #[error("embedding with {embedder} failed: {problem}")]
    Embedding {
        /// [`Embedder::id`].
        embedder: String,
        /// Why.
        problem: String,
    },
    /// A model that was asked about memories gave no usable answer.
    #[error("the model {model} did not answer: {problem}")]
    Model {
        /// Which.
        model: String,
        /// Why.
        problem: String,
    },
    /// An entry is damaged.
    #[error("memory entry {id} is damaged: {problem}")]
    Corrupt {
        /// The entry.
        id: String,
        /// What is wrong.
        problem: String,
    },
    /// An entry cannot be kept, or a question not be answered.
    #[error("memory entry {id} cannot be kept: {problem}")]
    Invalid {
        /// The entry.
        id: String,
        /// What is wrong.
        problem: String,
    },
    /// A question that cannot be answered.
    #[error("the memories cannot be asked: {problem}")]
    Question {
        /// What is wrong with it.
        problem: String,
    },
    /// No name of a collection.
    #[error("`{name}` is no collection: {problem}")]
    Collection {
        /// What was given.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Another collection was meant than the memory is bound to.
    #[error("collection `{collection}` is not within `{scope}`")]
    OutOfScope {
        /// What was meant.
        collection: Collection,
        /// What the memory is bound to.
        scope: Collection,
    },
    /// What a change rests on was changed meanwhile.
    #[error("memories were changed by somebody else while they were being changed; nothing was done")]
    Changed,
    /// The store was written by a newer version.
    #[error("the memories at {place} have format {found}; this version knows up to {supported}")]
    FutureStore {
        /// Where.
        place: String,
        /// Its format.
        found: u32,
        /// The newest that is known.
        supported: u32,
    },
    /// The store cannot do this.
    #[error("this memory does not support {what}")]
    Unsupported {
        /// What was asked.
        what: &'static str,
    },
}

impl MemoryError {
    /// What a person can do about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Storage { .. } => "check that the place exists, is writable and has free space",
            Self::Embedding { .. } => "check the embedder's model and address; search by keyword still works",
            Self::Model { .. } => "try again, or use what works without a model",
            Self::Corrupt { .. } => "delete the entry; the others can be read",
            Self::Invalid { .. } => "correct the entry; nothing of the batch was kept",
            Self::Question { .. } => "correct the question",
            Self::Collection { .. } => "name it like `user:anna` or `team:eng:anna`",
            Self::OutOfScope { .. } => "open the memory for that collection, if it is yours",
            Self::Changed => "try again",
            Self::FutureStore { .. } => "use the version that wrote it, or a newer one",
            Self::Unsupported { .. } => "use a store that can do it",
        }
    }
}
