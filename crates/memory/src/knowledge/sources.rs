//! What facts rest on: the entries that say them.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{Collection, MemoryEntry, Timestamp};

use super::{
    FACT, Fact, line_of,
    timeline::{moved, name},
};

const SOURCES: &str = "sources";
const SAID_AGAIN: &str = "said_again";
/// Times of a fact that are kept.
const MOST_TIMES: usize = 256;

/// The ids of the entries that say a fact, in its own collection.
pub(crate) fn sources_of(fact: &MemoryEntry) -> Vec<String> {
    Fact::of(fact).map(|fact| fact.sources).unwrap_or_default()
}

/// A known fact after it was said again, if that changes what it rests on or how long it is known to hold. What is said
/// by itself rests on nothing else any more; what is believed less holds nothing up.
pub(super) fn said_again(known: &MemoryEntry, again: &Fact, at: Timestamp) -> Option<MemoryEntry> {
    let before = Fact::of(known).filter(|_| again.trust >= known.trust)?;
    let mut fact = before.clone();
    if !fact.sources.is_empty() {
        let new: Vec<_> = again.sources.iter().filter(|id| !before.sources.contains(id)).cloned().collect();
        fact.sources.extend(new);
        if again.sources.is_empty() {
            fact.sources.clear();
        }
    }
    if let (true, Err(place)) = (known.valid_from < Some(at), fact.said_again.binary_search(&at)) {
        fact.said_again.insert(place, at);
        fact.said_again.drain(..fact.said_again.len().saturating_sub(MOST_TIMES));
    }
    if fact == before { None } else { rewritten(known, &fact) }
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

/// The entry of a fact that rests on other entries now, or was said at other times.
pub(super) fn rewritten(entry: &MemoryEntry, fact: &Fact) -> Option<MemoryEntry> {
    let mut entry = entry.clone();
    let written = entry.metadata.get_mut(FACT)?.as_object_mut()?;
    match fact.sources.is_empty() {
        true => written.remove(SOURCES),
        false => written.insert(SOURCES.to_owned(), fact.sources.clone().into()),
    };
    match fact.said_again.is_empty() {
        true => written.remove(SAID_AGAIN),
        false => written.insert(SAID_AGAIN.to_owned(), serde_json::to_value(&fact.said_again).ok()?),
    };
    Some(entry)
}
