//! The source entries of facts.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{Collection, MemoryEntry};

use super::{
    fact::{Fact, line_of, rewritten},
    timeline::{moved, name},
};

/// Returns the ids of the entries in its own collection that a fact was learnt from.
pub(crate) fn sources_of(fact: &MemoryEntry) -> Vec<String> {
    Fact::of(fact).map(|fact| fact.sources).unwrap_or_default()
}

/// Computes the effect on facts when some facts and some source entries (by collection and id) are deleted.
/// Returns the facts that are deleted, including those that lose their last source, and the facts that
/// change.
pub(crate) fn forgotten_with(
    facts: Vec<MemoryEntry>,
    goes: impl Fn(&MemoryEntry) -> bool,
    source_goes: impl Fn(&Collection, &str) -> bool,
) -> (Vec<MemoryEntry>, Vec<MemoryEntry>) {
    let (mut gone, mut lines) = (Vec::new(), BTreeMap::<_, Vec<MemoryEntry>>::new());
    let (mut changed, mut broken) = (BTreeMap::new(), BTreeSet::new());
    for fact in facts {
        let left = match goes(&fact) {
            true => None,
            false => without_sources(&fact, |source| source_goes(&fact.collection, source)),
        };
        let Some(left) = left else {
            broken.extend(line_of(&fact));
            gone.push(fact);
            continue;
        };
        if left != fact {
            changed.insert(name(&left), left.clone());
        }
        let fact = left;
        if let Some(line) = line_of(&fact) {
            lines.entry(line).or_default().push(fact);
        }
    }
    for line in broken.iter().filter_map(|line| lines.remove(line)) {
        changed.extend(moved(line).into_iter().map(|fact| (name(&fact), fact)));
    }
    (gone, changed.into_values().collect())
}

/// Returns the fact without some of its sources; `None` if none is left.
fn without_sources(entry: &MemoryEntry, goes: impl Fn(&str) -> bool) -> Option<MemoryEntry> {
    let Some(mut fact) = Fact::of(entry).filter(|fact| fact.sources.iter().any(|source| goes(source))) else {
        return Some(entry.clone());
    };
    fact.sources.retain(|source| !goes(source));
    if fact.sources.is_empty() { None } else { rewritten(entry, &fact) }
}

/// Returns the fact with its sources' ids mapped by `other`; `None` if nothing changes.
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
