//! A text that comes in pieces, without the secrets that may be split over them.

use super::{HIDDEN, Redactor, forms::Forms};

/// Cleans a text that comes in pieces: all that comes out, put together, is what [`Redactor::clean`] makes of all that
/// went in. Held back is only the end of what came, and only while a secret may begin there.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    /// What came and has not come out.
    held: String,
    /// So many bytes at the beginning of what is held are the end of a secret that was replaced already.
    covered: usize,
}

impl RedactedStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: String::new(), covered: 0 }
    }

    /// Takes a piece and gives what may be shown now, which may be nothing.
    pub fn push(&mut self, piece: String) -> String {
        let forms = self.redactor.forms();
        if self.held.is_empty() && forms.is_empty() {
            return piece;
        }
        self.held += &piece;
        let end = forms.open_end(self.held.as_bytes()).unwrap_or(self.held.len());
        self.give(&forms, end)
    }

    /// The rest: nothing more belongs to this text.
    pub fn end(&mut self) -> String {
        self.give(&self.redactor.forms(), self.held.len())
    }

    /// The first `end` bytes of what is held, without secrets.
    fn give(&mut self, forms: &Forms, end: usize) -> String {
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
