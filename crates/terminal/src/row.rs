//! Rows: lines of styled text, and places and sizes on the screen.

use std::borrow::Cow;

use archon_types::printable;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::theme::{Look, Page, Style};

/// A piece of a row in one style. Its text is harmless: control characters and invisible characters are escaped, such
/// as `\u{1b}`, a tab becomes four spaces, and a line end becomes one space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSpan {
    text: String,
    style: Style,
}

impl TextSpan {
    /// Creates a span. The text may come from anywhere: characters that could harm the terminal are escaped.
    ///
    /// ```
    /// use archon_terminal::{Style, TextSpan};
    ///
    /// assert_eq!(TextSpan::new("a\tb\x1b[2J", Style::PLAIN).text(), "a    b\\u{1b}[2J");
    /// ```
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        let text = text.into();
        match harmless(&text) {
            Cow::Owned(text) => Self { text, style },
            Cow::Borrowed(_) => Self { text, style },
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the style of the text.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Returns the number of columns that the span takes.
    pub fn width(&self) -> usize {
        width(&self.text)
    }
}

/// Returns the text with everything replaced that could move the cursor.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    match text.contains(['\n', '\t']) {
        true => Cow::Owned(text.replace('\n', " ").replace('\t', "    ")),
        false => text,
    }
}

/// Returns the number of columns that a harmless text takes.
pub(crate) fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.graphemes(true).map(UnicodeWidthStr::width).sum(),
    }
}

/// Tells if the terminal may have to wrap a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrap {
    /// No: the row is at most as wide as its page.
    #[default]
    Done,
    /// Yes: the row may be wider, and the terminal wraps it, so that a line of code is copied as one line.
    Terminal,
}

/// A line of styled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The text, from left to right.
    pub spans: Vec<TextSpan>,
    /// Tells if the terminal may have to wrap the row.
    pub wrap: Wrap,
}

impl Row {
    /// Creates a row of one text.
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { spans: vec![TextSpan::new(text, style)], wrap: Wrap::Done }
    }

    /// Creates a row of one text in the style of `look`.
    pub fn of(text: impl Into<String>, look: Look, page: &Page) -> Self {
        Self::new(text, page.theme.style(look))
    }

    /// Creates a row of several spans.
    pub fn of_spans(spans: Vec<TextSpan>) -> Self {
        Self { spans, wrap: Wrap::Done }
    }

    /// Appends a span.
    pub fn push(&mut self, text: impl Into<String>, style: Style) {
        self.spans.push(TextSpan::new(text, style));
    }

    /// Returns the row with a span before it.
    ///
    /// ```
    /// use archon_terminal::{Row, Style};
    ///
    /// let row = Row::new("Hello", Style::PLAIN).after("> ", Style::PLAIN);
    /// assert_eq!(row.text(), "> Hello");
    /// ```
    pub fn after(mut self, text: impl Into<String>, style: Style) -> Self {
        self.spans.insert(0, TextSpan::new(text, style));
        self
    }

    /// Returns the text without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(TextSpan::text).collect()
    }

    /// Returns the number of columns that the row takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(TextSpan::width).sum()
    }

    /// Returns the beginning of the row: as much as fits into this number of columns.
    pub fn cut(&self, columns: usize) -> Self {
        let mut room = columns;
        let mut spans = Vec::new();
        for span in &self.spans {
            let (text, is_whole) = prefix_within(&span.text, room);
            room -= width(text);
            if !text.is_empty() {
                spans.push(TextSpan { text: text.to_owned(), style: span.style });
            }
            if !is_whole {
                break;
            }
        }
        Self { spans, wrap: Wrap::Done }
    }
}

/// Returns the beginning of a harmless text that fits into this number of columns, and true if that is all.
pub(crate) fn prefix_within(text: &str, columns: usize) -> (&str, bool) {
    let mut room = columns;
    for (at, grapheme) in text.grapheme_indices(true) {
        let wide = grapheme.width();
        if wide > room {
            return (text.get(..at).unwrap_or_default(), false);
        }
        room -= wide;
    }
    (text, true)
}

/// A place on the screen. Rows count from 0 at the top of the live area or of the alternate screen; columns count from
/// 0 at the left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The row, from 0.
    pub row: usize,
    /// The column, from 0.
    pub column: usize,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of columns.
    pub columns: u16,
    /// The number of rows.
    pub rows: u16,
}

impl Size {
    /// Creates a size.
    pub const fn new(columns: u16, rows: u16) -> Self {
        Self { columns, rows }
    }

    /// Returns the maximum width of a row: one column less than the terminal has, so that the cursor is never beyond
    /// the last column.
    pub fn width(self) -> usize {
        usize::from(self.columns).saturating_sub(1).max(1)
    }

    /// Returns the maximum number of rows of the live area: a third of the height.
    pub fn live_rows(self) -> usize {
        usize::from(self.rows / 3).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_ends_before_a_wide_character_that_does_not_fit() {
        let mut row = Row::new("a日", Style::PLAIN);
        row.push("本b", Style::PLAIN);
        for (columns, text) in
            [(0, ""), (1, "a"), (2, "a"), (3, "a日"), (4, "a日"), (5, "a日本"), (9, "a日本b")]
        {
            assert_eq!(row.cut(columns).text(), text, "{columns}");
        }
        assert_eq!(row.width(), 6);
    }

    #[test]
    fn width_of_a_composed_character_is_that_of_one() {
        assert_eq!((width("e\u{301}"), width("🇨🇭"), width("✓")), (1, 2, 1));
    }
}
