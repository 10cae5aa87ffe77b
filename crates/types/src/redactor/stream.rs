//! A text that comes in pieces, without the secrets that may be split over them.

use std::sync::Arc;

use super::{HIDDEN, Redactor, changes_of_all, forms::Forms};

/// Cleans a text that comes in pieces: all that comes out, put together, is what [`Redactor::clean`] makes of all that
/// went in. Held back is only the end of what came, and only while a secret may begin there.
pub struct RedactedStream {
    redactor: Redactor,
    /// The forms of all secrets, and the changes of all redactors when they were asked for.
    forms: (u64, Arc<Forms>),
    /// What came and has not come out.
    held: String,
    /// So many bytes at the beginning of what is held are the end of a secret that was replaced already.
    covered: usize,
}

impl RedactedStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        let forms = (changes_of_all(), redactor.forms());
        Self { redactor, forms, held: String::new(), covered: 0 }
    }

    /// Takes a piece and gives what may be shown now, which may be nothing.
    pub fn push(&mut self, piece: String) -> String {
        if self.held.is_empty() && self.forms().is_empty() {
            return piece;
        }
        self.held += &piece;
        let forms = self.forms().clone();
        let end = forms.open_end(self.held.as_bytes()).unwrap_or(self.held.len());
        self.give(end)
    }

    /// The rest: nothing more belongs to this text.
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

    /// The first `end` bytes of what is held, without secrets.
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

impl std::fmt::Debug for RedactedStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What is held may be the beginning of a secret.
        f.debug_struct("RedactedStream").finish_non_exhaustive()
    }
}
