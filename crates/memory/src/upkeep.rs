//! Keeping a memory small and whole: eviction, purging, merging, and vectors for what has none.

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
    memory::forget_in,
    words::said_plainly,
};

/// How much is kept.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Limits {
    /// Most notes, turns and summaries; any number if unset. Facts and values do not count and stay.
    pub entries: Option<usize>,
    /// What was remembered longer ago, and was not of use since, goes.
    pub age: Option<Duration>,
}

impl Limits {
    /// At most so many entries.
    pub fn entries(most: usize) -> Self {
        Self { entries: Some(most), age: None }
    }

    /// The same, and nothing older.
    pub fn no_older_than(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }
}

/// What upkeep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Entries that were too old.
    pub aged: usize,
    /// Entries that were too many.
    pub evicted: usize,
}

/// What became of the texts that had no vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Embedded {
    /// Those that have one now.
    pub done: usize,
    /// Those that the embedder made none of: they are found by words, and tried again the next time.
    pub refused: usize,
}

const COUNTED: [MemoryKind; 3] = [MemoryKind::Note, MemoryKind::Turn, MemoryKind::Summary];

impl Memory {
    /// Forgets what is too old and, of what is too much, what was of use longest ago. Importance lends time: what
    /// matters fully counts as used one half-life of the ranking, 30 days, later than what does not. What was learnt
    /// from it stays: facts are the short form of what is gone. What changes meanwhile stays too.
    ///
    /// # Errors
    /// The store's.
    pub async fn evict(&self, limits: &Limits) -> Result<Kept, MemoryError> {
        let entries = self.all(MemoryFilter::all().of(&COUNTED)).await?;
        let now = self.now();
        let is_old = |entry: &MemoryEntry| limits.age.is_some_and(|age| now.since(last_use(entry)) > age);
        let (old, mut left): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_old);
        left.sort_by_key(worth);
        left.truncate(left.len().saturating_sub(limits.entries.unwrap_or(usize::MAX)));
        let many = left;
        Ok(Kept { aged: self.forget_each(old).await?, evicted: self.forget_each(many).await? })
    }

    /// Keeps the memory within limits: [evicts](Self::evict) and [merges](Self::merge_similar) now, and again each time
    /// that `period` is over by the memory's clock, for as long as what is returned is polled. What fails is named in the
    /// log of the program (`tracing`, at `warn`) and tried again the next time.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use archon_memory::{Limits, Memory};
    /// # async fn serve(memory: Memory, work: impl Future<Output = ()>) {
    /// let limits = Limits::entries(100_000).no_older_than(Duration::from_secs(365 * 86_400));
    /// let tidying = std::pin::pin!(memory.keep_within(&limits, Duration::from_secs(3_600)));
    /// // The service listens, until it is told to end.
    /// futures_util::future::select(tidying, std::pin::pin!(work)).await;
    /// # }
    /// ```
    pub async fn keep_within(&self, limits: &Limits, period: Duration) -> Infallible {
        loop {
            match self.evict(limits).await {
                Ok(Kept { aged: 0, evicted: 0 }) => {}
                Ok(Kept { aged, evicted }) => tracing::info!(aged, evicted, "memories went"),
                Err(error) => tracing::warn!(%error, advice = error.advice(), "memories are not evicted"),
            }
            if let Err(error) = self.merge_similar().await {
                tracing::warn!(%error, advice = error.advice(), "memories are not merged");
            }
            let clock = &self.parts.clock;
            clock.sleep_until(clock.now() + period).await;
        }
    }

    /// Forgets everything that was remembered before a time, facts too. What these had ended holds on without them.
    /// Returns how much.
    ///
    /// # Errors
    /// The store's.
    pub async fn purge(&self, before: Timestamp) -> Result<usize, MemoryError> {
        let mut filter = MemoryFilter::all().of(&MemoryKind::TOLD);
        filter.until = Some(before);
        self.forget_all(filter).await
    }

    /// Merges notes that say the same, in the same words and in their order, of one collection and with the same
    /// metadata: the most believed stays, of these the latest, with the greatest importance of all. Summaries are not
    /// merged, as each stands for turns of its own. Returns how many went.
    ///
    /// # Errors
    /// The store's.
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
                // Somebody is at work on them: they are merged another time.
                Err(MemoryError::Changed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(gone)
    }

    /// Forgets entries that are as they were read.
    async fn forget_each(&self, entries: Vec<MemoryEntry>) -> Result<usize, MemoryError> {
        let mut gone = 0;
        for batch in entries.chunks(200) {
            match self.apply(batch.iter().flat_map(forget_as_read).collect()).await {
                Ok(count) => gone += count,
                Err(MemoryError::Changed) => {
                    for entry in batch {
                        match self.apply(forget_as_read(entry).into()).await {
                            Ok(count) => gone += count,
                            Err(MemoryError::Changed) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(gone)
    }

    /// How many entries have no vector of the memory's embedder: what [`embed_missing`](Self::embed_missing) would do.
    ///
    /// # Errors
    /// The store's, and [`MemoryError::Unsupported`] without an embedder.
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
        filter.kinds = MemoryKind::TOLD.into_iter().filter(|kind| *kind != MemoryKind::Value).collect();
        filter.not_embedded_by = Some(embedder.id().to_owned());
        Ok((embedder, filter))
    }

    /// Gives vectors to what has none of the memory's embedder: what was kept while it failed, and everything after
    /// it changed. A text that it refuses is left out and counted, with a warning, and the others are not. `progress` is
    /// told how many are done. May be cut off and called again at any time.
    ///
    /// # Errors
    /// [`MemoryError::Embedding`] when the embedder fails: when it makes no vector of a plain word either;
    /// [`MemoryError::Unsupported`] without one. What is done stays done.
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
                        tracing::warn!(id = entry.id, %error, "a memory gets no vector");
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

    /// Notes that memories were of use, for [`evict`](Self::evict).
    ///
    /// # Errors
    /// The store's.
    pub async fn used<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<usize, MemoryError> {
        let at = self.now();
        let changes = ids.into_iter().map(|id| MemoryChange::Use { id: id.to_owned(), at });
        self.parts.store.apply(changes.collect()).await
    }
}

/// Notes that say the same, of one collection and with the same metadata: the most believed first, of these the latest.
fn saying_the_same(mut notes: Vec<MemoryEntry>) -> impl Iterator<Item = Vec<MemoryEntry>> {
    notes.sort_by_key(|note| std::cmp::Reverse((note.trust, note.timestamp, note.position)));
    let mut groups: BTreeMap<_, Vec<MemoryEntry>> = BTreeMap::new();
    for note in notes {
        // Metadata are written in any order.
        let about: BTreeMap<String, Json> = note.metadata.clone().into_iter().collect();
        let said = (note.collection.clone(), said_plainly(&note.content), format!("{about:?}"));
        groups.entry(said).or_default().push(note);
    }
    groups.into_values().filter(|same| same.len() > 1)
}

/// Where the facts are that rest on an entry, named by collection and id.
fn resting_on(facts: &[MemoryEntry]) -> HashMap<(Collection, String), Vec<usize>> {
    let mut resting: HashMap<_, Vec<usize>> = HashMap::new();
    for (place, fact) in facts.iter().enumerate() {
        for source in sources_of(fact) {
            resting.entry((fact.collection.clone(), source)).or_default().push(place);
        }
    }
    resting
}

/// The facts, with their places, that rest on notes which say the same, as they are when all rests on the first.
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

/// Leaves the first of notes that say the same, with the greatest importance of all, and the facts that rest on it then.
fn merged(same: &[MemoryEntry], facts: &[MemoryEntry], moved: &[(usize, MemoryEntry)]) -> Vec<MemoryChange> {
    let Some((stays, gone)) = same.split_first() else { return Vec::new() };
    let mut changes: Vec<MemoryChange> = same.iter().map(as_read).collect();
    changes.extend(gone.iter().map(forget_in));
    let important = same
        .iter()
        .map(|note| note.importance)
        .fold(None, |a: Option<f32>, b| a.into_iter().chain(b).reduce(f32::max));
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

/// That an entry is expected to be as it was read.
fn as_read(entry: &MemoryEntry) -> MemoryChange {
    let mut filter = MemoryFilter::all().exactly(&entry.collection);
    filter.ids = vec![entry.id.clone()];
    MemoryChange::Expect { filter, entries: vec![entry.clone()] }
}

fn forget_as_read(entry: &MemoryEntry) -> [MemoryChange; 2] {
    [as_read(entry), forget_in(entry)]
}

fn last_use(entry: &MemoryEntry) -> Timestamp {
    entry.used.unwrap_or_default().max(entry.timestamp)
}

fn worth(entry: &MemoryEntry) -> Timestamp {
    let days = Duration::from_secs(30 * 24 * 3600);
    last_use(entry) + days.mul_f32(entry.importance.unwrap_or(0.5).clamp(0.0, 1.0))
}
