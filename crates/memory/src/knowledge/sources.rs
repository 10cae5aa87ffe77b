//! The source entries of facts.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use archon_types::{Collection, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind};

use super::timeline::{moved, name};
use crate::{
    Memory,
    fact::{Fact, line_of, rewritten},
    memory::{Tries, forget_in},
};

/// The maximum number of ids in one request to a store.
const ASKED: usize = 250;

impl Memory {
    /// Deletes the entries that match, and the facts that come from these entries alone, in one write.
    /// Returns the number of deleted entries.
    pub(crate) async fn forget_all(&self, filter: MemoryFilter) -> Result<usize, MemoryError> {
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
            let marks = self.marks_of(&filter).await?;
            let stored = changed.len() + marks.len();
            changes.extend(marks);
            if let Some(met) = self.attempt(changed, changes, &mut tries).await? {
                self.erase_deleted().await;
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
        let ids: BTreeSet<String> = facts.iter().flat_map(sources_of).collect();
        let ids: Vec<String> = ids.into_iter().collect();
        for ids in ids.chunks(ASKED) {
            let mut filter = filter.clone();
            filter.ids = ids.to_vec();
            fitting.extend(self.all(filter).await?.into_iter().map(|entry| (entry.collection, entry.id)));
        }
        Ok(fitting)
    }
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
