//! The handle to all memories of one owner.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use archon_types::{
    Clock, Damaged, Embedder, Ids, Json, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter,
    MemoryKind, MemoryOrder, MemoryStore, Recalled, Timestamp,
};

use crate::{
    MemoryOptions,
    embedding::{vector_of_each, vectors},
};

/// All memories of one owner: a store bound to a collection, with clock, embedder and options. Clones share
/// the store.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_memory::{HashEmbedder, InMemoryStore, Memory, MemoryOptions};
/// use archon_types::{Clock, Ids};
///
/// fn memory(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Memory {
///     let mut options = MemoryOptions::default();
///     options.recalled = 5;
///     let memory = Memory::new(Arc::new(InMemoryStore::new()), clock, ids);
///     memory.with_embedder(Arc::new(HashEmbedder)).with_options(options)
/// }
/// ```
#[derive(Clone)]
pub struct Memory {
    pub(crate) parts: Arc<Parts>,
}

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn MemoryStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) options: MemoryOptions,
    pub(crate) answers: Mutex<Answers>,
    /// The number of writes by this handle and by the handles derived from it.
    pub(crate) written: Arc<AtomicU64>,
    /// Locked while facts are compared and written. The store detects conflicts anyway; the lock prevents
    /// callers in the same process from repeating work after a conflict.
    pub(crate) facts: Arc<futures_util::lock::Mutex<()>>,
}

/// Cached answers to queries, the newest at the end. They are valid until the next write.
#[derive(Default)]
pub(crate) struct Answers {
    /// The number of writes when the first of these answers was looked up; after a further write the answers
    /// are removed.
    pub(crate) generation: u64,
    /// The hash of each query, and its hits in order.
    pub(crate) cached: VecDeque<([u8; 32], Vec<Recalled>)>,
}

impl Memory {
    /// Creates a memory on `store`, which must already be bound to the owner's collection. The memory has no
    /// embedder, so it finds memories by words alone.
    pub fn new(store: Arc<dyn MemoryStore>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let parts = Parts {
            store,
            clock,
            ids,
            embedder: None,
            options: MemoryOptions::default(),
            answers: Mutex::default(),
            written: Arc::default(),
            facts: Arc::default(),
        };
        Self { parts: Arc::new(parts) }
    }

    /// Returns a handle on the same store with this embedder. The handle finds memories by meaning too, not only by
    /// words.
    pub fn with_embedder(&self, embedder: Arc<dyn Embedder>) -> Self {
        self.with(Some(embedder), self.parts.options.clone())
    }

    /// Returns a handle on the same store with these options. Default: `MemoryOptions::default`.
    pub fn with_options(&self, options: MemoryOptions) -> Self {
        self.with(self.parts.embedder.clone(), options)
    }

    pub(crate) fn with(&self, embedder: Option<Arc<dyn Embedder>>, options: MemoryOptions) -> Self {
        let Parts { store, clock, ids, written, facts, .. } = &*self.parts;
        let parts = Parts {
            store: store.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            embedder,
            options,
            answers: Mutex::default(),
            written: written.clone(),
            facts: facts.clone(),
        };
        Self { parts: Arc::new(parts) }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn MemoryStore> {
        &self.parts.store
    }

    /// Returns the embedder, if there is one.
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.parts.embedder.as_ref()
    }

    /// Returns the options.
    pub fn options(&self) -> &MemoryOptions {
        &self.parts.options
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn fresh(&self) -> String {
        self.parts.ids.fresh("mem")
    }

    /// Calls `work` with the cached answers; answers from before the last write are removed first.
    pub(crate) fn answers<T>(&self, work: impl FnOnce(&mut Answers) -> T) -> T {
        let mut answers = self.parts.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.parts.written.load(Ordering::Acquire);
        if answers.generation != written {
            answers.generation = written;
            answers.cached.clear();
        }
        work(&mut answers)
    }

    /// Applies changes and invalidates all cached answers: an answer that was looked up during the write may
    /// be outdated.
    pub(crate) async fn apply(&self, changes: Vec<MemoryChange>) -> Result<usize, MemoryError> {
        let done = self.parts.store.apply(changes).await;
        self.parts.written.fetch_add(1, Ordering::AcqRel);
        done
    }

    /// Writes entries and changes on the condition of their [`MemoryChange::Expect`]s. Returns `None` if the
    /// expected entries changed meanwhile: the caller then computes the changes again.
    ///
    /// # Errors
    /// Errors of the store, and [`MemoryError::Changed`] after too many attempts.
    pub(crate) async fn attempt(
        &self,
        mut entries: Vec<MemoryEntry>,
        changes: Vec<MemoryChange>,
        tries: &mut Tries,
    ) -> Result<Option<usize>, MemoryError> {
        for entry in entries.iter_mut().filter(|entry| entry.embedding.is_none()) {
            if let Some((embedder, vector)) = tries.vectors.get(&entry.content) {
                *entry = std::mem::take(entry).with_vector(embedder, vector.clone());
            }
        }
        self.add_vectors(&mut entries).await;
        let vectors = entries.iter().filter_map(|entry| {
            let vector = entry.embedder.clone().zip(entry.embedding.clone())?;
            Some((entry.content.clone(), vector))
        });
        tries.vectors.extend(vectors);
        match self.write(entries, changes).await {
            Err(MemoryError::Changed) if tries.count < MOST_TRIES => {
                tries.count += 1;
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// Adds a vector to each entry that has none. Entries that cannot be embedded stay without a vector.
    pub(crate) async fn add_vectors(&self, entries: &mut [MemoryEntry]) {
        let Some(embedder) = &self.parts.embedder else { return };
        for batch in entries.chunks_mut(self.parts.options.batch.max(1)) {
            let mut wanting: Vec<&mut MemoryEntry> = batch
                .iter_mut()
                .filter(|entry| entry.embedding.is_none() && entry.kind != MemoryKind::Value)
                .collect();
            let texts: Vec<String> = wanting.iter().map(|entry| entry.content.clone()).collect();
            let made = match &texts[..] {
                // For a single text the reason for a failure does not matter here.
                [_] => vectors(&**embedder, &texts).await.map(|made| made.into_iter().map(Ok).collect()),
                _ => vector_of_each(&**embedder, &texts).await,
            };
            let made: Vec<Result<Vec<f32>, MemoryError>> = match made {
                Ok(made) => made,
                Err(error) => {
                    tracing::warn!(%error, "entries are stored without vectors, and embedded later");
                    continue;
                }
            };
            for (entry, made) in wanting.iter_mut().zip(made) {
                match made {
                    Ok(vector) => **entry = std::mem::take(*entry).with_vector(embedder.id(), vector),
                    Err(error) => tracing::warn!(id = entry.id, %error, "kept without a vector"),
                }
            }
        }
    }

    /// Stores entries, all of them or none, and returns their ids. Entries whose vectors cannot be computed
    /// are stored without vectors and can be embedded later.
    ///
    /// # Errors
    /// As [`MemoryStore::apply`].
    pub async fn keep(&self, mut entries: Vec<MemoryEntry>) -> Result<Vec<String>, MemoryError> {
        let now = self.now();
        for entry in &mut entries {
            *entry = std::mem::take(entry).with_missing_filled(&*self.parts.ids, now);
            entry.check()?;
        }
        let ids = entries.iter().map(|entry| entry.id.clone()).collect();
        self.write(entries, Vec::new()).await?;
        Ok(ids)
    }

    /// Writes entries with their vectors, after the other changes. Returns the number of affected entries.
    pub(crate) async fn write(
        &self,
        mut entries: Vec<MemoryEntry>,
        changes: Vec<MemoryChange>,
    ) -> Result<usize, MemoryError> {
        self.add_vectors(&mut entries).await;
        let with_vectors = entries.iter().any(|entry| entry.embedding.is_some());
        let all = |entries: Vec<MemoryEntry>| {
            changes.iter().cloned().chain(entries.into_iter().map(MemoryChange::put)).collect::<Vec<_>>()
        };
        if entries.is_empty() && changes.is_empty() {
            return Ok(0);
        }
        match self.apply(all(entries.clone())).await {
            // All entries were checked, so the store refuses the length of a vector.
            Err(error @ MemoryError::Invalid { .. }) if with_vectors => {
                tracing::warn!(%error, "entries are stored without vectors");
                for entry in &mut entries {
                    (entry.embedder, entry.embedding) = (None, None);
                }
                self.apply(all(entries)).await
            }
            done => done,
        }
    }

    /// Deletes the entry with this id in this collection and in nested collections. Also deletes the entry's
    /// vector, all cached answers, and the facts that were learnt from this entry alone. A fact that a deleted
    /// fact had ended holds again. The changes in the store are made all together or not at all. Returns false
    /// if no such entry exists.
    ///
    /// A turn or summary that a run stored is replaced by a marker without content and with the same id, so
    /// that no run of the session stores the entry again.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn forget(&self, id: &str) -> Result<bool, MemoryError> {
        let mut filter = MemoryFilter::all().of(&MemoryKind::WITH_CONTENT);
        filter.ids = vec![id.to_owned()];
        Ok(self.forget_all(filter).await? > 0)
    }

    /// Removes the bytes of deleted entries from the store's files. The entries are forgotten even if bytes are
    /// left, so a failure is only logged.
    pub(crate) async fn erase_deleted(&self) {
        if let Err(error) = self.parts.store.erase_deleted().await {
            tracing::warn!(%error, advice = error.advice(), "the bytes of forgotten memories are still in the store's files");
        }
    }

    /// Returns markers for the deleted entries that runs had stored and would otherwise store again. With a note,
    /// returns markers for all deleted entries, with the note as their metadata; those that must stay have a run.
    pub(crate) async fn marks_of(
        &self,
        filter: &MemoryFilter,
        note: Option<&serde_json::Map<String, Json>>,
    ) -> Result<Vec<MemoryChange>, MemoryError> {
        const STORED_BY_RUNS: [MemoryKind; 2] = [MemoryKind::Turn, MemoryKind::Summary];
        let is_meant = |kind: &MemoryKind| filter.kinds.is_empty() || filter.kinds.contains(kind);
        let kinds = if note.is_some() { &MemoryKind::WITH_CONTENT[..] } else { &STORED_BY_RUNS };
        let kinds: Vec<_> = kinds.iter().copied().filter(is_meant).collect();
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        let mark = |entry: MemoryEntry| {
            let must_stay = STORED_BY_RUNS.contains(&entry.kind) && entry.run.is_some();
            let mut mark = MemoryEntry::new(entry.id, NOTHING, now);
            (mark.kind, mark.collection) = (MemoryKind::Forgotten, entry.collection);
            // It is valid at no time, so no query finds it.
            (mark.valid_from, mark.valid_to) = (Some(now), Some(now));
            if let Some(note) = note {
                mark.metadata = note.clone();
                mark.run = entry.run.filter(|_| must_stay);
            }
            (must_stay || note.is_some()).then(|| MemoryChange::put(mark))
        };
        Ok(self.all(filter.clone().of(&kinds)).await?.into_iter().filter_map(mark).collect())
    }

    /// Returns all entries that match, and the expectation that they are unchanged.
    pub(crate) async fn expected(
        &self,
        filter: MemoryFilter,
    ) -> Result<(Vec<MemoryEntry>, MemoryChange), MemoryError> {
        let entries = self.all(filter.clone()).await?;
        Ok((entries.clone(), MemoryChange::Expect { filter, entries }))
    }

    /// Returns all entries that match, read page by page. Damaged entries are left out with a warning.
    pub(crate) async fn all(&self, filter: MemoryFilter) -> Result<Vec<MemoryEntry>, MemoryError> {
        let mut listing = Listing::new(filter, MemoryOrder::First, 500);
        let mut entries = Vec::new();
        loop {
            let page = self.parts.store.list(&listing).await?;
            warn_of_damaged(&page.damaged);
            entries.extend(page.entries);
            match page.next {
                Some(next) => listing.after = Some(next),
                None => return Ok(entries),
            }
        }
    }
}

/// The state of a write that is tried again after each conflict with another writer.
#[derive(Default)]
pub(crate) struct Tries {
    count: u32,
    /// The vectors that were computed already, each with its embedder's id, by text. They are reused, because
    /// computing them at each attempt would take so long that the next attempt would also conflict.
    vectors: HashMap<String, (String, Vec<f32>)>,
}

const MOST_TRIES: u32 = 256;

/// The text of the marker that replaces a forgotten entry. It contains no word, so that no search
/// finds the marker.
const NOTHING: &str = "-";

/// Returns a filter that matches only this entry, in its own collection.
pub(crate) fn filter_for(entry: &MemoryEntry) -> MemoryFilter {
    let mut filter = MemoryFilter::all().exactly(&entry.collection);
    filter.ids = vec![entry.id.clone()];
    filter
}

/// Returns the change that deletes this entry, in its own collection only.
pub(crate) fn forget_in(entry: &MemoryEntry) -> MemoryChange {
    MemoryChange::Forget(filter_for(entry))
}

pub(crate) fn warn_of_damaged(damaged: &[Damaged]) {
    for Damaged { id, problem, .. } in damaged {
        tracing::warn!(id, problem, "a damaged memory is left out");
    }
}
