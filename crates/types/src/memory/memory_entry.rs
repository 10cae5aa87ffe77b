//! The traits of the three kinds of memory: of a conversation, of a task, and long-term; and their entries.
//!
//! A store returns candidates with raw scores; its caller combines, selects and formats them. Each memory is
//! bound to its owner (a conversation, a task, a tenant's collection) and cannot reach other data.

use std::collections::BTreeSet;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    Json,
    messages::Trust,
    values::{Ids, RunId, Timestamp, iso8601},
};

use super::collection::{Collection, MemoryError};

/// The memory of a conversation: its entries in order.
///
/// ```
/// use std::sync::Mutex;
///
/// use archon_types::{BoxFuture, Episodic, MemoryEntry, MemoryError};
///
/// /// A conversation in memory.
/// #[derive(Default)]
/// struct Turns(Mutex<Vec<MemoryEntry>>);
///
/// impl Episodic for Turns {
///     fn append(&self, entry: MemoryEntry) -> BoxFuture<'_, Result<(), MemoryError>> {
///         self.0.lock().expect("no panic").push(entry);
///         Box::pin(std::future::ready(Ok(())))
///     }
///
///     fn get_messages(
///         &self,
///         limit: Option<usize>,
///         since: usize,
///     ) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>> {
///         let turns = self.0.lock().expect("no panic");
///         let newest = turns.len().saturating_sub(limit.unwrap_or(usize::MAX));
///         let found: Vec<MemoryEntry> = turns.iter().skip(newest.max(since)).cloned().collect();
///         Box::pin(std::future::ready(Ok(found)))
///     }
///
///     fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
///         self.0.lock().expect("no panic").clear();
///         Box::pin(std::future::ready(Ok(())))
///     }
/// }
/// ```
pub trait Episodic: Send + Sync {
    /// Appends an entry.
    fn append(&self, entry: MemoryEntry) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// Returns copies of the entries from the index `since` on, oldest first; the oldest entry has the index
    /// 0. With a `limit`, returns only the last `limit` of these entries.
    fn get_messages(
        &self,
        limit: Option<usize>,
        since: usize,
    ) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>>;

    /// Deletes all entries.
    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// Returns the newest entries that together have at most `max_tokens`, oldest first.
    ///
    /// The entries are taken from the newest backwards, and the first entry that does not fit ends the
    /// result, so the result has no gaps. `count` counts the tokens of a text.
    fn get_recent<'a>(
        &'a self,
        max_tokens: usize,
        count: &'a (dyn Fn(&str) -> usize + Send + Sync),
    ) -> BoxFuture<'a, Result<Vec<MemoryEntry>, MemoryError>> {
        Box::pin(async move {
            let mut entries = self.get_messages(None, 0).await?;
            let mut remaining = max_tokens;
            let fitting = entries.iter().rev().take_while(|entry| {
                let rest = remaining.checked_sub(count(&entry.content));
                remaining = rest.unwrap_or(remaining);
                rest.is_some()
            });
            let first = entries.len() - fitting.count();
            Ok(entries.split_off(first))
        })
    }
}

/// The memory of an agent's current task: named values.
///
/// ```
/// use std::sync::Mutex;
///
/// use archon_types::{BoxFuture, Json, MemoryError, Working};
/// use serde_json::Map;
///
/// /// Values in memory.
/// #[derive(Default)]
/// struct Values(Mutex<Map<String, Json>>);
///
/// impl Working for Values {
///     fn update(&self, values: Map<String, Json>) -> BoxFuture<'_, Result<(), MemoryError>> {
///         self.0.lock().expect("no panic").extend(values);
///         Box::pin(std::future::ready(Ok(())))
///     }
///
///     fn to_map(&self) -> BoxFuture<'_, Result<Map<String, Json>, MemoryError>> {
///         let values = self.0.lock().expect("no panic").clone();
///         Box::pin(std::future::ready(Ok(values)))
///     }
///
///     fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
///         self.0.lock().expect("no panic").clear();
///         Box::pin(std::future::ready(Ok(())))
///     }
/// }
/// ```
pub trait Working: Send + Sync {
    /// Sets these values by name, and keeps all values with other names. If a value cannot be set, none is
    /// set.
    fn update(&self, values: serde_json::Map<String, Json>) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// Returns a copy of all values.
    fn to_map(&self) -> BoxFuture<'_, Result<serde_json::Map<String, Json>, MemoryError>>;

    /// Deletes all values, for instance when a task is done.
    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>>;

    /// Returns the value with the name `key`; `None` if there is none.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Json>, MemoryError>> {
        Box::pin(async move { Ok(self.to_map().await?.remove(key)) })
    }

    /// Sets the value with the name `key`, in place of an earlier value.
    fn set<'a>(&'a self, key: &'a str, value: Json) -> BoxFuture<'a, Result<(), MemoryError>> {
        self.update(serde_json::Map::from_iter([(key.to_owned(), value)]))
    }
}

/// Long-term memory, which is searched by meaning. The methods return boxed futures, so that a memory can be
/// an `Arc<dyn LongTerm>` and one memory can wrap another.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, Json, LongTerm, MemoryError, MemoryQuery, Recalled};
///
/// /// A memory that nobody can change.
/// struct ReadOnly(Arc<dyn LongTerm>);
///
/// impl LongTerm for ReadOnly {
///     fn store<'a>(
///         &'a self,
///         _content: &'a str,
///         _metadata: serde_json::Map<String, Json>,
///     ) -> BoxFuture<'a, Result<String, MemoryError>> {
///         Box::pin(std::future::ready(Err(MemoryError::Unsupported { what: "storing entries" })))
///     }
///
///     fn query<'a>(&'a self, query: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>> {
///         self.0.query(query)
///     }
///
///     fn delete<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>> {
///         Box::pin(std::future::ready(Err(MemoryError::Unsupported { what: "deleting entries" })))
///     }
/// }
/// ```
pub trait LongTerm: Send + Sync {
    /// Stores a text with metadata, and returns the id of the new entry.
    fn store<'a>(
        &'a self,
        content: &'a str,
        metadata: serde_json::Map<String, Json>,
    ) -> BoxFuture<'a, Result<String, MemoryError>>;

    /// Returns the entries that match the query best, the best first.
    fn query<'a>(&'a self, query: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>>;

    /// Deletes one entry; returns true if it existed.
    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>>;

    /// Returns the newest entries, newest first, for instance to summarise them.
    ///
    /// # Errors
    /// [`MemoryError::Unsupported`] if the store cannot list its entries.
    fn newest(&self, _limit: usize) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>> {
        Box::pin(async { Err(MemoryError::Unsupported { what: "listing entries" }) })
    }
}

/// Converts texts into vectors; similar texts have close vectors.
///
/// ```
/// use archon_types::{BoxFuture, Embedder, MemoryError};
///
/// /// One dimension for each vowel.
/// struct Vowels;
///
/// impl Embedder for Vowels {
///     fn id(&self) -> &str {
///         "vowels-1"
///     }
///
///     fn dimensions(&self) -> usize {
///         5
///     }
///
///     fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
///         let vector = |text: &String| -> Vec<f32> {
///             "aeiou".chars().map(|vowel| text.matches(vowel).count() as f32).collect()
///         };
///         let vectors: Vec<Vec<f32>> = texts.iter().map(vector).collect();
///         Box::pin(async move { Ok(vectors) })
///     }
/// }
/// ```
pub trait Embedder: Send + Sync {
    /// Returns the id of the model and its version. Only vectors of embedders with the same id are compared.
    fn id(&self) -> &str;

    /// Returns the number of dimensions of the vectors.
    fn dimensions(&self) -> usize;

    /// Returns one vector for each text, in the order of the texts.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>>;
}

/// One entry of a memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct MemoryEntry {
    /// The id, unique within the collection.
    pub id: String,
    /// The text.
    pub content: String,
    /// The time at which the entry was stored, in ISO-8601 in JSON.
    #[serde(with = "iso8601")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// Further data: role, source, user.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub metadata: serde_json::Map<String, Json>,
    /// The vector of the text, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Vec<f32>>,
    /// The [`id`](Embedder::id) of the embedder that made the vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
    /// The collection that the entry belongs to.
    #[serde(skip_serializing_if = "Collection::is_root")]
    pub collection: Collection,
    /// The kind of the entry.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub kind: MemoryKind,
    /// The trust level of the text.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub trust: Trust,
    /// The run that the entry comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The key of the subject that the entry is about. Entries with the same key are about the same subject,
    /// at different times or from different sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The time from which on the entry is valid; `None` for always. Milliseconds since the epoch in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Timestamp>,
    /// The time from which on the entry is no longer valid; `None` if it is still valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Timestamp>,
    /// The importance, from 0 to 1; `None` counts as 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<f32>,
    /// The time at which the entry was last marked as useful.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
    /// The position in the order of writing, which the store assigns; 0 before that. Not in JSON.
    #[serde(skip)]
    pub position: u64,
}

/// Returns the problem if the text `name` is too long. `part` says which part of an entry the text is.
fn too_long(part: &str, name: &str) -> Option<String> {
    let (found, most) = (name.len(), MemoryEntry::MAX_NAME_BYTES);
    (found > most).then(|| format!("its {part} has {found} bytes, at most {most} are kept"))
}

impl MemoryEntry {
    /// Checks that the id `embedder` of an embedder is not too long. `id` is the id of the entry, for the
    /// error.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] if the embedder's id has more than [`MAX_NAME_BYTES`](Self::MAX_NAME_BYTES).
    pub fn check_embedder(id: &str, embedder: &str) -> Result<(), MemoryError> {
        let invalid = |problem| MemoryError::Invalid { id: id.to_owned(), problem };
        too_long("embedder", embedder).map_or(Ok(()), |problem| Err(invalid(problem)))
    }

    /// Checks that a new vector has as many dimensions as the stored vectors of the same embedder: `found` is
    /// the number of its dimensions, `expected` the number of theirs. `id` is the id of the entry, for the
    /// error.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] if `found` differs from `expected`.
    pub fn check_length(id: &str, embedder: &str, found: usize, expected: usize) -> Result<(), MemoryError> {
        if found == expected {
            return Ok(());
        }
        let problem = format!("its vector has {found} dimensions, those of {embedder} here have {expected}");
        Err(MemoryError::Invalid { id: id.to_owned(), problem })
    }

    /// Returns true if both entries are equal, apart from their vectors and from the times at which they were
    /// last marked as useful.
    pub fn is_as_written(&self, other: &Self) -> bool {
        let said = |e: &Self| (e.kind, e.timestamp, e.trust, e.importance);
        let held = |e: &Self| (e.valid_from, e.valid_to, e.position);
        (said(self), held(self)) == (said(other), held(other))
            && (&self.id, &self.collection, &self.key) == (&other.id, &other.collection, &other.key)
            && (&self.content, &self.run, &self.metadata) == (&other.content, &other.run, &other.metadata)
    }

    /// Creates a note without metadata and without a vector. The note is untrusted.
    pub fn new(id: impl Into<String>, content: impl Into<String>, timestamp: Timestamp) -> Self {
        Self { id: id.into(), content: content.into(), timestamp, ..Self::default() }
    }

    /// Creates an entry for a message. The role of the author, such as `user`, is stored in the metadata.
    pub fn of_message(
        id: impl Into<String>,
        role: impl Into<String>,
        content: impl Into<String>,
        timestamp: Timestamp,
    ) -> Self {
        let mut entry = Self::new(id, content, timestamp);
        entry.metadata.insert(ROLE.to_owned(), Json::String(role.into()));
        entry
    }

    /// Returns the role of the message's author, such as `user`; `None` if the metadata have no role.
    pub fn role(&self) -> Option<&str> {
        self.metadata.get(ROLE).and_then(Json::as_str)
    }

    /// Sets the vector and the id of the embedder that made it.
    ///
    /// ```
    /// use archon_types::{MemoryEntry, Timestamp};
    ///
    /// let entry = MemoryEntry::new("mem_1", "Anna drinks tea.", Timestamp::from_millis(0));
    /// let entry = entry.with_vector("my-embedder", vec![0.6, 0.8]);
    /// ```
    pub fn with_vector(mut self, embedder: impl Into<String>, vector: Vec<f32>) -> Self {
        (self.embedder, self.embedding) = (Some(embedder.into()), Some(vector));
        self
    }

    /// Checks that a store may keep the entry. Every store checks every entry.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] for an empty id or text, a text or metadata of more than
    /// [`MAX_BYTES`](Self::MAX_BYTES), an id, a key, an embedder or a session of more than
    /// [`MAX_NAME_BYTES`](Self::MAX_NAME_BYTES), a vector that is empty, not finite or without an embedder,
    /// an importance that is not between 0 and 1, and a validity that ends before it begins.
    pub fn check(&self) -> Result<(), MemoryError> {
        let Some(problem) = self.problem() else { return Ok(()) };
        // The id itself may be too long.
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
                "its vector has a value that is not a number"
            }
            _ if self.importance.is_some_and(|i| !(0.0..=1.0).contains(&i)) => {
                "its importance is not between 0 and 1"
            }
            _ if self.valid_from.zip(self.valid_to).is_some_and(|(from, to)| to < from) => {
                "its valid_to is earlier than its valid_from"
            }
            _ => return self.too_long(),
        };
        Some(problem.to_owned())
    }

    /// Returns the problem of the first part of the entry that is longer than its maximum; `None` if no part
    /// is.
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

    /// The maximum size of an entry's text, and of its metadata as JSON, in bytes: 1 MiB. Longer texts must
    /// be split.
    pub const MAX_BYTES: usize = 1 << 20;

    /// The maximum size of an entry's id and key, and of the ids of its embedder and session: 2 KiB each.
    /// Database indexes store these texts, and an index entry of PostgreSQL has no room for much more.
    pub const MAX_NAME_BYTES: usize = 2 << 10;

    /// Sets a new id if the entry has no id, and the time `now` if it has no time, for instance because the
    /// entry was read from JSON.
    ///
    /// ```
    /// use archon_types::{Ids, MemoryEntry, Timestamp};
    ///
    /// fn complete(entry: MemoryEntry, ids: &dyn Ids, now: Timestamp) -> MemoryEntry {
    ///     entry.with_missing_filled(ids, now)
    /// }
    /// ```
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

/// The metadata key of the session that an entry belongs to.
const SESSION: &str = "session";

/// The kind of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemoryKind {
    /// A note.
    #[default]
    Note,
    /// A message of a conversation.
    Turn,
    /// A summary of a part of a conversation.
    Summary,
    /// A fact: subject, relation, object.
    Fact,
    /// A named value of a [`Working`] memory.
    Value,
    /// A placeholder for a deleted entry, so that a session does not store the entry again. The placeholder
    /// has no part of the entry's text.
    Forgotten,
}

impl MemoryKind {
    /// The kinds with content: all but [`Forgotten`](Self::Forgotten).
    pub const WITH_CONTENT: [Self; 5] = [Self::Note, Self::Turn, Self::Summary, Self::Fact, Self::Value];
}

crate::values::named! { MemoryKind:
    Note = "note",
    Turn = "turn",
    Summary = "summary",
    Fact = "fact",
    Value = "value",
    Forgotten = "forgotten",
}

/// A query of a [`LongTerm`] memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// The text to search for.
    pub text: String,
    /// The maximum number of entries to return. Default 5.
    pub limit: usize,
    /// The minimum score of an entry, from 0 to 1; `None` for any score.
    pub threshold: Option<f32>,
    /// Only entries with these metadata values.
    pub metadata: serde_json::Map<String, Json>,
    /// Only entries that were valid at this time; `None` for now.
    pub as_of: Option<Timestamp>,
    /// Only entries of this trust level or a higher one. Default: all levels.
    pub trust: Trust,
    /// Only entries of these kinds. If empty: notes, messages, summaries and facts.
    pub kinds: Vec<MemoryKind>,
    /// Only entries of this collection and of the collections within it. It must be within the collection
    /// that the memory is bound to; `None` for that collection.
    pub collection: Option<Collection>,
    /// Only entries without these ids, for instance because the caller already has them.
    pub without: BTreeSet<String>,
}

impl MemoryQuery {
    /// Creates a query for up to 5 entries of any score.
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

/// An entry that a query found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Recalled {
    /// The entry.
    pub entry: MemoryEntry,
    /// The relevance of this entry alone, from 0 to 1. The order of the results also depends on neighbouring
    /// entries, on times in the question, on who said it and on age.
    pub score: f32,
    /// The score that the store gave the entry for matching words; `None` if no word matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lexical: Option<f32>,
    /// The cosine similarity of the vectors; `None` if they were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<f32>,
}

impl Recalled {
    /// Creates a result from an entry and its relevance, from 0 to 1.
    pub fn new(entry: MemoryEntry, score: f32) -> Self {
        Self { entry, score, lexical: None, vector: None }
    }

    /// Returns the text of the entry as one line for a prompt, with the [mark](Trust::mark) of its trust
    /// level.
    pub fn line(&self) -> String {
        let words: Vec<&str> = self.entry.content.split_whitespace().collect();
        format!("{}{}", self.entry.trust.mark(), words.join(" "))
    }
}
