//! Where memories are kept: one trait for every kind of memory and every backend.
//!
//! A store knows nothing of models and formulas. It keeps entries, finds candidates by words and by
//! vectors, and says both raw scores; what they mean together is decided above it.

use std::collections::BTreeSet;

use futures_core::future::BoxFuture;

use crate::{Collection, Json, MemoryEntry, MemoryError, MemoryKind, Timestamp, Trust};

/// Entries of one collection and of all within it. Nothing that is asked through it reaches another
/// collection: the bound is part of every query, not a filter over its results.
pub trait MemoryStore: Send + Sync {
    /// The collection that the store is bound to; the root if to none.
    fn scope(&self) -> &Collection;

    /// Makes all of these changes, in order, or none of them. Returns how many entries they met.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] and [`MemoryError::OutOfScope`] for an entry that cannot be kept;
    /// [`MemoryError::Changed`] where something is not as it is [expected](MemoryChange::Expect);
    /// [`MemoryError::Storage`].
    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>>;

    /// What may fit, in no promised order, with raw scores: at most [`MemorySearch::limit`] entries by
    /// words and as many by vector. An entry that both found stands there once, with both.
    fn candidates<'a>(&'a self, search: &'a MemorySearch) -> BoxFuture<'a, Result<Found, MemoryError>>;

    /// Entries in the order in which they were first written, or against it.
    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>>;
}

/// One change of a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MemoryChange {
    /// Keeps an entry, in place of the one of the same collection and id if there is one. An entry
    /// without a collection goes into the one that the store is bound to.
    Put(Box<MemoryEntry>),
    /// Forgets every entry that fits.
    Forget(MemoryFilter),
    /// Gives an entry its vector, unless its text is another by now.
    Embed {
        /// Which entry.
        id: String,
        /// Whose it is.
        collection: Collection,
        /// The text that the vector is of.
        content: String,
        /// [`Embedder::id`](crate::Embedder::id).
        embedder: String,
        /// The vector.
        vector: Vec<f32>,
    },
    /// Notes that an entry was of use.
    Use {
        /// Which entry.
        id: String,
        /// When.
        at: Timestamp,
    },
    /// Changes nothing, and lets the batch be made only if what fits is still this: changes that rest on what was read
    /// are made from what is there. It is looked at before any change of the batch.
    Expect {
        /// What was read.
        filter: MemoryFilter,
        /// What there was, the first written first, without what is damaged. It is the same
        /// [as it was written](MemoryEntry::is_as_written), whatever became of vectors.
        entries: Vec<MemoryEntry>,
    },
}

impl MemoryChange {
    /// Keeps an entry.
    pub fn put(entry: MemoryEntry) -> Self {
        Self::Put(Box::new(entry))
    }

    /// Forgets the entry of this id.
    pub fn forget(id: impl Into<String>) -> Self {
        Self::Forget(MemoryFilter {
            ids: vec![id.into()],
            validity: Validity::Any,
            ..MemoryFilter::default()
        })
    }
}

/// Which entries are meant. The default: all that nothing has closed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemoryFilter {
    /// Only of this collection and of those within it; of all that the store is bound to if unset.
    pub collection: Option<Collection>,
    /// Only of that collection itself, and of none within it.
    pub exact: bool,
    /// Only these ids; any if empty.
    pub ids: Vec<String>,
    /// None of these ids.
    pub without: BTreeSet<String>,
    /// Only these kinds; any if empty.
    pub kinds: Vec<MemoryKind>,
    /// Only with this key.
    pub key: Option<String>,
    /// Only with a key that begins so.
    pub key_prefix: Option<String>,
    /// Only with these metadata values.
    pub metadata: serde_json::Map<String, Json>,
    /// Only what is trusted so far or further.
    pub trust: Trust,
    /// Only what was remembered then or later.
    pub from: Option<Timestamp>,
    /// Only what was remembered before.
    pub until: Option<Timestamp>,
    /// Only what held then.
    pub validity: Validity,
    /// Only what has no vector of this embedder.
    pub not_embedded_by: Option<String>,
}

impl MemoryFilter {
    /// Everything, closed entries too.
    pub fn all() -> Self {
        Self { validity: Validity::Any, ..Self::default() }
    }

    /// The same for these kinds only.
    pub fn of(mut self, kinds: &[MemoryKind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// The same of this collection alone: of none within it. With the root, which an entry without a collection has, of
    /// the one that the store is bound to.
    pub fn exactly(mut self, collection: &Collection) -> Self {
        self.collection = (!collection.is_root()).then(|| collection.clone());
        self.exact = true;
        self
    }

    /// Whether an entry fits. The collection is the store's business and not looked at; `tests` of a
    /// store compare with this.
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

/// When something has to have held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Validity {
    /// Nothing has closed it.
    #[default]
    Open,
    /// It held at this time.
    At(Timestamp),
    /// It is there, whenever it held.
    Any,
}

/// What a store is asked to find.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemorySearch {
    /// Words, any of which may occur; none are looked for if it is empty. The most telling ones come first: a store
    /// may look for the first 24 alone.
    pub text: String,
    /// A vector to be near to, and the embedder that made it.
    pub vector: Option<(String, Vec<f32>)>,
    /// Most entries by words, and by vector.
    pub limit: usize,
    /// Which entries come into question.
    pub filter: MemoryFilter,
}

impl MemorySearch {
    /// A search by words.
    pub fn words(text: impl Into<String>, limit: usize) -> Self {
        Self { text: text.into(), limit, ..Self::default() }
    }

    /// The same by a vector too.
    pub fn near(mut self, embedder: impl Into<String>, vector: Vec<f32>) -> Self {
        self.vector = Some((embedder.into(), vector));
        self
    }
}

/// What a store found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// Entries with their scores.
    pub candidates: Vec<Candidate>,
    /// Entries that could not be read.
    pub damaged: Vec<Damaged>,
}

/// An entry that may fit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The entry, without its vector.
    pub entry: MemoryEntry,
    /// BM25 or what the store has in its place, higher is better; `None` if no word occurs.
    pub lexical: Option<f32>,
    /// Cosine similarity; `None` if the vectors were not compared.
    pub vector: Option<f32>,
}

impl Candidate {
    /// An entry and its scores.
    pub fn new(entry: MemoryEntry, lexical: Option<f32>, vector: Option<f32>) -> Self {
        Self { entry, lexical, vector }
    }
}

/// An entry that is there and cannot be read. It is left out and the others are not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damaged {
    /// Which.
    pub id: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Damaged {
    /// An entry and what is wrong with it.
    pub fn new(id: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { id: id.into(), problem: problem.into() }
    }
}

/// What is listed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listing {
    /// Which entries.
    pub filter: MemoryFilter,
    /// In which order.
    pub order: MemoryOrder,
    /// Only past this [`position`](MemoryEntry::position), in the direction of the order.
    pub after: Option<u64>,
    /// Most entries of a page.
    pub limit: usize,
}

impl Listing {
    /// The first `limit` entries in an order.
    pub fn new(filter: MemoryFilter, order: MemoryOrder, limit: usize) -> Self {
        Self { filter, order, after: None, limit }
    }

    /// The same, past a position.
    pub fn after(mut self, position: u64) -> Self {
        self.after = Some(position);
        self
    }
}

/// Which end of a store comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryOrder {
    /// What was written last.
    #[default]
    Latest,
    /// What was written first.
    First,
}

/// Entries of a listing.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemoryPage {
    /// In the order that was asked for, with their vectors.
    pub entries: Vec<MemoryEntry>,
    /// Entries that could not be read.
    pub damaged: Vec<Damaged>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}
