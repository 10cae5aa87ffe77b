//! The storage of memories: one trait for every kind of memory and every backend.
//!
//! A store has no models and no ranking. It stores entries, finds candidates by words and by vectors, and
//! returns the raw scores of both searches; the code above the store combines them.

use std::collections::BTreeSet;

use futures_core::future::BoxFuture;

use crate::{Json, messages::Trust, values::Timestamp};

use super::{
    collection::{Collection, MemoryError},
    memory_entry::{MemoryEntry, MemoryKind},
};

/// Stores the entries of one collection and of all collections within it. The store cannot reach other
/// collections: the collection is part of every query, not a filter of its results.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{
///     BoxFuture, Collection, Listing, MemoryCandidates, MemoryChange, MemoryError, MemoryPage, MemorySearch,
///     MemoryStore,
/// };
///
/// /// A store that nobody can change.
/// struct ReadOnly(Arc<dyn MemoryStore>);
///
/// impl MemoryStore for ReadOnly {
///     fn scope(&self) -> &Collection {
///         self.0.scope()
///     }
///
///     fn apply(&self, _changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
///         Box::pin(std::future::ready(Err(MemoryError::Unsupported { what: "changing entries" })))
///     }
///
///     fn candidates<'a>(
///         &'a self,
///         search: &'a MemorySearch,
///     ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
///         self.0.candidates(search)
///     }
///
///     fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
///         self.0.list(listing)
///     }
/// }
/// ```
pub trait MemoryStore: Send + Sync {
    /// Returns the collection that the store is bound to; the root if it is bound to none.
    fn scope(&self) -> &Collection;

    /// Applies all of these changes, in order; if one fails, applies none. Returns the number of affected
    /// entries.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] and [`MemoryError::OutOfScope`] for an entry that cannot be stored;
    /// [`MemoryError::Changed`] if an [expectation](MemoryChange::Expect) is not met;
    /// [`MemoryError::Storage`] if the storage fails.
    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>>;

    /// Returns candidates in no particular order, with raw scores: at most [`MemorySearch::limit`] entries
    /// found by words and as many found by vector. An entry found by both is returned once, with both scores.
    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>>;

    /// Returns a page of entries, in the order in which they were first written, or in reverse order.
    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>>;

    /// Removes the bytes of deleted entries (texts, words and vectors) from the files of the store, as far as
    /// the store can. By default does nothing, for stores that leave no such bytes. The SQLite store writes
    /// its whole file anew, and other writers wait for it.
    ///
    /// # Errors
    /// [`MemoryError::Storage`] if bytes may be left.
    fn erase_deleted(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A change of the entries in a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MemoryChange {
    /// Stores an entry, which replaces the entry with the same collection and id. An entry without a
    /// collection goes into the collection that the store is bound to.
    Put(Box<MemoryEntry>),
    /// Deletes every entry that matches the filter.
    Forget(MemoryFilter),
    /// Sets the vector of an entry, unless the entry's text is no longer `content`.
    Embed {
        /// The id of the entry.
        id: String,
        /// The collection of the entry.
        collection: Collection,
        /// The text that the vector was made from.
        content: String,
        /// The [`id`](crate::Embedder::id) of the embedder.
        embedder: String,
        /// The vector.
        vector: Vec<f32>,
    },
    /// Sets the time at which an entry was last useful.
    Use {
        /// The id of the entry.
        id: String,
        /// The time at which the entry was useful.
        at: Timestamp,
    },
    /// A condition: all changes of the same call fail unless the filter still matches exactly the given
    /// entries. Use it for changes that depend on entries read before. A store checks all conditions before
    /// it makes any change.
    Expect {
        /// The filter with which `entries` were read.
        filter: MemoryFilter,
        /// The entries that were read, the first written one first, without damaged entries. They are
        /// compared [as written](MemoryEntry::is_as_written), so vectors may differ.
        entries: Vec<MemoryEntry>,
    },
}

impl MemoryChange {
    /// Checks the change as far as this is possible without the stored entries. `scope` is the collection
    /// that the store is bound to.
    ///
    /// # Errors
    /// [`MemoryError::OutOfScope`] for a collection outside of `scope`; [`MemoryError::Invalid`] for an entry
    /// or a vector that cannot be stored.
    pub fn check(&self, scope: &Collection) -> Result<(), MemoryError> {
        match self {
            Self::Put(entry) => {
                entry.check()?;
                match entry.collection.is_root() {
                    true => Ok(()),
                    false => scope.narrowed(Some(&entry.collection)).map(drop),
                }
            }
            Self::Forget(filter) | Self::Expect { filter, .. } => {
                scope.narrowed(filter.collection.as_ref()).map(drop)
            }
            Self::Embed { id, collection, embedder, vector, .. } => {
                scope.narrowed(Some(collection))?;
                MemoryEntry::check_embedder(id, embedder)?;
                if vector.is_empty() || vector.iter().any(|x| !x.is_finite()) {
                    let problem = "its vector is empty or has a value that is not a number".to_owned();
                    return Err(MemoryError::Invalid { id: id.clone(), problem });
                }
                Ok(())
            }
            Self::Use { .. } => Ok(()),
        }
    }

    /// Creates a change that stores an entry.
    pub fn put(entry: MemoryEntry) -> Self {
        Self::Put(Box::new(entry))
    }

    /// Creates a change that deletes the entry with this id.
    pub fn forget(id: impl Into<String>) -> Self {
        Self::Forget(MemoryFilter {
            ids: vec![id.into()],
            validity: Validity::Any,
            ..MemoryFilter::default()
        })
    }
}

/// A filter of entries. Default: all entries that have no end of validity.
///
/// ```
/// use archon_types::{Collection, MemoryFilter, MemoryKind};
///
/// let anna = Collection::new("user:anna")?;
/// let filter = MemoryFilter::all().of(&[MemoryKind::Fact]).exactly(&anna);
/// # Ok::<(), archon_types::MemoryError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemoryFilter {
    /// Only entries of this collection and of the collections within it; `None` for the collection that the
    /// store is bound to.
    pub collection: Option<Collection>,
    /// True to match only entries of `collection` itself, without entries of collections within it.
    pub exact: bool,
    /// Only entries with these ids; all ids if empty.
    pub ids: Vec<String>,
    /// Only entries without these ids.
    pub without: BTreeSet<String>,
    /// Only entries of these kinds; all kinds if empty.
    pub kinds: Vec<MemoryKind>,
    /// Only entries with this key.
    pub key: Option<String>,
    /// Only entries with a key that has this prefix.
    pub key_prefix: Option<String>,
    /// Only entries with these metadata values.
    pub metadata: serde_json::Map<String, Json>,
    /// Only entries of this trust level or a higher one. Default: all levels.
    pub trust: Trust,
    /// Only entries stored at this time or later.
    pub from: Option<Timestamp>,
    /// Only entries stored before this time.
    pub until: Option<Timestamp>,
    /// Only entries with this validity.
    pub validity: Validity,
    /// The id of an embedder: only entries without a vector of this embedder.
    pub not_embedded_by: Option<String>,
}

impl MemoryFilter {
    /// Creates a filter that matches all entries, also those that are no longer valid.
    pub fn all() -> Self {
        Self { validity: Validity::Any, ..Self::default() }
    }

    /// Sets the kinds of entries to match; all kinds if `kinds` is empty.
    pub fn of(mut self, kinds: &[MemoryKind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// Restricts the filter to entries of exactly this collection, without collections within it. The root
    /// stands for the collection that the store is bound to, because entries without a collection are stored
    /// there.
    pub fn exactly(mut self, collection: &Collection) -> Self {
        self.collection = (!collection.is_root()).then(|| collection.clone());
        self.exact = true;
        self
    }

    /// Returns true if an entry matches the filter, apart from the collection, which the store must compare
    /// itself. The tests of stores compare their results with this function.
    pub fn fits(&self, entry: &MemoryEntry) -> bool {
        let holds = match self.validity {
            Validity::Any => true,
            Validity::Open => entry.valid_to.is_none(),
            Validity::At(t) => {
                entry.valid_from.is_none_or(|from| from <= t) && entry.valid_to.is_none_or(|to| t < to)
            }
        };
        let embedded = self.not_embedded_by.as_ref().is_some_and(|id| entry.embedder.as_ref() == Some(id));
        holds
            && !embedded
            && (self.ids.is_empty() || self.ids.contains(&entry.id))
            && !self.without.contains(&entry.id)
            && (self.kinds.is_empty() || self.kinds.contains(&entry.kind))
            && self.key.as_ref().is_none_or(|key| entry.key.as_ref() == Some(key))
            && self.key_prefix.as_ref().is_none_or(|prefix| begins_with(entry.key.as_ref(), prefix))
            && self.metadata.iter().all(|(name, value)| entry.metadata.get(name) == Some(value))
            && self.trust <= entry.trust
            && self.from.is_none_or(|from| from <= entry.timestamp)
            && self.until.is_none_or(|until| entry.timestamp < until)
    }
}

fn begins_with(key: Option<&String>, prefix: &str) -> bool {
    key.is_some_and(|key| key.starts_with(prefix))
}

/// A condition on the period in which an entry is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Validity {
    /// The validity of the entry has no end.
    #[default]
    Open,
    /// The entry was valid at this time.
    At(Timestamp),
    /// Any validity.
    Any,
}

/// A search for entries by words, by a vector, or by both.
///
/// ```
/// use archon_types::MemorySearch;
///
/// let search = MemorySearch::words("tea or coffee", 10).near("my-embedder", vec![0.6, 0.8]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemorySearch {
    /// The words to search for; an entry needs only one of them. Empty for no search by words. The most
    /// significant words come first, because a store may use only the first 24.
    pub text: String,
    /// The id of an embedder, and a vector that it made, to compare with the vectors of the entries; `None`
    /// for no search by vector.
    pub vector: Option<(String, Vec<f32>)>,
    /// The maximum number of entries found by words; the same maximum applies to entries found by vector.
    pub limit: usize,
    /// The conditions that every found entry must match.
    pub filter: MemoryFilter,
}

impl MemorySearch {
    /// Checks that a vector can be compared with stored vectors of `expected` dimensions; `None` if no
    /// vectors are stored yet.
    ///
    /// # Errors
    /// [`MemoryError::Question`] if the vector has another number of dimensions, or a value that is not
    /// finite.
    pub fn check_vector(vector: &[f32], expected: Option<usize>) -> Result<(), MemoryError> {
        let problem = match expected {
            _ if vector.iter().any(|x| !x.is_finite()) => {
                "the vector has a value that is not a number".to_owned()
            }
            Some(expected) if expected != vector.len() => {
                format!("the vector has {} dimensions, stored vectors have {expected}", vector.len())
            }
            _ => return Ok(()),
        };
        Err(MemoryError::Question { problem })
    }

    /// Creates a search by words for at most `limit` entries.
    pub fn words(text: impl Into<String>, limit: usize) -> Self {
        Self { text: text.into(), limit, ..Self::default() }
    }

    /// Adds a search by vector. `embedder` is the id of the embedder that made the vector.
    pub fn near(mut self, embedder: impl Into<String>, vector: Vec<f32>) -> Self {
        self.vector = Some((embedder.into(), vector));
        self
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemoryCandidates {
    /// The entries that were found, with their scores.
    pub candidates: Vec<Candidate>,
    /// The entries that could not be read.
    pub damaged: Vec<Damaged>,
}

/// An entry that a search found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The entry, without its vector.
    pub entry: MemoryEntry,
    /// The score for matching words, BM25 or similar, higher is better; `None` if no word matches.
    pub lexical: Option<f32>,
    /// The cosine similarity of the entry's vector and the vector of the search, higher is better; `None` if
    /// the vectors were not compared.
    pub vector: Option<f32>,
}

impl Candidate {
    /// Creates a candidate from an entry and its scores.
    pub fn new(entry: MemoryEntry, lexical: Option<f32>, vector: Option<f32>) -> Self {
        Self { entry, lexical, vector }
    }
}

/// An entry that exists but cannot be read. Search results and pages list such entries in `damaged`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damaged {
    /// The id of the entry.
    pub id: String,
    /// The description of the damage.
    pub problem: String,
}

impl Damaged {
    /// Creates the report of a damaged entry.
    pub fn new(id: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { id: id.into(), problem: problem.into() }
    }
}

/// A request for a page of entries.
///
/// ```
/// use archon_types::{Listing, MemoryFilter, MemoryOrder};
///
/// // The page after the entry with the position 120, of 50 entries.
/// let listing = Listing::new(MemoryFilter::all(), MemoryOrder::Latest, 50).after(120);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listing {
    /// The conditions that every entry must match.
    pub filter: MemoryFilter,
    /// The order of the entries on the page and from page to page.
    pub order: MemoryOrder,
    /// Only entries after this [`position`](MemoryEntry::position), in the direction of the order.
    pub after: Option<u64>,
    /// The maximum number of entries on the page.
    pub limit: usize,
}

impl Listing {
    /// Creates a request for the first `limit` entries in an order.
    pub fn new(filter: MemoryFilter, order: MemoryOrder, limit: usize) -> Self {
        Self { filter, order, after: None, limit }
    }

    /// Sets the [`position`](MemoryEntry::position) of an entry; the page begins after this entry.
    pub fn after(mut self, position: u64) -> Self {
        self.after = Some(position);
        self
    }
}

/// The order of entries in a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryOrder {
    /// The last written entry first.
    #[default]
    Latest,
    /// The first written entry first.
    First,
}

/// A page of entries.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemoryPage {
    /// The entries in the requested order, with their vectors.
    pub entries: Vec<MemoryEntry>,
    /// The entries that could not be read.
    pub damaged: Vec<Damaged>,
    /// The position to set as [`Listing::after`] for the next page; `None` if this is the last page.
    pub next: Option<u64>,
}
