//! The source entries of facts.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use archon_types::{Collection, Json, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind};

use super::timeline::{moved, name};
use crate::{
    Memory,
    fact::{Fact, line_of, rewritten},
    memory::{Tries, forget_in},
};

/// The maximum number of ids in one request to a store.
const ASKED: usize = 250;

impl Memory {
    /// Deletes the entries that match, and the facts that come from these entries alone, in one write; then removes
    /// their bytes from the store's files. Returns the number of deleted entries.
    pub(crate) async fn forget_all(&self, filter: MemoryFilter) -> Result<usize, MemoryError> {
        let deleted = self.delete_all(filter, None).await?;
        self.erase_deleted().await;
        Ok(deleted)
    }

    /// Forgets entries by their ids in one change of the store. Each entry is replaced by a marker without content, of
    /// the kind [`Forgotten`](MemoryKind::Forgotten), with the same id and with `note` as its metadata. Returns the
    /// number of deleted entries.
    ///
    /// This is for a program that must also erase data outside of the memory: after a crash, the program finds the
    /// markers and goes on. At the end the program removes the markers. Markers with a [`run`](MemoryEntry::run) must
    /// stay, because they keep that run from storing the entry again. After this method, call
    /// [`MemoryStore::erase_deleted`](archon_types::MemoryStore::erase_deleted).
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn forget_with_note(
        &self,
        ids: &[String],
        note: serde_json::Map<String, Json>,
    ) -> Result<usize, MemoryError> {
        match ids.is_empty() {
            // A filter without ids would match everything.
            true => Ok(0),
            false => self.delete_all(with_content(ids), Some(note)).await,
        }
    }

    /// Returns the entries that [`forget`](Self::forget) of these ids deletes: the entries with the ids, and the facts
    /// that were learnt from these entries alone. Damaged entries are left out.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn entries_to_forget(&self, ids: &[String]) -> Result<Vec<MemoryEntry>, MemoryError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let facts = self.all(MemoryFilter::all().of(&[MemoryKind::Fact])).await?;
        let is_named = |id: &str| ids.iter().any(|named| named == id);
        let (gone, _) = forgotten_with(facts, |fact| is_named(&fact.id), |_, source| is_named(source));
        let mut entries = self.all(with_content(ids)).await?;
        entries.extend(gone.into_iter().filter(|fact| !is_named(&fact.id)));
        Ok(entries)
    }

    /// Deletes the entries that match, and the facts that come from these entries alone, in one write. With a note, each
    /// entry gets a marker with the note.
    async fn delete_all(
        &self,
        filter: MemoryFilter,
        note: Option<serde_json::Map<String, Json>>,
    ) -> Result<usize, MemoryError> {
        let _one_at_a_time = self.parts.facts.lock().await;
        let mut of_facts = MemoryFilter::all().of(&[MemoryKind::Fact]);
        (of_facts.collection, of_facts.exact) = (filter.collection.clone(), filter.exact);
        let mut tries = Tries::default();
        loop {
            let (facts, expected) = self.expected(of_facts.clone()).await?;
            let sources = self.sources_that_fit(&filter, &facts).await?;
            let (gone, changed) = forgotten_with(
                facts,
                |fact| filter.fits(fact),
                |of, source| {
                    // An entry that is named by id counts even if it cannot be read, as it may be damaged.
                    filter.ids.iter().any(|id| id == source)
                        || sources.contains(&(of.clone(), source.to_owned()))
                },
            );
            let mut changes = vec![expected, MemoryChange::Forget(filter.clone())];
            changes.extend(gone.iter().map(forget_in));
            let marks = self.marks_of(&filter, note.as_ref()).await?;
            let stored = changed.len() + marks.len();
            changes.extend(marks);
            if let Some(met) = self.attempt(changed, changes, &mut tries).await? {
                return Ok(met.saturating_sub(stored));
            }
        }
    }

    /// Returns the source entries of facts that match a filter without ids, by collection and id.
    async fn sources_that_fit(
        &self,
        filter: &MemoryFilter,
        facts: &[MemoryEntry],
    ) -> Result<HashSet<(Collection, String)>, MemoryError> {
        let mut fitting = HashSet::new();
        if !filter.ids.is_empty() {
            return Ok(fitting);
        }
        let ids: Vec<String> =
            facts.iter().flat_map(sources_of).collect::<BTreeSet<_>>().into_iter().collect();
        for ids in ids.chunks(ASKED) {
            let mut filter = filter.clone();
            filter.ids = ids.to_vec();
            fitting.extend(self.all(filter).await?.into_iter().map(|entry| (entry.collection, entry.id)));
        }
        Ok(fitting)
    }
}

/// Returns a filter for the entries with these ids that have content.
fn with_content(ids: &[String]) -> MemoryFilter {
    let mut filter = MemoryFilter::all().of(&MemoryKind::WITH_CONTENT);
    filter.ids = ids.to_vec();
    filter
}

/// Returns the ids of a fact's source entries, which are in the fact's collection.
pub(crate) fn sources_of(fact: &MemoryEntry) -> Vec<String> {
    Fact::of(fact).map(|fact| fact.sources).unwrap_or_default()
}

/// Computes the effect on facts when some facts and some source entries (by collection and id) are deleted.
/// Returns the deleted facts, including those that lose their last source, and the changed facts.
fn forgotten_with(
    facts: Vec<MemoryEntry>,
    goes: impl Fn(&MemoryEntry) -> bool,
    source_goes: impl Fn(&Collection, &str) -> bool,
) -> (Vec<MemoryEntry>, Vec<MemoryEntry>) {
    let (mut gone, mut lines) = (Vec::new(), BTreeMap::<_, Vec<MemoryEntry>>::new());
    let (mut changed, mut broken) = (BTreeMap::new(), BTreeSet::new());
    for fact in facts {
        let without = without_sources(&fact, |source| source_goes(&fact.collection, source));
        let Some(now) = without.filter(|_| !goes(&fact)) else {
            broken.extend(line_of(&fact));
            gone.push(fact);
            continue;
        };
        if now != fact {
            changed.insert(name(&now), now.clone());
        }
        if let Some(line) = line_of(&now) {
            lines.entry(line).or_default().push(now);
        }
    }
    for line in broken.iter().filter_map(|line| lines.remove(line)) {
        changed.extend(moved(line).into_iter().map(|fact| (name(&fact), fact)));
    }
    (gone, changed.into_values().collect())
}

/// Returns the fact without some of its sources; `None` if no source is left.
fn without_sources(entry: &MemoryEntry, goes: impl Fn(&str) -> bool) -> Option<MemoryEntry> {
    let Some(mut fact) = Fact::of(entry).filter(|fact| fact.sources.iter().any(|source| goes(source))) else {
        return Some(entry.clone());
    };
    fact.sources.retain(|source| !goes(source));
    if fact.sources.is_empty() { None } else { rewritten(entry, &fact) }
}

/// Returns the fact with the ids of its sources mapped by `other`; `None` if nothing changes.
pub(crate) fn with_other_sources(
    fact: &MemoryEntry,
    other: impl Fn(&str) -> Option<String>,
) -> Option<MemoryEntry> {
    let mut now = Fact::of(fact)?;
    let before = std::mem::take(&mut now.sources);
    for source in &before {
        let source = other(source).unwrap_or_else(|| source.clone());
        if !now.sources.contains(&source) {
            now.sources.push(source);
        }
    }
    if now.sources == before { None } else { rewritten(fact, &now) }
}
