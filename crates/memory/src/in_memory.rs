//! A memory store in RAM. Each collection has its own entries and index of words, so a search reads only the
//! collections in its scope.

mod group;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use archon_types::{
    BoxFuture, Candidate, Collection, Listing, MemoryCandidates, MemoryChange, MemoryEntry, MemoryError,
    MemoryFilter, MemoryOrder, MemoryPage, MemorySearch, MemoryStore,
};
use archon_vectors::{GroupRange, VectorIndex, cosine};

use crate::rank::Analyzer;
use group::Group;

/// A memory store in RAM. Clones share the entries; each clone sees one collection and all collections
/// within it.
///
/// ```
/// use archon_memory::InMemoryStore;
/// use archon_types::Collection;
///
/// let of_anna = InMemoryStore::new().collection(Collection::new("user:anna")?)?;
/// # Ok::<(), archon_types::MemoryError>(())
/// ```
#[derive(Clone, Default)]
pub struct InMemoryStore {
    all: Arc<RwLock<All>>,
    scope: Collection,
}

#[derive(Default)]
struct All {
    groups: BTreeMap<String, Group>,
    /// One index for each embedder, since vectors of different embedders cannot be compared.
    vectors: HashMap<String, VectorIndex>,
    /// The last position that was assigned.
    last: u64,
}

impl InMemoryStore {
    /// Creates an empty store whose scope is the root collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a view of the same entries whose scope is a collection within this one.
    ///
    /// # Errors
    /// [`MemoryError::OutOfScope`] if the collection is not within this one.
    pub fn collection(&self, collection: Collection) -> Result<Self, MemoryError> {
        let scope = self.scope.narrowed(Some(&collection))?;
        Ok(Self { all: self.all.clone(), scope })
    }

    /// Locks the data. A poisoned lock is ignored, because no code panics in the middle of a change.
    fn read(&self) -> RwLockReadGuard<'_, All> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, All> {
        self.all.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn range(&self, filter: &MemoryFilter) -> Result<GroupRange, MemoryError> {
        Ok(range_of(&self.scope.narrowed(filter.collection.as_ref())?, filter))
    }
}

fn range_of(collection: &Collection, filter: &MemoryFilter) -> GroupRange {
    match filter.exact {
        true => GroupRange::only(collection.as_str()),
        false => GroupRange::of(collection.as_str()),
    }
}

impl MemoryStore for InMemoryStore {
    fn scope(&self) -> &Collection {
        &self.scope
    }

    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        Box::pin(async move {
            let mut all = self.write();
            let changes = self.checked(changes, &all)?;
            Ok(changes.into_iter().map(|change| all.change(change, &self.scope)).sum())
        })
    }

    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        Box::pin(async move {
            let range = self.range(&search.filter)?;
            let all = self.read();
            let mut by_position: BTreeMap<u64, Candidate> = BTreeMap::new();
            let mut asked: Vec<String> = Analyzer::default().terms(&search.text);
            asked.sort_unstable();
            asked.dedup();
            for (entry, score) in all.by_words(&range, &asked, search) {
                by_position.insert(entry.position, Candidate::new(bare(entry), Some(score), None));
            }
            if let Some((embedder, vector)) = &search.vector {
                MemorySearch::check_vector(vector, all.vectors.get(embedder).map(VectorIndex::dimensions))?;
                for (entry, cosine) in all.by_vector(&range, embedder, vector, search) {
                    by_position
                        .entry(entry.position)
                        .or_insert_with(|| Candidate::new(bare(entry), None, None))
                        .vector = Some(cosine);
                }
            }
            let mut found = MemoryCandidates::default();
            found.candidates = by_position.into_values().collect();
            Ok(found)
        })
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        Box::pin(async move {
            let range = self.range(&listing.filter)?;
            let all = self.read();
            let past = |entry: &&MemoryEntry| match (listing.order, listing.after) {
                (_, None) => true,
                (MemoryOrder::First, Some(after)) => entry.position > after,
                (MemoryOrder::Latest, Some(after)) => entry.position < after,
            };
            let mut fitting = all.fitting(&range, &listing.filter);
            fitting.retain(past);
            if listing.order == MemoryOrder::Latest {
                fitting.reverse();
            }
            let mut page = MemoryPage::default();
            if fitting.len() > listing.limit {
                fitting.truncate(listing.limit);
                page.next = fitting.last().map(|entry| entry.position);
            }
            page.entries = fitting.into_iter().cloned().collect();
            Ok(page)
        })
    }
}

impl InMemoryStore {
    /// Checks all changes before any of them is made, and fills in their collections.
    fn checked(&self, mut changes: Vec<MemoryChange>, all: &All) -> Result<Vec<MemoryChange>, MemoryError> {
        let mut lengths: HashMap<String, usize> = HashMap::new();
        let mut check_length = |id: &str, embedder: &str, length: usize| {
            let known = || all.vectors.get(embedder).map_or(length, VectorIndex::dimensions);
            let expected = *lengths.entry(embedder.to_owned()).or_insert_with(known);
            MemoryEntry::check_length(id, embedder, length, expected)
        };
        for change in &mut changes {
            change.check(&self.scope)?;
            match change {
                MemoryChange::Put(entry) => {
                    if entry.collection.is_root() {
                        entry.collection = self.scope.clone();
                    }
                    if let Some((embedder, vector)) = entry.embedder.as_ref().zip(entry.embedding.as_ref()) {
                        check_length(&entry.id, embedder, vector.len())?;
                    }
                }
                MemoryChange::Expect { filter, entries } => {
                    let now = all.fitting(&self.range(filter)?, filter);
                    let same = now.iter().zip(&*entries).all(|(now, before)| now.is_as_written(before));
                    if now.len() != entries.len() || !same {
                        return Err(MemoryError::Changed);
                    }
                }
                MemoryChange::Embed { id, embedder, vector, .. } => {
                    check_length(id, embedder, vector.len())?;
                }
                _ => {}
            }
        }
        Ok(changes)
    }
}

/// Returns a copy without the vector, which candidates do not need.
fn bare(entry: &MemoryEntry) -> MemoryEntry {
    let mut copy = entry.clone();
    copy.embedding = None;
    copy
}

impl All {
    /// Returns the entries that match, in the order of writing.
    fn fitting<'a>(&'a self, range: &GroupRange, filter: &'a MemoryFilter) -> Vec<&'a MemoryEntry> {
        let groups = range.select(&self.groups);
        let mut fitting: Vec<&MemoryEntry> =
            groups.flat_map(|(_, group)| group.chosen(filter)).filter(|entry| filter.fits(entry)).collect();
        fitting.sort_unstable_by_key(|entry| entry.position);
        fitting
    }

    fn change(&mut self, change: MemoryChange, scope: &Collection) -> usize {
        match change {
            MemoryChange::Put(entry) => self.put(*entry),
            MemoryChange::Forget(filter) => {
                let range = range_of(filter.collection.as_ref().unwrap_or(scope), &filter);
                self.take(&range, &filter)
            }
            MemoryChange::Embed { id, collection, content, embedder, vector } => {
                let group = self.groups.get_mut(collection.as_str());
                let Some(entry) = group.and_then(|group| group.get_mut(&id)) else { return 0 };
                if entry.content != content {
                    return 0;
                }
                let mut entry = entry.clone();
                (entry.embedder, entry.embedding) = (Some(embedder), Some(vector));
                self.put(entry)
            }
            MemoryChange::Use { id, at } => {
                let range = GroupRange::of(scope.as_str());
                let names: Vec<String> = range.select(&self.groups).map(|(name, _)| name.clone()).collect();
                let mut met = 0;
                for name in names {
                    let entry = self.groups.get_mut(&name).and_then(|group| group.get_mut(&id));
                    if let Some(entry) = entry {
                        entry.used = entry.used.max(Some(at));
                        met += 1;
                    }
                }
                met
            }
            _ => 0,
        }
    }

    fn put(&mut self, mut entry: MemoryEntry) -> usize {
        let name = entry.collection.as_str().to_owned();
        let group = self.groups.entry(name.clone()).or_default();
        let old = group.take(&entry.id);
        self.last += u64::from(old.is_none());
        let position = old.as_ref().map_or(self.last, |old| old.position);
        entry.position = position;
        let vector = entry.embedder.clone().zip(entry.embedding.clone());
        group.put(entry);
        if let Some(index) = old.and_then(|old| old.embedder).and_then(|id| self.vectors.get_mut(&id)) {
            index.remove(&name, position);
        }
        if let Some((embedder, vector)) = vector {
            let index = self.vectors.entry(embedder).or_insert_with(|| VectorIndex::new(vector.len()));
            index.insert(&name, position, &vector);
        }
        1
    }

    /// Removes the entries that match, and returns their number.
    fn take(&mut self, range: &GroupRange, filter: &MemoryFilter) -> usize {
        let fitting = |(name, group): (&String, &Group)| {
            let chosen = group.chosen(filter).filter(|entry| filter.fits(entry));
            chosen.map(|entry| (name.clone(), entry.id.clone())).collect::<Vec<_>>()
        };
        let chosen: Vec<(String, String)> = range.select(&self.groups).flat_map(fitting).collect();
        let mut taken = 0;
        for (name, id) in chosen {
            let Some(group) = self.groups.get_mut(&name) else { continue };
            let Some(entry) = group.take(&id) else { continue };
            if let Some(index) = entry.embedder.as_ref().and_then(|e| self.vectors.get_mut(e)) {
                index.remove(&name, entry.position);
            }
            if group.is_empty() {
                self.groups.remove(&name);
            }
            taken += 1;
        }
        taken
    }

    fn by_words<'a>(
        &'a self,
        range: &GroupRange,
        asked: &[String],
        search: &MemorySearch,
    ) -> Vec<(&'a MemoryEntry, f32)> {
        let groups: Vec<&Group> = range.select(&self.groups).map(|(_, group)| group).collect();
        let mut scored = group::scores(&groups, asked, &search.filter);
        best_first(&mut scored, search.limit);
        scored
    }

    fn by_vector<'a>(
        &'a self,
        range: &GroupRange,
        embedder: &str,
        vector: &[f32],
        search: &MemorySearch,
    ) -> Vec<(&'a MemoryEntry, f32)> {
        let Some(index) = self.vectors.get(embedder) else { return Vec::new() };
        let groups: Vec<&Group> = range.select(&self.groups).map(|(_, group)| group).collect();
        let entry = |row: u64| groups.iter().find_map(|group| group.at(row));
        let count = search.limit.saturating_mul(4).saturating_add(16);
        let near =
            index.nearest(range, vector, count, |row| entry(row).is_some_and(|e| search.filter.fits(e)));
        let mut seen = HashSet::new();
        let mut scored: Vec<(&MemoryEntry, f32)> = near
            .into_iter()
            .filter(|near| seen.insert(near.row))
            .filter_map(|near| entry(near.row))
            .filter_map(|entry| Some((entry, cosine(entry.embedding.as_ref()?, vector))))
            .collect();
        best_first(&mut scored, search.limit);
        scored
    }
}

fn best_first(scored: &mut Vec<(&MemoryEntry, f32)>, limit: usize) {
    scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.position.cmp(&b.0.position)));
    scored.truncate(limit);
}
