//! The timeline of one key: pure functions over its entries.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use archon_types::{Collection, MemoryEntry, Timestamp, Trust};

use super::Learnt;
use crate::fact::{Fact, ended_object, object_of, restated, rewritten, was_said_again};

/// The facts with one key in one collection. `changed` identifies the facts that differ from the stored
/// version.
#[derive(Default)]
pub(super) struct Timeline {
    entries: Vec<MemoryEntry>,
    changed: BTreeSet<(Collection, String)>,
}

impl Timeline {
    pub(super) fn new(entries: Vec<MemoryEntry>) -> Self {
        Self { entries, changed: BTreeSet::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a fact with its new entry, whose position sorts after all stored ones.
    pub(super) fn learn(&mut self, new: MemoryEntry, fact: &Fact, now: Timestamp) -> Learnt {
        let start = new.valid_from.unwrap_or(now);
        if let Some(at) = known(&self.entries, &new, start) {
            if let Some(entry) = restated(&self.entries[at], fact, start) {
                self.changed.insert(name(&entry));
                self.entries[at] = entry;
            }
            return Learnt::Known;
        }
        let new_name = name(&new);
        self.entries.push(new);
        self.changed.extend(split(&mut self.entries));
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
        let outranked = !fact.ends && at(&self.entries, start).is_some_and(|winner| name(winner) != new_name);
        self.changed.insert(new_name);
        if outranked { Learnt::Outranked } else { Learnt::New { ended } }
    }

    /// Returns the entries to write.
    pub(super) fn changed(self) -> impl Iterator<Item = MemoryEntry> {
        self.entries.into_iter().filter(move |entry| self.changed.contains(&name(entry)))
    }
}

/// Returns the identity of an entry: its collection and id.
pub(crate) fn name(entry: &MemoryEntry) -> (Collection, String) {
    (entry.collection.clone(), entry.id.clone())
}

/// Returns the facts of a timeline whose stored end is wrong, with their new ends.
pub(super) fn moved(mut line: Vec<MemoryEntry>) -> Vec<MemoryEntry> {
    let split = split(&mut line);
    let ends = ends(&line);
    let moved = line
        .into_iter()
        .zip(ends)
        .filter(|(entry, end)| entry.valid_to != *end || split.contains(&name(entry)));
    let with_end = |(mut entry, end): (MemoryEntry, _)| {
        entry.valid_to = end;
        entry
    };
    moved.map(with_end).collect()
}

/// Splits each fact that was ended by another fact and stated again after that: the second part begins when the
/// fact was stated again. Returns the collections and ids of new and changed entries.
fn split(line: &mut Vec<MemoryEntry>) -> BTreeSet<(Collection, String)> {
    let (mut changed, mut i) = (BTreeSet::new(), 0);
    while let Some(entry) = line.get(i) {
        i += 1;
        let Some(fact) = Some(entry).filter(|entry| was_said_again(entry)).and_then(Fact::of) else {
            continue;
        };
        let Some(end) = next_after(line, entry) else { continue };
        // A statement at the moment at which another fact begins counts as made before that.
        let begins = |at: Timestamp| {
            line.iter().any(|other| other.valid_from == Some(at) && other.trust >= entry.trust)
        };
        let (before, after): (Vec<_>, Vec<_>) =
            fact.said_again.iter().partition(|at| **at <= end || begins(**at));
        let Some((again, after)) = after.split_first() else { continue };
        let parts = [(before, entry.valid_from), (after.to_vec(), Some(*again))];
        let [first, second] = parts.map(|(said_again, from)| {
            let mut part = rewritten(entry, &Fact { said_again, ..fact.clone() })?;
            part.valid_from = from;
            Some(part)
        });
        let Some((first, mut second)) = first.zip(second) else { continue };
        second.id = part_at(&first.id, *again);
        second.position = u64::MAX;
        changed.extend([name(&first), name(&second)]);
        line[i - 1] = first;
        line.push(second);
    }
    changed
}

/// Returns the id of a part of a fact: the id of the whole fact, `@`, and the time at which the part begins.
/// `id` may itself be the id of a part: then `@` and the digits at its end are replaced.
fn part_at(id: &str, begins: Timestamp) -> String {
    let is_part = |(_, time): &(&str, &str)| !time.is_empty() && time.bytes().all(|b| b.is_ascii_digit());
    let whole = id.rsplit_once('@').filter(is_part).map_or(id, |(whole, _)| whole);
    format!("{whole}@{}", begins.as_millis())
}

/// Returns the index of an entry that already states the new fact at the time `start`, with the same or a
/// higher trust level.
fn known(line: &[MemoryEntry], new: &MemoryEntry, start: Timestamp) -> Option<usize> {
    let says_so = |entry: &&MemoryEntry| entry.trust >= new.trust && object_of(entry) == object_of(new);
    // A fact that was learnt before is known, even if something ended it since.
    let said_then = |entry: &MemoryEntry| {
        entry.valid_from == Some(start)
            || Fact::of(entry).is_some_and(|fact| fact.said_again.contains(&start))
    };
    let again = |entry: &MemoryEntry| said_then(entry) && Fact::own_end(entry) == Fact::own_end(new);
    let holds_on =
        |entry: &MemoryEntry| Fact::own_end(new).is_none() && holds(entry, start) && entry.valid_to.is_none();
    line.iter().position(|entry| says_so(&entry) && (again(entry) || holds_on(entry)))
}

pub(super) fn holds(entry: &MemoryEntry, time: Timestamp) -> bool {
    entry.valid_from.is_none_or(|from| from <= time) && entry.valid_to.is_none_or(|to| time < to)
}

/// Returns the end of each entry: its own end, or the beginning of the next entry with the same or a higher
/// trust level. Among entries that begin at the same time, the one that was written last counts.
fn ends(line: &[MemoryEntry]) -> Vec<Option<Timestamp>> {
    let ends = nexts(line).into_iter().zip(line);
    ends.map(|(next, entry)| next.into_iter().chain(Fact::own_end(entry)).min()).collect()
}

fn begins(entry: &MemoryEntry) -> (Option<Timestamp>, u64) {
    (entry.valid_from, entry.position)
}

/// Returns the time at which the next entry that ends the given one begins: another fact, or the statement that
/// this one no longer holds.
fn next_after(line: &[MemoryEntry], entry: &MemoryEntry) -> Option<Timestamp> {
    let is_later = |other: &&MemoryEntry| begins(other) > begins(entry) && other.trust >= entry.trust;
    let ends_it = |other: &&MemoryEntry| ended_object(other).is_none_or(|object| is_meant(entry, &object));
    line.iter().filter(is_later).filter(ends_it).filter_map(|other| other.valid_from).min()
}

/// Returns true if the end of the fact with this object, or of all facts, means an entry.
fn is_meant(entry: &MemoryEntry, object: &str) -> bool {
    object.is_empty() || object_of(entry).as_deref() == Some(object)
}

/// Computes [`next_after`] for all entries in one pass.
fn nexts(line: &[MemoryEntry]) -> Vec<Option<Timestamp>> {
    let mut latest_first: Vec<usize> = (0..line.len()).collect();
    latest_first.sort_by_key(|at| Reverse(begins(&line[*at])));
    let mut nexts = vec![None; line.len()];
    // For each trust level: the earliest beginning among the later entries.
    let mut first = BTreeMap::<Trust, Timestamp>::new();
    for together in latest_first.chunk_by(|a, b| begins(&line[*a]) == begins(&line[*b])) {
        for at in together {
            nexts[*at] = first.range(line[*at].trust..).map(|(_, begins)| *begins).min();
        }
        for entry in together.iter().map(|at| &line[*at]).filter(|entry| ended_object(entry).is_none()) {
            first.extend(entry.valid_from.map(|begins| (entry.trust, begins)));
        }
    }
    for (end, object) in line.iter().filter_map(|entry| Some((entry, ended_object(entry)?))) {
        for (entry, next) in line.iter().zip(&mut nexts) {
            if begins(end) > begins(entry) && end.trust >= entry.trust && is_meant(entry, &object) {
                *next = next.iter().copied().chain(end.valid_from).min();
            }
        }
    }
    nexts
}

/// Returns the entry that counts at a time: of those that hold then, the entry with the highest trust level;
/// of several, the entry that began last.
pub(super) fn at(line: &[MemoryEntry], time: Timestamp) -> Option<&MemoryEntry> {
    let holding = line.iter().filter(|entry| holds(entry, time));
    holding.max_by_key(|entry| (entry.trust, entry.valid_from, entry.position))
}

#[cfg(test)]
mod tests {
    use archon_testkit::{Chance, cases, first_seed};

    use super::*;

    // spec: M-25
    #[test]
    fn timeline_nexts_equals_next_after_for_each_fact() {
        let mut chance = Chance(first_seed());
        for _ in 0..cases(500, 20_000) {
            let mut entry = |_| {
                let object = ["a", "b", ""][usize::try_from(chance.below(3)).unwrap()];
                let fact = Fact { ends: chance.percent(25), ..Fact::new("s", "r", object) };
                let mut entry = MemoryEntry::default();
                entry.metadata.insert("fact".to_owned(), serde_json::to_value(fact).unwrap());
                entry.position = chance.below(9);
                entry.valid_from = chance.percent(90).then(|| Timestamp::from_millis(chance.below(6)));
                entry.trust = match chance.below(3) {
                    0 => Trust::Untrusted,
                    1 => Trust::Model,
                    _ => Trust::Trusted,
                };
                entry
            };
            let line: Vec<MemoryEntry> = (0..8).map(&mut entry).collect();
            let each: Vec<_> = line.iter().map(|entry| next_after(&line, entry)).collect();
            assert_eq!(nexts(&line), each, "{line:?}");
        }
    }

    // spec: M-25
    #[test]
    fn timeline_part_ids_with_an_at_sign_are_parsed() {
        let part = |id| part_at(id, Timestamp::from_millis(5));
        assert_eq!([part("a"), part("a@3"), part("a@3@4")], ["a@5", "a@5", "a@3@5"]);
        assert_eq!([part("anna@home"), part("anna@work")], ["anna@home@5", "anna@work@5"]);
    }
}
