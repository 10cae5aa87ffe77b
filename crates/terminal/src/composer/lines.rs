//! A text of several lines as rows on the screen, with a caret in it.
//!
//! Unlike rows that are only read, these rows keep the spaces at a break, so that each place in the text has its own
//! place on the screen.

use std::{borrow::Cow, ops::Range};

use unicode_segmentation::UnicodeSegmentation;

use crate::{
    row::{Place, Row, TextSpan, harmless, width},
    theme::{Look, Page},
};

/// The rows of a text: the byte range of each, without the line end.
#[derive(Clone, Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    labels: &'a [Label],
    rows: Vec<Range<usize>>,
}

/// A text that is shown in place of the character at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) at: usize,
    pub(crate) shown: String,
}

/// Rows of an edited text on the screen.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) rows: Vec<Row>,
    /// The place of the caret in these rows.
    pub(crate) caret: Place,
    /// The index of the first of these rows among all rows of the text.
    pub(crate) top: usize,
}

/// Returns the number of columns for text after a sign. One column stays free for the caret after the last character
/// of a row.
pub(crate) fn columns_beside(sign: &str, page: &Page) -> usize {
    page.width.saturating_sub(width(sign) + 1).max(1)
}

impl<'a> Lines<'a> {
    /// Breaks a text into rows of at most `columns` columns: after a space if possible, otherwise between graphemes. A
    /// wider grapheme has a row of its own.
    pub(crate) fn new(text: &'a str, columns: usize) -> Self {
        Self::with_labels(text, &[], columns)
    }

    /// Breaks a text like [`new`](Self::new), and shows labels in place of some characters. The labels are ordered by
    /// offset.
    pub(crate) fn with_labels(text: &'a str, labels: &'a [Label], columns: usize) -> Self {
        let mut lines = Self { text, labels, rows: Vec::new() };
        let mut start = 0;
        for line in text.split('\n') {
            lines.break_line(line, start, columns.max(1));
            start += line.len() + 1;
        }
        lines
    }

    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row of an offset. An offset at a break belongs to the row after the break.
    pub(crate) fn row_of(&self, at: usize) -> usize {
        self.rows.partition_point(|row| row.start <= at).saturating_sub(1)
    }

    /// Returns the column of an offset in its row.
    pub(crate) fn column_of(&self, at: usize) -> usize {
        let start = self.range(self.row_of(at)).start;
        let before = self.text.get(start..at).unwrap_or_default().grapheme_indices(true);
        before.map(|(at, grapheme)| self.width_of(start + at, grapheme)).sum()
    }

    /// Returns the last offset of a row whose column is at most `column`.
    pub(crate) fn offset_at(&self, row: usize, column: usize) -> usize {
        let Range { start, end } = self.range(row);
        let mut used = 0;
        let mut last = start;
        for (at, grapheme) in self.text.get(start..end).unwrap_or_default().grapheme_indices(true) {
            if used > column {
                return last;
            }
            last = start + at;
            used += self.width_of(last, grapheme);
        }
        // The end of a row that goes on in the next one belongs to the next one.
        let goes_on = self.rows.get(row + 1).is_some_and(|next| next.start == end);
        if used <= column && !goes_on { end } else { last }
    }

    /// Returns at most `most` rows for the screen, around the caret, with a sign before the first row of the text.
    /// `top` is the first row of the last window: a window moves only as far as it must to contain the caret.
    pub(crate) fn window(&self, caret: usize, sign: &str, page: &Page, top: usize, most: usize) -> Window {
        let row = self.row_of(caret);
        let highest = (row + 1).saturating_sub(most);
        let top = top.clamp(highest, row).min(self.rows.len().saturating_sub(most));
        let rows = (top..self.rows.len().min(top.saturating_add(most))).map(|number| {
            let (sign, look) = match number {
                0 => (sign.to_owned(), Look::Person),
                _ => (" ".repeat(width(sign)), Look::Plain),
            };
            let mut made = Row::of(sign, look, page);
            made.spans.extend(self.spans(number, (number == row).then_some(caret), page));
            made.cut(page.width)
        });
        let column = (self.column_of(caret) + width(sign)).min(page.width.saturating_sub(1));
        Window { rows: rows.collect(), caret: Place { row: row - top, column }, top }
    }

    /// Returns the spans of a row. If the caret is in the row, the character at the caret has a style of its own.
    fn spans(&self, row: usize, caret: Option<usize>, page: &Page) -> Vec<TextSpan> {
        let Range { start, end } = self.range(row);
        let span = |range: Range<usize>, look| TextSpan::new(self.text_of(range), page.theme.style(look));
        let Some(caret) = caret.filter(|at| (start..=end).contains(at)) else {
            return vec![span(start..end, Look::Plain)];
        };
        let mut behind = caret;
        // A character that is not shown has no place for the caret.
        for grapheme in self.text.get(caret..end).unwrap_or_default().graphemes(true) {
            behind += grapheme.len();
            if !self.text_of(caret..behind).is_empty() {
                break;
            }
        }
        let under = Some(self.text_of(caret..behind)).filter(|shown| !shown.is_empty());
        let under = TextSpan::new(under.unwrap_or_else(|| " ".to_owned()), page.theme.style(Look::Caret));
        vec![span(start..caret, Look::Plain), under, span(behind..end, Look::Plain)]
    }

    /// Returns a part of the text as it is shown, with labels.
    fn text_of(&self, range: Range<usize>) -> String {
        let start = range.start;
        let graphemes = self.text.get(range).unwrap_or_default().grapheme_indices(true);
        graphemes.map(|(at, grapheme)| self.text_of_grapheme(start + at, grapheme)).collect()
    }

    fn text_of_grapheme<'g>(&self, at: usize, grapheme: &'g str) -> Cow<'g, str> {
        let label = self.labels.binary_search_by_key(&at, |label| label.at);
        match label.ok().and_then(|number| self.labels.get(number)) {
            // An accent may stand on the character.
            Some(label) => {
                let rest: String = grapheme.chars().skip(1).collect();
                Cow::Owned(format!("{}{}", label.shown, harmless(&rest)))
            }
            None => harmless(grapheme),
        }
    }

    fn width_of(&self, at: usize, grapheme: &str) -> usize {
        width(&self.text_of_grapheme(at, grapheme))
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.rows.get(row).cloned().unwrap_or(self.text.len()..self.text.len())
    }

    fn break_line(&mut self, line: &str, offset: usize, columns: usize) {
        let (mut start, mut used) = (0, 0);
        // The last place behind a space, and the columns up to it.
        let mut space = None;
        for (at, grapheme) in line.grapheme_indices(true) {
            let wide = self.width_of(offset + at, grapheme);
            if used > 0 && used + wide > columns {
                let (end, before) = space.take().unwrap_or((at, used));
                self.rows.push(offset + start..offset + end);
                (start, used) = (end, used - before);
                // What follows the space may still be too wide together with this grapheme.
                if used > 0 && used + wide > columns {
                    self.rows.push(offset + start..offset + at);
                    (start, used) = (at, 0);
                }
            }
            used += wide;
            if grapheme == " " {
                space = Some((at + 1, used));
            }
        }
        self.rows.push(offset + start..offset + line.len());
    }
}
