//! What facts rest on: the entries that say them.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{Collection, MemoryEntry};

use super::{
    fact::{Fact, line_of, rewritten},
    timeline::{moved, name},
};

/// The ids of the entries that say a fact, in its own collection.
pub(crate) fn sources_of(fact: &MemoryEntry) -> Vec<String> {
    Fact::of(fact).map(|fact| fact.sources).unwrap_or_default()
}

/// What becomes of facts when some of them go, and some of the entries that they rest on, named by collection and id:
/// those that are gone then, with or without the others, and those that are left and change.
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

/// The fact without some of the entries that it rests on; `None` if these were all.
fn without_sources(entry: &MemoryEntry, goes: impl Fn(&str) -> bool) -> Option<MemoryEntry> {
    let Some(mut fact) = Fact::of(entry).filter(|fact| fact.sources.iter().any(|source| goes(source))) else {
        return Some(entry.clone());
    };
    fact.sources.retain(|source| !goes(source));
    if fact.sources.is_empty() { None } else { rewritten(entry, &fact) }
}

/// The fact with other entries in the place of those that it rests on; `None` if they are the same.
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
