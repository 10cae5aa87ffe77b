//! The drafts that were sent, which the keys Up and Down bring back.

use super::{draft::Draft, piece::Piece};

/// A draft that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) draft: Draft,
    /// The text as it was edited, with one character for each long paste.
    pub(crate) piece: Piece,
}

/// The drafts that were sent, oldest first, and the one that is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    entries: Vec<Entry>,
    /// The index of the shown draft, and the text that was there before; `None` if no draft of the history is shown.
    shown: Option<(usize, Piece)>,
}

impl History {
    /// Adds a draft as the newest one. The same draft is kept once.
    pub(crate) fn add(&mut self, entry: Entry) {
        self.shown = None;
        self.entries.retain(|earlier| earlier.draft != entry.draft);
        self.entries.push(entry);
    }

    /// Returns the drafts that contain all words of a text, newest first, at most `most`. The search ignores case
    /// unless the text has capital letters.
    pub(crate) fn find(&self, text: &str, most: usize) -> Vec<Entry> {
        let has_capitals = text.contains(char::is_uppercase);
        let has_all = |entry: &&Entry| {
            let searched = &entry.draft.text;
            let searched = if has_capitals { searched.clone() } else { searched.to_lowercase() };
            text.split_whitespace().all(|word| searched.contains(word))
        };
        self.entries.iter().rev().filter(has_all).take(most).cloned().collect()
    }

    /// Returns true if the last input showed a draft of the history.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// Keeps the shown draft as the text that is edited.
    pub(crate) fn leave(&mut self) {
        self.shown = None;
    }

    /// Returns the older draft; `None` if there is none. `now` is the text that is edited.
    pub(crate) fn older(&mut self, now: &Piece) -> Option<Piece> {
        let shown = self.shown.as_ref().map_or(self.entries.len(), |(number, _)| *number);
        let number = shown.checked_sub(1)?;
        let older = self.entries.get(number)?.piece.clone();
        let before = self.shown.take().map_or_else(|| now.clone(), |(_, before)| before);
        self.shown = Some((number, before));
        Some(older)
    }

    /// Returns the newer draft, or after the newest one the text that was there before; `None` if no draft of
    /// the history is shown.
    pub(crate) fn newer(&mut self) -> Option<Piece> {
        let (number, before) = self.shown.take()?;
        match self.entries.get(number + 1) {
            Some(newer) => {
                self.shown = Some((number + 1, before));
                Some(newer.piece.clone())
            }
            None => Some(before),
        }
    }
}
