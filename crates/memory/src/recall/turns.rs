//! The latest turns of a session, as far as there is room for them.

use archon_types::{MemoryEntry, Recalled, TokenCounter, Trust};

use super::turn_line;

/// Turns with their tokens, oldest first; all of them fit the room that there is if nothing is remembered.
#[derive(Default)]
pub(super) struct Turns {
    entries: Vec<MemoryEntry>,
    tokens: Vec<u64>,
}

impl Turns {
    /// The latest of these turns that fit; the first that does not ends it, so that nothing is missing between.
    pub(super) fn fitting(mut entries: Vec<MemoryEntry>, room: u64, counter: &dyn TokenCounter) -> Self {
        let mut left = room;
        let tokens = entries.iter().rev().map_while(|entry| {
            // A mark takes room, too.
            let tokens = match entry.trust {
                Trust::Untrusted => counter.count(&turn_line(entry)),
                _ => counter.count(&entry.content),
            };
            left = left.checked_sub(tokens)?;
            Some(tokens)
        });
        let mut tokens: Vec<u64> = tokens.collect();
        tokens.reverse();
        entries.drain(..entries.len() - tokens.len());
        Self { entries, tokens }
    }

    /// Where the turns begin that fit this room.
    pub(super) fn first_within(&self, room: u64) -> usize {
        let mut left = room;
        let fits = |tokens: &u64| left.checked_sub(*tokens).map(|rest| left = rest);
        self.tokens.len() - self.tokens.iter().rev().map_while(fits).count()
    }

    /// What the turns from there on cost.
    pub(super) fn tokens_from(&self, first: usize) -> u64 {
        self.tokens[first..].iter().sum()
    }

    /// The ids of the turns from there on.
    pub(super) fn ids_from(&self, first: usize) -> impl Iterator<Item = String> {
        self.entries[first..].iter().map(|turn| turn.id.clone())
    }

    /// Whether a memory is one of the turns from there on, and which.
    pub(super) fn find_from(&self, first: usize, memory: &Recalled) -> Option<usize> {
        let same = |turn: &MemoryEntry| turn.position == memory.entry.position;
        self.entries[first..].iter().position(same).map(|at| first + at)
    }

    /// The turns from there on.
    pub(super) fn into_entries_from(mut self, first: usize) -> Vec<MemoryEntry> {
        self.entries.split_off(first)
    }
}
