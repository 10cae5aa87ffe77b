//! The search in the drafts that were sent.

use super::{
    buffer::Buffer,
    history::{Entry, History},
    popup::Popup,
};
use crate::{keymap::Binding, wrap::one_row};

/// The maximum number of drafts in the list.
const MOST: usize = 100;
/// The maximum number of columns of a draft that are shown; even wide terminals have no more.
const SHOWN: usize = 300;

/// A search: its text, and the drafts that contain all words of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    pub(crate) text: Buffer,
    pub(crate) popup: Popup,
    found: Vec<Entry>,
}

impl Search {
    /// Begins a search with an empty text, which finds all drafts.
    pub(crate) fn new(history: &History) -> Self {
        let mut search = Self::default();
        search.find(history);
        search
    }

    /// Changes the text by a key, a paste or a typed character, and searches again.
    pub(crate) fn edit(&mut self, history: &History, change: impl FnOnce(&mut Buffer)) {
        let before = self.text.text().to_owned();
        change(&mut self.text);
        if self.text.text() != before {
            self.find(history);
        }
    }

    /// Returns the selected draft; `None` if no draft has the text.
    pub(crate) fn selection(&self) -> Option<&Entry> {
        self.found.get(self.popup.selection())
    }

    fn find(&mut self, history: &History) {
        self.found = history.find(self.text.text(), MOST);
        let line = |entry: &Entry| {
            let line = entry.draft.text.split_whitespace().collect::<Vec<_>>().join(" ");
            (one_row(&line, SHOWN).into_owned(), String::new())
        };
        self.popup = Popup::new(self.found.iter().map(line).collect());
    }
}

/// Returns true if a binding edits the search text, which is one line.
pub(crate) fn is_edit(binding: Binding) -> bool {
    matches!(
        binding,
        Binding::Move(_)
            | Binding::Erase(_)
            | Binding::Kill(_)
            | Binding::Yank
            | Binding::Undo
            | Binding::Leave
    )
}
