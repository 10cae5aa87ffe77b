//! A note: a line of the program, or about a record that is no message, answer or call.

use crate::{
    row::Row,
    theme::{Look, Page},
    wrap,
};

/// A line of the program itself, such as a warning.
///
/// ```
/// use archon_terminal::{Cells, Note};
///
/// let mut cells = Cells::default();
/// cells.note(Note::warning("2 of 3 MCP servers answer; look with `archon mcp`"));
/// assert_eq!(cells.all().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The text, of any number of lines.
    pub text: String,
    /// The meaning of the text.
    pub look: Look,
    /// True if only a page with details shows the note.
    pub is_detail: bool,
}

impl Note {
    /// Creates a note.
    pub fn new(look: Look, text: impl Into<String>) -> Self {
        Self { text: text.into(), look, is_detail: false }
    }

    /// Creates a note that warns.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new(Look::Warning, text)
    }

    /// Creates a note that only a page with details shows.
    pub(crate) fn detail(text: impl Into<String>) -> Self {
        Self { is_detail: true, ..Self::new(Look::Dim, text) }
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        match self.is_detail && !page.is_verbose {
            true => Vec::new(),
            false => wrap::rows(&self.text, page.theme.style(self.look), page.width),
        }
    }
}
