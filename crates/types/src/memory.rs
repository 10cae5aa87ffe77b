//! Memories: what is kept of a conversation, of a task, and for good.
//!
//! A store returns candidates with raw scores; fusing, fitting and formatting them is the business
//! of whoever asks. Each value of these traits is bound to its owner (one conversation, one task,
//! one tenant's collection), so nothing that is asked through it can reach another's.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Ids, Json, Timestamp, iso8601};

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

/// What is kept for good and found by meaning.
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
    /// Unique within its store.
    pub id: String,
    /// The text.
    pub content: String,
    /// When it was remembered; ISO-8601 in JSON.
    #[serde(with = "iso8601")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// Whatever else is known: role, source, user, importance.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub metadata: serde_json::Map<String, Json>,
    /// The content's vector, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Vec<f32>>,
}

impl MemoryEntry {
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
}

impl MemoryQuery {
    /// A query for up to 5 entries, whatever their score.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), limit: 5, threshold: None, metadata: serde_json::Map::new() }
    }
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Recalled {
    /// The entry.
    pub entry: MemoryEntry,
    /// The store's own score, higher is better; cosine similarity where vectors are compared.
    pub score: f32,
}

impl Recalled {
    /// An entry and its score.
    pub fn new(entry: MemoryEntry, score: f32) -> Self {
        Self { entry, score }
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
    /// An entry is damaged.
    #[error("memory entry {id} is damaged: {problem}")]
    Corrupt {
        /// The entry.
        id: String,
        /// What is wrong.
        problem: String,
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
            Self::Corrupt { .. } => "delete the entry; the others can be read",
            Self::Unsupported { .. } => "use a store that can do it",
        }
    }
}
