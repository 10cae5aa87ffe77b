//! What facts rest on: the entries that say them.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{Collection, MemoryEntry};

use super::{
    FACT, Fact, line_of,
    timeline::{moved, name},
};

const SOURCES: &str = "sources";

/// The ids of the entries that say a fact, in its own collection.
pub(crate) fn sources_of(fact: &MemoryEntry) -> Vec<String> {
    Fact::of(fact).map(|fact| fact.sources).unwrap_or_default()
}

/// A known fact after it was said again, if that changes what it rests on. What is said by itself rests on nothing else
/// any more; what is believed less holds nothing up.
pub(super) fn with_sources(known: &MemoryEntry, again: &Fact) -> Option<MemoryEntry> {
    let mut sources = Fact::of(known)?.sources;
    if sources.is_empty() || again.trust < known.trust {
        return None;
    }
    let before = sources.len();
    for id in &again.sources {
        if !sources.contains(id) {
            sources.push(id.clone());
        }
    }
    match again.sources.is_empty() {
        true => sources.clear(),
        false if sources.len() == before => return None,
        false => {}
    }
    rewritten(known, &sources)
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
        let before = sources_of(&fact);
        let mut sources = before.clone();
        sources.retain(|source| !source_goes(&fact.collection, source));
        if goes(&fact) || (sources.is_empty() && !before.is_empty()) {
            broken.extend(line_of(&fact));
            gone.push(fact);
            continue;
        }
        let fact = match sources.len() == before.len() {
            true => fact,
            false => {
                let left = rewritten(&fact, &sources).unwrap_or(fact);
                changed.insert(name(&left), left.clone());
                left
            }
        };
        if let Some(line) = line_of(&fact) {
            lines.entry(line).or_default().push(fact);
        }
    }
    for line in broken.iter().filter_map(|line| lines.remove(line)) {
        changed.extend(moved(line).into_iter().map(|fact| (name(&fact), fact)));
    }
    (gone, changed.into_values().collect())
}

/// The fact with other entries in the place of those that it rests on; `None` if they are the same.
pub(crate) fn with_other_sources(
    fact: &MemoryEntry,
    other: impl Fn(&str) -> Option<String>,
) -> Option<MemoryEntry> {
    let before = sources_of(fact);
    let mut sources: Vec<String> = Vec::new();
    for source in &before {
        let source = other(source).unwrap_or_else(|| source.clone());
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    if sources == before { None } else { rewritten(fact, &sources) }
}

/// The entry of a fact that rests on these entries.
fn rewritten(entry: &MemoryEntry, sources: &[String]) -> Option<MemoryEntry> {
    let mut entry = entry.clone();
    let fact = entry.metadata.get_mut(FACT)?.as_object_mut()?;
    fact.insert(SOURCES.to_owned(), sources.into());
    Some(entry)
}
