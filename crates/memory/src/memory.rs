//! One handle on all memories of one owner.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use archon_types::{
    Clock, Collection, Embedder, Ids, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter,
    MemoryKind, MemoryOrder, MemoryStore, Timestamp,
};

use crate::{
    Conversation, Knowledge, LongTermMemory, MemoryOptions, TaskMemory,
    knowledge::{forgotten_with, sources_of},
    recall::Recall,
};

/// All memories of one owner: a store that is bound to a collection, and what it is asked with. Clones share it.
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
    /// How often something was written, by this handle and those that came of it.
    pub(crate) written: Arc<AtomicU64>,
    /// Held while facts are compared and written. The store sees to it that nothing is lost; this keeps tasks of one
    /// process from doing it all again when another was quicker.
    pub(crate) facts: Arc<futures_util::lock::Mutex<()>>,
}

/// Answers to questions, the latest last. They hold until something is written.
#[derive(Default)]
pub(crate) struct Answers {
    /// How often something had been written before the first of them was looked up.
    pub(crate) generation: u64,
    pub(crate) kept: VecDeque<(String, crate::Remembered)>,
    pub(crate) hits: u64,
}

impl Memory {
    /// The memories in a store that is bound to their owner's collection. Found by words alone until an embedder is
    /// given.
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

    /// The same, found by meaning too.
    pub fn with_embedder(&self, embedder: Arc<dyn Embedder>) -> Self {
        self.with(Some(embedder), self.parts.options.clone())
    }

    /// The same with other choices.
    pub fn with_options(&self, options: MemoryOptions) -> Self {
        self.with(self.parts.embedder.clone(), options)
    }

    fn with(&self, embedder: Option<Arc<dyn Embedder>>, options: MemoryOptions) -> Self {
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

    /// The store.
    pub fn store(&self) -> &Arc<dyn MemoryStore> {
        &self.parts.store
    }

    /// What makes vectors, if there is anything.
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.parts.embedder.as_ref()
    }

    /// The choices.
    pub fn options(&self) -> &MemoryOptions {
        &self.parts.options
    }

    /// What was said in a session.
    pub fn conversation(&self, session: impl Into<String>) -> Conversation {
        Conversation::new(self.clone(), session.into())
    }

    /// What a task has at hand.
    pub fn task(&self, task: impl Into<String>) -> TaskMemory {
        TaskMemory::new(self.clone(), task.into())
    }

    /// What is kept for good.
    pub fn long_term(&self) -> LongTermMemory {
        LongTermMemory::new(self.clone())
    }

    /// The facts.
    pub fn knowledge(&self) -> Knowledge {
        Knowledge::new(self.clone())
    }

    /// What of it all belongs into a prompt.
    pub fn recall(&self) -> Recall {
        Recall::new(self.clone())
    }

    /// How many questions were answered without asking the store.
    pub fn cache_hits(&self) -> u64 {
        self.answers(|answers| answers.hits)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn fresh(&self) -> String {
        self.parts.ids.fresh("mem")
    }

    /// The answers that are kept, without those of before the last change.
    pub(crate) fn answers<T>(&self, work: impl FnOnce(&mut Answers) -> T) -> T {
        let mut answers = self.parts.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.parts.written.load(Ordering::Acquire);
        if answers.generation != written {
            answers.generation = written;
            answers.kept.clear();
        }
        work(&mut answers)
    }

    /// Makes changes, after which no answer is kept: one that was looked up meanwhile may be of before.
    pub(crate) async fn apply(&self, changes: Vec<MemoryChange>) -> Result<usize, MemoryError> {
        let done = self.parts.store.apply(changes).await;
        self.parts.written.fetch_add(1, Ordering::AcqRel);
        done
    }

    /// Makes changes that rest on what was read, as their [`MemoryChange::Expect`]s say. `None` if that is not so any
    /// more: then they are to be thought out again.
    ///
    /// # Errors
    /// The store's, and [`MemoryError::Changed`] when it was tried often enough.
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

    /// Keeps entries, all or none. Where no vectors can be made they are kept without, to be embedded later.
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

    /// Keeps entries with their vectors, after other changes and in one with them. Returns how many entries were met.
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
            // All of them were checked, so what is refused is the length of a vector.
            Err(error @ MemoryError::Invalid { .. }) if with_vectors => {
                tracing::warn!(%error, "kept without vectors");
                for entry in &mut entries {
                    (entry.embedder, entry.embedding) = (None, None);
                }
                self.apply(all(entries)).await
            }
            done => done,
        }
    }

    /// Forgets the entry of this id, here and in collections within, with its vector, the answers that are kept, and the
    /// facts that were learnt from it alone; false if there is nothing of it. What a fact had ended holds on without
    /// it. All of this happens, or nothing. Of what an agent kept of a conversation a mark stays under its id, which says
    /// nothing but that it was forgotten: no run of its session keeps it again.
    ///
    /// # Errors
    /// The store's.
    pub async fn forget(&self, id: &str) -> Result<bool, MemoryError> {
        let mut filter = MemoryFilter::all().of(&MemoryKind::TOLD);
        filter.ids = vec![id.to_owned()];
        Ok(self.forget_all(filter).await? > 0)
    }

    /// Forgets what fits, and the facts that rest on it alone, in one. Returns how much is gone.
    pub(crate) async fn forget_all(&self, filter: MemoryFilter) -> Result<usize, MemoryError> {
        let _one_at_a_time = self.parts.facts.lock().await;
        let mut of_facts = MemoryFilter::all().of(&[MemoryKind::Fact]);
        (of_facts.collection, of_facts.exact) = (filter.collection.clone(), filter.exact);
        let mut tries = Tries::default();
        loop {
            let (facts, expected) = self.expected(of_facts.clone()).await?;
            let sources = self.sources_that_fit(&filter, &facts).await?;
            let (gone, left) = forgotten_with(
                facts,
                |fact| filter.fits(fact),
                |of, source| {
                    // What is named need not be there to be read: it may be damaged.
                    filter.ids.iter().any(|id| id == source)
                        || sources.contains(&(of.clone(), source.to_owned()))
                },
            );
            let mut changes = vec![expected, MemoryChange::Forget(filter.clone())];
            changes.extend(gone.iter().map(forget_in));
            let marks = self.marks_of(&filter).await?;
            let kept = left.len() + marks.len();
            changes.extend(marks);
            if let Some(met) = self.attempt(left, changes, &mut tries).await? {
                return Ok(met.saturating_sub(kept));
            }
        }
    }

    /// The marks of what a run kept, would keep again, and is to forget.
    async fn marks_of(&self, filter: &MemoryFilter) -> Result<Vec<MemoryChange>, MemoryError> {
        let is_meant = |kind: &MemoryKind| filter.kinds.is_empty() || filter.kinds.contains(kind);
        let kinds: Vec<_> = [MemoryKind::Turn, MemoryKind::Summary].into_iter().filter(is_meant).collect();
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        let said = self.all(filter.clone().of(&kinds)).await?;
        let now = self.now();
        let mark = |entry: MemoryEntry| {
            let mut mark = MemoryEntry::new(entry.id, NOTHING, now);
            (mark.kind, mark.collection) = (MemoryKind::Forgotten, entry.collection);
            // It holds at no time, so no question finds it.
            (mark.valid_from, mark.valid_to) = (Some(now), Some(now));
            MemoryChange::put(mark)
        };
        Ok(said.into_iter().filter(|entry| entry.run.is_some()).map(mark).collect())
    }

    /// Which of the entries that facts rest on fit a filter that names none, by collection and id.
    async fn sources_that_fit(
        &self,
        filter: &MemoryFilter,
        facts: &[MemoryEntry],
    ) -> Result<HashSet<(Collection, String)>, MemoryError> {
        let mut fitting = HashSet::new();
        if !filter.ids.is_empty() {
            return Ok(fitting);
        }
        let ids: BTreeSet<String> = facts.iter().flat_map(sources_of).collect();
        let ids: Vec<String> = ids.into_iter().collect();
        for ids in ids.chunks(ASKED) {
            let mut filter = filter.clone();
            filter.ids = ids.to_vec();
            fitting.extend(self.all(filter).await?.into_iter().map(|entry| (entry.collection, entry.id)));
        }
        Ok(fitting)
    }

    /// Everything that fits, and that it is expected to stay so.
    pub(crate) async fn expected(
        &self,
        filter: MemoryFilter,
    ) -> Result<(Vec<MemoryEntry>, MemoryChange), MemoryError> {
        let entries = self.all(filter.clone()).await?;
        Ok((entries.clone(), MemoryChange::Expect { filter, entries }))
    }

    /// Everything that fits, page by page; entries that are damaged are left out, with a warning.
    pub(crate) async fn all(&self, filter: MemoryFilter) -> Result<Vec<MemoryEntry>, MemoryError> {
        let mut listing = Listing::new(filter, MemoryOrder::First, 500);
        let mut entries = Vec::new();
        loop {
            let page = self.parts.store.list(&listing).await?;
            for damaged in &page.damaged {
                tracing::warn!(id = damaged.id, problem = damaged.problem, "a damaged memory is left out");
            }
            entries.extend(page.entries);
            match page.next {
                Some(next) => listing.after = Some(next),
                None => return Ok(entries),
            }
        }
    }
}

/// How often changes were tried that rest on what was read. Each time somebody else was quicker, who got on.
#[derive(Default)]
pub(crate) struct Tries {
    count: u32,
    /// The vectors that were made for it, with their embedder, by text: while one is made, others are quicker.
    vectors: HashMap<String, (String, Vec<f32>)>,
}

const MOST_TRIES: u32 = 256;

/// The text of a mark: it has no word, so that none finds it.
const NOTHING: &str = "-";

/// Ids that a store is asked for at once.
const ASKED: usize = 250;

/// Forgets an entry, and none of its id in another collection.
pub(crate) fn forget_in(entry: &MemoryEntry) -> MemoryChange {
    let mut filter = MemoryFilter::all().exactly(&entry.collection);
    filter.ids = vec![entry.id.clone()];
    MemoryChange::Forget(filter)
}
