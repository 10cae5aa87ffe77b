//! A note: a line of the program, or a line about a record that is not a message, an answer or a call.

use crate::{
    diff::diff_rows,
    row::Row,
    theme::{Look, Page},
    wrap,
};

/// A text of the program itself, such as a warning, or a text about a record.
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
    /// The meaning of the text, which decides its style.
    pub look: Look,
    /// True if only a page with details shows the note.
    pub is_detail: bool,
    /// True if the text is a unified diff.
    pub is_difference: bool,
}

/// The bar before the rows of a diff, so that no text in the diff looks like a row of the program.
const BAR: &str = "  | ";

impl Note {
    /// Creates a note that every page shows.
    pub fn new(look: Look, text: impl Into<String>) -> Self {
        Self { text: text.into(), look, is_detail: false, is_difference: false }
    }

    /// Creates a note with the look [`Look::Warning`].
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new(Look::Warning, text)
    }

    /// Creates a note with a unified diff. It is shown as [`diff_rows`](crate::diff_rows), each row after a bar; a
    /// diff that is too large is shown as plain text.
    pub fn difference(diff: impl Into<String>) -> Self {
        Self { is_difference: true, ..Self::new(Look::Plain, diff) }
    }

    /// Creates a note that only a page with details shows.
    pub(crate) fn detail(text: impl Into<String>) -> Self {
        Self { is_detail: true, ..Self::new(Look::Dim, text) }
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let style = page.theme.style(self.look);
        if self.is_detail && !page.is_verbose {
            return Vec::new();
        }
        if !self.is_difference {
            return wrap::rows(&self.text, style, page.width);
        }
        let (inner, dim) = (page.narrowed(BAR.len()), page.theme.style(Look::Dim));
        let rows =
            diff_rows(&self.text, &inner).unwrap_or_else(|| wrap::rows(&self.text, style, inner.width));
        rows.into_iter().map(|row| row.after(BAR, dim)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    // spec: CL-09
    #[test]
    fn difference_has_numbers_and_marks_behind_a_bar_and_is_plain_if_it_is_large() {
        let page = Page::new(30, Theme::new(true));
        let rows = Note::difference("--- a/x\n+++ b/x\n@@ -7 +7 @@\n-let a = 1;\n+let a = 2;\n").rows(&page);
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(texts, ["  | 7 -let a = 1;", "  | 7 +let a = 2;"]);
        let added = page.theme.style(Look::AddedPart);
        assert!(rows[1].spans.iter().any(|span| span.style() == added && span.text() == "2"), "{rows:?}");
        let large = Note::difference("+line\n".repeat(20_000)).rows(&page);
        assert_eq!((large.len(), large[0].text().as_str()), (20_000, "  | +line"));
    }
}
