//! What was said of one thing, over time: pure functions over the entries of one key.

use std::collections::BTreeSet;

use archon_types::{Collection, MemoryEntry, Timestamp};

use super::{Fact, Learnt, object_of, sources::with_sources};

/// The facts of one key, and which of them are not as they are stored.
pub(super) struct Timeline {
    entries: Vec<MemoryEntry>,
    changed: BTreeSet<(Collection, String)>,
}

impl Timeline {
    pub(super) fn new(entries: Vec<MemoryEntry>) -> Self {
        Self { entries, changed: BTreeSet::new() }
    }

    /// Takes in a fact as the entry that it would be; its position says that it was written last.
    pub(super) fn learn(&mut self, new: MemoryEntry, fact: &Fact, now: Timestamp) -> Learnt {
        let start = new.valid_from.unwrap_or(now);
        if let Some(at) = known(&self.entries, &new, start) {
            if let Some(entry) = with_sources(&self.entries[at], fact) {
                self.changed.insert(name(&entry));
                self.entries[at] = entry;
            }
            return Learnt::Known;
        }
        let new_name = name(&new);
        self.entries.push(new);
        let mut ended = 0;
        let ends = ends(&self.entries);
        for (entry, end) in self.entries.iter_mut().zip(ends) {
            if name(entry) == new_name {
                entry.valid_to = end;
            } else if entry.valid_to != end {
                ended += usize::from(end.is_some());
                entry.valid_to = end;
                self.changed.insert(name(entry));
            }
        }
        let outranked = at(&self.entries, start).is_some_and(|winner| name(winner) != new_name);
        self.changed.insert(new_name);
        if outranked { Learnt::Outranked } else { Learnt::New { ended } }
    }

    /// Those that are to be written.
    pub(super) fn changed(self) -> impl Iterator<Item = MemoryEntry> {
        self.entries.into_iter().filter(move |entry| self.changed.contains(&name(entry)))
    }
}

/// What an entry is told apart by.
pub(crate) fn name(entry: &MemoryEntry) -> (Collection, String) {
    (entry.collection.clone(), entry.id.clone())
}

/// The facts of a timeline that end elsewhere than it is written, as they are to be written.
pub(super) fn moved(line: Vec<MemoryEntry>) -> Vec<MemoryEntry> {
    let ends = ends(&line);
    let moved = line.into_iter().zip(ends).filter(|(entry, end)| entry.valid_to != *end);
    let with_end = |(mut entry, end): (MemoryEntry, _)| {
        entry.valid_to = end;
        entry
    };
    moved.map(with_end).collect()
}

/// Which in the timeline says the same already, from a source that is believed as much.
fn known(line: &[MemoryEntry], new: &MemoryEntry, start: Timestamp) -> Option<usize> {
    let says_so = |entry: &&MemoryEntry| entry.trust >= new.trust && object_of(entry) == object_of(new);
    // What was learnt before is known, whatever ended it since.
    let again =
        |entry: &MemoryEntry| entry.valid_from == Some(start) && Fact::own_end(entry) == Fact::own_end(new);
    let holds_on =
        |entry: &MemoryEntry| Fact::own_end(new).is_none() && holds(entry, start) && entry.valid_to.is_none();
    line.iter().position(|entry| says_so(&entry) && (again(entry) || holds_on(entry)))
}

fn holds(entry: &MemoryEntry, time: Timestamp) -> bool {
    entry.valid_from.is_none_or(|from| from <= time) && entry.valid_to.is_none_or(|to| time < to)
}

/// When each entry ends: by itself, or where the next begins that is believed as much or more. Of two that begin
/// together the one that was written later counts.
fn ends(line: &[MemoryEntry]) -> Vec<Option<Timestamp>> {
    let begins = |i: usize| (line[i].valid_from, line[i].position);
    let end = |i: usize| {
        let later = (0..line.len()).filter(|j| begins(*j) > begins(i) && line[*j].trust >= line[i].trust);
        let next = later.filter_map(|j| line[j].valid_from).min();
        next.into_iter().chain(Fact::own_end(&line[i])).min()
    };
    (0..line.len()).map(end).collect()
}

/// What counts at a time.
pub(super) fn at(line: &[MemoryEntry], time: Timestamp) -> Option<&MemoryEntry> {
    let holding = line.iter().filter(|entry| holds(entry, time));
    holding.max_by_key(|entry| (entry.trust, entry.valid_from, entry.position))
}
