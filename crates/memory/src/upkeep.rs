//! Upkeep of a memory: eviction, purging, merging, and embedding of entries without a vector.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use archon_types::{
    Collection, Embedder, Json, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind,
    MemoryOrder, Timestamp,
};

use crate::{
    Memory,
    embedding::vector_of_each,
    knowledge::{name, sources_of, with_other_sources},
    memory::{filter_for, forget_in},
    words::normalized_words,
};

/// Limits of a memory's size and age.
///
/// ```
/// use std::time::Duration;
///
/// use archon_memory::EvictionLimits;
///
/// let limits = EvictionLimits::entries(10_000).no_older_than(Duration::from_secs(90 * 24 * 60 * 60));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EvictionLimits {
    /// The maximum number of notes, turns and summaries; `None` sets no limit. Facts and values are not
    /// counted and not evicted.
    pub entries: Option<usize>,
    /// The maximum time since an entry was stored or last used; older entries are evicted. `None` sets no
    /// limit.
    pub age: Option<Duration>,
}

impl EvictionLimits {
    /// Creates limits with a maximum number of entries, and without a maximum age.
    pub fn entries(most: usize) -> Self {
        Self { entries: Some(most), age: None }
    }

    /// Sets the maximum time since an entry was stored or last used. Default: no maximum.
    pub fn no_older_than(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }
}

/// The result of an eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvictionCounts {
    /// The number of entries that were evicted because of their age.
    pub aged: usize,
    /// The number of entries that were evicted because there were too many.
    pub evicted: usize,
}

/// The result of embedding entries without a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Embedded {
    /// The number of entries that got a vector.
    pub done: usize,
    /// The number of texts that the embedder refused. Searches find them by words only; the next call tries
    /// them again.
    pub refused: usize,
}

const COUNTED: [MemoryKind; 3] = [MemoryKind::Note, MemoryKind::Turn, MemoryKind::Summary];

impl Memory {
    /// Evicts entries that are too old and, if there are too many, those with the earliest last use.
    /// Importance counts as time: full importance adds 30 days, one half-life of the ranking, to the last
    /// use. Facts learnt from evicted entries stay, and so do entries that change meanwhile.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn evict(&self, limits: &EvictionLimits) -> Result<EvictionCounts, MemoryError> {
        let entries = self.all(MemoryFilter::all().of(&COUNTED)).await?;
        let now = self.now();
        let is_old = |entry: &MemoryEntry| limits.age.is_some_and(|age| now.since(last_use(entry)) > age);
        let (old, mut excess): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_old);
        excess.sort_by_key(worth);
        excess.truncate(excess.len().saturating_sub(limits.entries.unwrap_or(usize::MAX)));
        let (aged, evicted) = (self.forget_each(old).await?, self.forget_each(excess).await?);
        if aged + evicted > 0 {
            self.erase_deleted().await;
        }
        Ok(EvictionCounts { aged, evicted })
    }

    /// Keeps the memory within limits: [evicts](Self::evict) and [merges](Self::merge_similar) now, and
    /// again after each `period` of the memory's clock, as long as the future is polled. Errors are logged
    /// (`tracing`, at `warn`), and the work is tried again after the next period.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use archon_memory::{EvictionLimits, Memory};
    /// # async fn serve(memory: Memory, work: impl Future<Output = ()>) {
    /// let limits = EvictionLimits::entries(100_000).no_older_than(Duration::from_secs(365 * 86_400));
    /// let tidying = std::pin::pin!(memory.keep_within(&limits, Duration::from_secs(3_600)));
    /// // The service listens, until it is told to end.
    /// futures_util::future::select(tidying, std::pin::pin!(work)).await;
    /// # }
    /// ```
    pub async fn keep_within(&self, limits: &EvictionLimits, period: Duration) -> Infallible {
        loop {
            match self.evict(limits).await {
                Ok(EvictionCounts { aged: 0, evicted: 0 }) => {}
                Ok(EvictionCounts { aged, evicted }) => {
                    tracing::info!(aged, evicted, "memories were evicted")
                }
                Err(error) => tracing::warn!(%error, advice = error.advice(), "memories are not evicted"),
            }
            if let Err(error) = self.merge_similar().await {
                tracing::warn!(%error, advice = error.advice(), "memories are not merged");
            }
            let clock = &self.parts.clock;
            clock.sleep_until(clock.now() + period).await;
        }
    }

    /// Deletes all entries that were stored before a time, including facts. A fact that a deleted fact had
    /// ended holds again. Returns the number of deleted entries.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn purge(&self, before: Timestamp) -> Result<usize, MemoryError> {
        let mut filter = MemoryFilter::all().of(&MemoryKind::WITH_CONTENT);
        filter.until = Some(before);
        self.forget_all(filter).await
    }

    /// Merges notes of one collection that have the same words in the same order and the same metadata. The
    /// note with the highest trust level stays; if several have it, the latest of them. It gets the greatest
    /// importance of the merged notes. Summaries are not merged, since each replaces its own turns. Returns the
    /// number of removed notes.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn merge_similar(&self) -> Result<usize, MemoryError> {
        let _one_at_a_time = self.parts.facts.lock().await;
        let notes = self.all(MemoryFilter::default().of(&[MemoryKind::Note])).await?;
        let mut facts = self.all(MemoryFilter::all().of(&[MemoryKind::Fact])).await?;
        let resting = resting_on(&facts);
        let mut gone = 0;
        for same in saying_the_same(notes) {
            let moved = moved_to_first(&same, &facts, &resting);
            match self.apply(merged(&same, &facts, &moved)).await {
                Ok(_) => {
                    gone += same.len() - 1;
                    moved.into_iter().for_each(|(place, fact)| facts[place] = fact);
                }
                // Another writer changed them: they are merged the next time.
                Err(MemoryError::Changed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(gone)
    }

    /// Deletes the entries that have not changed since they were read.
    async fn forget_each(&self, entries: Vec<MemoryEntry>) -> Result<usize, MemoryError> {
        let mut gone = 0;
        for batch in entries.chunks(200) {
            if let Some(count) = self.forget_as_read(batch).await? {
                gone += count;
                continue;
            }
            for entry in batch {
                gone += self.forget_as_read(std::slice::from_ref(entry)).await?.unwrap_or_default();
            }
        }
        Ok(gone)
    }

    /// Deletes entries, unless one of them has changed since they were read.
    async fn forget_as_read(&self, entries: &[MemoryEntry]) -> Result<Option<usize>, MemoryError> {
        let changes = entries.iter().flat_map(|entry| [as_read(entry), forget_in(entry)]);
        match self.apply(changes.collect()).await {
            Err(MemoryError::Changed) => Ok(None),
            done => done.map(Some),
        }
    }

    /// Returns the number of entries without a vector of the memory's embedder, which
    /// [`embed_missing`](Self::embed_missing) would embed.
    ///
    /// # Errors
    /// Errors of the store, and [`MemoryError::Unsupported`] without an embedder.
    pub async fn lacking_vectors(&self) -> Result<usize, MemoryError> {
        let mut listing = Listing::new(self.lacking()?.1, MemoryOrder::First, 1_000);
        let mut count = 0;
        loop {
            let page = self.parts.store.list(&listing).await?;
            count += page.entries.len();
            match page.next {
                Some(next) => listing.after = Some(next),
                None => return Ok(count),
            }
        }
    }

    fn lacking(&self) -> Result<(&Arc<dyn Embedder>, MemoryFilter), MemoryError> {
        let Some(embedder) = &self.parts.embedder else {
            return Err(MemoryError::Unsupported { what: "vectors without an embedder" });
        };
        let mut filter = MemoryFilter::all();
        filter.kinds =
            MemoryKind::WITH_CONTENT.into_iter().filter(|kind| *kind != MemoryKind::Value).collect();
        filter.not_embedded_by = Some(embedder.id().to_owned());
        Ok((embedder, filter))
    }

    /// Embeds all entries, except values of tasks, that have no vector of the memory's embedder, for instance
    /// because the embedder failed before or was changed. A text that the embedder refuses is counted and
    /// skipped with a warning. `progress` is called with the number of entries done so far. The work can be
    /// cancelled and continued at any time.
    ///
    /// # Errors
    /// [`MemoryError::Embedding`] if the embedder cannot embed even a single plain word;
    /// [`MemoryError::Unsupported`] without an embedder. Vectors that were computed before stay.
    pub async fn embed_missing(
        &self,
        mut progress: impl FnMut(usize) + Send,
    ) -> Result<Embedded, MemoryError> {
        let (embedder, filter) = self.lacking()?;
        let mut listing = Listing::new(filter, MemoryOrder::First, self.options().batch.max(1));
        let mut embedded = Embedded::default();
        loop {
            let page = self.parts.store.list(&listing).await?;
            let texts: Vec<String> = page.entries.iter().map(|entry| entry.content.clone()).collect();
            let mut changes = Vec::new();
            for (entry, made) in page.entries.into_iter().zip(vector_of_each(&**embedder, &texts).await?) {
                match made {
                    Ok(vector) => changes.push(MemoryChange::Embed {
                        id: entry.id,
                        collection: entry.collection,
                        content: entry.content,
                        embedder: embedder.id().to_owned(),
                        vector,
                    }),
                    Err(error) => {
                        tracing::warn!(id = entry.id, %error, "a memory could not be embedded");
                        embedded.refused += 1;
                    }
                }
            }
            if !changes.is_empty() {
                embedded.done += self.apply(changes).await?;
            }
            progress(embedded.done);
            match page.next {
                Some(next) => listing.after = Some(next),
                None => return Ok(embedded),
            }
        }
    }

    /// Records that the entries with these ids are used now: [`evict`](Self::evict) keeps entries longer that were used
    /// later. Returns the number of these entries in the store.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn mark_used<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<usize, MemoryError> {
        let at = self.now();
        let changes = ids.into_iter().map(|id| MemoryChange::Use { id: id.to_owned(), at });
        self.parts.store.apply(changes.collect()).await
    }
}

/// Groups notes with the same words, collection and metadata, and leaves out notes without a duplicate. In a
/// group the note with the highest trust level is first; of several with this level, the latest.
fn saying_the_same(mut notes: Vec<MemoryEntry>) -> impl Iterator<Item = Vec<MemoryEntry>> {
    notes.sort_by_key(|note| std::cmp::Reverse((note.trust, note.timestamp, note.position)));
    let mut groups: BTreeMap<_, Vec<MemoryEntry>> = BTreeMap::new();
    for note in notes {
        // Metadata may be in any order.
        let about: BTreeMap<String, Json> = note.metadata.clone().into_iter().collect();
        let said = (note.collection.clone(), normalized_words(&note.content), format!("{about:?}"));
        groups.entry(said).or_default().push(note);
    }
    groups.into_values().filter(|same| same.len() > 1)
}

/// Returns the indexes of the facts that come from each source entry, by collection and id.
fn resting_on(facts: &[MemoryEntry]) -> HashMap<(Collection, String), Vec<usize>> {
    let mut resting: HashMap<_, Vec<usize>> = HashMap::new();
    for (place, fact) in facts.iter().enumerate() {
        for source in sources_of(fact) {
            resting.entry((fact.collection.clone(), source)).or_default().push(place);
        }
    }
    resting
}

/// Returns the facts whose sources change when only the first of the equal notes stays, each with its index
/// in `facts`.
fn moved_to_first(
    same: &[MemoryEntry],
    facts: &[MemoryEntry],
    resting: &HashMap<(Collection, String), Vec<usize>>,
) -> Vec<(usize, MemoryEntry)> {
    let Some((stays, gone)) = same.split_first() else { return Vec::new() };
    let ids: HashSet<&str> = gone.iter().map(|note| note.id.as_str()).collect();
    let places: BTreeSet<usize> =
        gone.iter().filter_map(|note| resting.get(&name(note))).flatten().copied().collect();
    let moved = places.into_iter().filter_map(|place| {
        let other = |source: &str| ids.contains(source).then(|| stays.id.clone());
        Some((place, with_other_sources(&facts[place], other)?))
    });
    moved.collect()
}

/// Returns the changes that keep only the first of the equal notes, give it the greatest importance among
/// them, and make it the source of the facts in `moved`.
fn merged(same: &[MemoryEntry], facts: &[MemoryEntry], moved: &[(usize, MemoryEntry)]) -> Vec<MemoryChange> {
    let Some((stays, gone)) = same.split_first() else { return Vec::new() };
    let mut changes: Vec<MemoryChange> = same.iter().map(as_read).collect();
    changes.extend(gone.iter().map(forget_in));
    let important = same.iter().filter_map(|note| note.importance).reduce(f32::max);
    if important != stays.importance {
        let mut raised = stays.clone();
        raised.importance = important;
        changes.push(MemoryChange::put(raised));
    }
    for (place, fact) in moved {
        changes.extend([as_read(&facts[*place]), MemoryChange::put(fact.clone())]);
    }
    changes
}

/// Returns the expectation that an entry is unchanged since it was read.
fn as_read(entry: &MemoryEntry) -> MemoryChange {
    MemoryChange::Expect { filter: filter_for(entry), entries: vec![entry.clone()] }
}

fn last_use(entry: &MemoryEntry) -> Timestamp {
    entry.used.unwrap_or_default().max(entry.timestamp)
}

fn worth(entry: &MemoryEntry) -> Timestamp {
    let days = Duration::from_secs(30 * 24 * 3600);
    last_use(entry) + days.mul_f32(entry.importance.unwrap_or(0.5).clamp(0.0, 1.0))
}
