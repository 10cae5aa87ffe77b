//! The drafts that were sent, for Up and Down.

use super::{buffer::Piece, draft::Draft};

/// The drafts that were sent, oldest first, and the one that is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    drafts: Vec<Draft>,
    /// The number of the shown draft, and the text that was there before the first one was shown.
    shown: Option<(usize, Piece)>,
}

impl History {
    /// Adds a draft. The same draft twice in a row is one.
    pub(crate) fn add(&mut self, draft: Draft) {
        self.shown = None;
        if self.drafts.last() != Some(&draft) {
            self.drafts.push(draft);
        }
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
        let shown = self.shown.as_ref().map_or(self.drafts.len(), |(number, _)| *number);
        let number = shown.checked_sub(1)?;
        let draft = self.drafts.get(number)?.clone();
        let before = self.shown.take().map_or_else(|| now.clone(), |(_, before)| before);
        self.shown = Some((number, before));
        Some(draft.into_piece())
    }

    /// Returns the newer draft, or after the newest one the text that was there before; `None` if no draft of
    /// the history is shown.
    pub(crate) fn newer(&mut self) -> Option<Piece> {
        let (number, before) = self.shown.take()?;
        match self.drafts.get(number + 1) {
            Some(draft) => {
                self.shown = Some((number + 1, before));
                Some(draft.clone().into_piece())
            }
            None => Some(before),
        }
    }
}
