//! What was said of one thing, over time: pure functions over the entries of one key.

use archon_types::{MemoryEntry, Timestamp};

use super::{Fact, object_of};

/// The facts of a timeline that end elsewhere than it is written, as they are to be written.
pub(crate) fn moved(line: Vec<MemoryEntry>) -> Vec<MemoryEntry> {
    let ends = ends(&line);
    let moved = line.into_iter().zip(ends).filter(|(entry, end)| entry.valid_to != *end);
    let with_end = |(mut entry, end): (MemoryEntry, _)| {
        entry.valid_to = end;
        entry
    };
    moved.map(with_end).collect()
}

/// What in the timeline says the same already, from a source that is believed as much.
pub(super) fn known<'a>(
    line: &'a [MemoryEntry],
    new: &MemoryEntry,
    start: Timestamp,
) -> Option<&'a MemoryEntry> {
    let says_so = |entry: &&MemoryEntry| entry.trust >= new.trust && object_of(entry) == object_of(new);
    // What was learnt before is known, whatever ended it since.
    let again =
        |entry: &MemoryEntry| entry.valid_from == Some(start) && Fact::own_end(entry) == Fact::own_end(new);
    let holds_on =
        |entry: &MemoryEntry| Fact::own_end(new).is_none() && holds(entry, start) && entry.valid_to.is_none();
    line.iter().filter(says_so).find(|entry| again(entry) || holds_on(entry))
}

fn holds(entry: &MemoryEntry, time: Timestamp) -> bool {
    entry.valid_from.is_none_or(|from| from <= time) && entry.valid_to.is_none_or(|to| time < to)
}

/// When each entry ends: by itself, or where the next begins that is believed as much or more. Of two that begin
/// together the one that was written later counts.
pub(super) fn ends(line: &[MemoryEntry]) -> Vec<Option<Timestamp>> {
    let begins = |i: usize| (line[i].valid_from, written(&line[i]));
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
    holding.max_by_key(|entry| (entry.trust, entry.valid_from, written(entry)))
}

/// What is not stored yet is written last.
fn written(entry: &MemoryEntry) -> u64 {
    entry.position.wrapping_sub(1)
}
