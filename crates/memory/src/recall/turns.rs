//! The latest turns of a session that fit into the prompt.

use archon_types::{MemoryEntry, Recalled, TokenCounter, Trust};

use super::turn_line;

/// Turns with their token counts, oldest first. All of them fit into the prompt if no memories are added.
#[derive(Default)]
pub(super) struct Turns {
    entries: Vec<MemoryEntry>,
    tokens: Vec<u64>,
}

impl Turns {
    /// Returns the latest turns that fit. Stops at the first turn that does not fit, so that there is no
    /// gap.
    pub(super) fn fitting(mut entries: Vec<MemoryEntry>, room: u64, counter: &dyn TokenCounter) -> Self {
        let mut remaining = room;
        let tokens = entries.iter().rev().map_while(|entry| {
            // Count the mark of an untrusted turn, too.
            let tokens = match entry.trust {
                Trust::Untrusted => counter.count(&turn_line(entry)),
                _ => counter.count(&entry.content),
            };
            remaining = remaining.checked_sub(tokens)?;
            Some(tokens)
        });
        let mut tokens: Vec<u64> = tokens.collect();
        tokens.reverse();
        entries.drain(..entries.len() - tokens.len());
        Self { entries, tokens }
    }

    /// Returns the index of the first of the latest turns that fit into `room` tokens.
    pub(super) fn first_within(&self, room: u64) -> usize {
        let mut remaining = room;
        let fits = |tokens: &u64| remaining.checked_sub(*tokens).map(|rest| remaining = rest);
        self.tokens.len() - self.tokens.iter().rev().map_while(fits).count()
    }

    /// Returns the number of tokens of the turns from `first` on.
    pub(super) fn tokens_from(&self, first: usize) -> u64 {
        self.tokens[first..].iter().sum()
    }

    /// Returns the ids of the turns from `first` on.
    pub(super) fn ids_from(&self, first: usize) -> impl Iterator<Item = String> {
        self.entries[first..].iter().map(|turn| turn.id.clone())
    }

    /// Returns the index of a memory among the turns from `first` on; `None` if it is not one of them.
    pub(super) fn find_from(&self, first: usize, memory: &Recalled) -> Option<usize> {
        let same = |turn: &MemoryEntry| turn.position == memory.entry.position;
        self.entries[first..].iter().position(same).map(|at| first + at)
    }

    /// Returns the turns from `first` on.
    pub(super) fn into_entries_from(mut self, first: usize) -> Vec<MemoryEntry> {
        self.entries.split_off(first)
    }
}
