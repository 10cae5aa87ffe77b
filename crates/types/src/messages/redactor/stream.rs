//! Redacts a text that arrives in pieces, also if a secret is split over several pieces.

use std::sync::Arc;

use super::{HIDDEN, Redactor, changes_of_all, forms::Forms};

/// Redacts a text that arrives in pieces. The joined output is the same as [`Redactor::clean`] of the joined
/// input. Only the end of the input is held back, and only while a secret may begin there.
pub struct RedactedStream {
    redactor: Redactor,
    /// The number of changes of all redactors at the last check, and the forms of all secrets at that time.
    forms: (u64, Arc<Forms>),
    /// The input that was not returned yet.
    held: String,
    /// The number of bytes at the beginning of `held` that belong to a secret that was already replaced.
    covered: usize,
}

impl RedactedStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        let forms = (changes_of_all(), redactor.forms());
        Self { redactor, forms, held: String::new(), covered: 0 }
    }

    /// Appends a piece and returns the text that may be shown now, which may be empty.
    pub fn push(&mut self, piece: String) -> String {
        if self.held.is_empty() && self.forms().is_empty() {
            return piece;
        }
        self.held += &piece;
        let forms = self.forms().clone();
        let end = forms.open_end(self.held.as_bytes()).unwrap_or(self.held.len());
        self.give(end)
    }

    /// Returns the redacted rest of the text, which was held back. Call this after the last piece.
    pub fn end(&mut self) -> String {
        if self.held.is_empty() {
            return String::new();
        }
        self.give(self.held.len())
    }

    fn forms(&mut self) -> &Arc<Forms> {
        let changes = changes_of_all();
        if self.forms.0 != changes {
            self.forms = (changes, self.redactor.forms());
        }
        &self.forms.1
    }

    /// Removes the first `end` bytes from the held text, and returns them redacted.
    fn give(&mut self, end: usize) -> String {
        let forms = self.forms().clone();
        let (mut out, mut at) = (String::new(), 0);
        for place in forms.find(self.held.as_bytes(), self.covered) {
            if place.start >= end {
                break;
            }
            out.push_str(&self.held[at..place.start]);
            if place.start > 0 || self.covered == 0 {
                out.push_str(HIDDEN);
            }
            at = place.end.min(end);
            self.covered = place.end - at;
        }
        out.push_str(&self.held[at..end]);
        self.held.drain(..end);
        out
    }
}

// `Debug` leaves out the held text, which may be the beginning of a secret.
crate::debug_fields!(RedactedStream);
