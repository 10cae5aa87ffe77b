//! Markdown of answers, while they stream.
//!
//! The text is cut into parts that are formatted one by one: a line of code, a piece of a paragraph, an item of a
//! list, a table. The end of a part depends only on the text up to the line after the part. So a part is formatted as
//! soon as its end is known, and later text cannot change its rows: a streamed answer has the same rows as a complete
//! one.
//!
//! The dialect is CommonMark with tables and task lists. It differs where a row would have to wait for the end of the
//! answer: a line end within a paragraph stays, an underline makes no heading, a link definition counts only in its
//! own part, and HTML is shown as text.

mod blocks;
mod inline;
mod lines;
mod table;

use crate::{
    code::{CodeState, Language, pieces},
    row::{Row, TextSpan, Wrap},
    theme::{Look, Page},
    wrap::{break_line, break_spans},
};

use inline::{Inline, first_sign};
use lines::{Fence, Kind, Line};

/// The maximum size of a part in bytes: a longer part ends at its next line end, so that the time for an answer grows
/// only linearly with its length.
const MOST_BYTES: usize = 16_384;
/// The maximum size of a piece of a paragraph in bytes, with the same effect and reason as [`MOST_BYTES`].
const MOST_BYTES_OF_PIECE: usize = 4_096;

/// Returns the rows of a whole answer.
pub(crate) fn rows(text: &str, page: &Page) -> Vec<Row> {
    advance(text, &mut Progress::default(), true, page)
}

/// Returns the rows after `at` that no later text can change, and moves `at` to their end. `is_whole` is true if the
/// text is complete.
pub(crate) fn advance(text: &str, at: &mut Progress, is_whole: bool, page: &Page) -> Vec<Row> {
    let mut writer = Writer { text, at, is_whole, page, rows: Vec::new() };
    while writer.step() {}
    writer.rows
}

/// Returns the rows after `at` as they are if the text is complete. If the text after `at` is long, such as a very
/// long line, returns only the rows of its last part.
pub(crate) fn open_rows(text: &str, at: &Progress, page: &Page) -> Vec<Row> {
    let first = text.ceil_char_boundary(text.len().saturating_sub(2 * MOST_BYTES));
    advance(text, &mut Progress { bytes: at.bytes.max(first), ..*at }, true, page)
}

/// The printed part of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The number of bytes of the text that are printed.
    pub(crate) bytes: usize,
    inside: Inside,
    /// True if a line with text is printed; empty lines before it are not shown.
    has_begun: bool,
    is_gap_due: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    /// At the beginning of a line, between blocks.
    #[default]
    Nothing,
    /// At the beginning of a line of code.
    Code { fence: Fence, language: Option<&'static Language>, state: CodeState },
    /// At the beginning of a line that may continue a paragraph.
    Paragraph,
    /// Within a line of a paragraph.
    Line,
}

struct Writer<'a> {
    text: &'a str,
    at: &'a mut Progress,
    is_whole: bool,
    page: &'a Page,
    rows: Vec<Row>,
}

impl<'a> Writer<'a> {
    /// Adds the rows of the next part, and returns false if its end is not known yet or there is none.
    fn step(&mut self) -> bool {
        let rest = self.text.get(self.at.bytes..).unwrap_or_default();
        let Some(line) = Line::first(rest, self.is_whole) else { return false };
        match self.at.inside {
            Inside::Nothing => self.block(rest, line),
            Inside::Code { fence, language, state } => self.code(line, fence, language, state),
            Inside::Paragraph => self.paragraph(rest, line),
            Inside::Line => self.piece(rest, line),
        }
    }

    /// Advances by this number of bytes, and sets the state of the text after them. Returns true.
    fn go_on(&mut self, bytes: usize, inside: Inside) -> bool {
        self.at.bytes += bytes;
        self.at.inside = inside;
        true
    }

    fn block(&mut self, rest: &'a str, line: Line<'a>) -> bool {
        if line.is_blank() {
            if line.is_complete {
                self.at.is_gap_due = self.at.has_begun;
                self.at.bytes += line.length;
            }
            return line.is_complete;
        }
        if std::mem::take(&mut self.at.is_gap_due) {
            self.rows.push(Row::default());
        }
        self.at.has_begun = true;
        if !line.is_complete {
            let is_text = line.is_surely_text() && line.indent() < lines::CODE_INDENT;
            return is_text && self.has_full_row(line) && self.go_on(line.leading(), Inside::Line);
        }
        match line.kind() {
            Kind::Code => {
                self.rows.push(verbatim(vec![TextSpan::new(line.text, self.style(Look::Plain))]));
                self.go_on(line.length, Inside::Nothing)
            }
            Kind::Fence(fence) => {
                self.rows.push(verbatim(vec![TextSpan::new(line.text, self.style(Look::Dim))]));
                let (language, state) = (Language::of(fence.info(line.text)), CodeState::default());
                self.go_on(line.length, Inside::Code { fence, language, state })
            }
            Kind::Heading | Kind::Rule => self.part(rest, Some(line.length)),
            Kind::Quote => self.part(rest, lines::quote_end(rest, self.is_whole, MOST_BYTES)),
            Kind::Item(content) => self.part(rest, lines::item_end(rest, content, self.is_whole, MOST_BYTES)),
            Kind::Text => match self.begins_table(rest, line) {
                Some(true) => self.part(rest, lines::table_end(rest, self.is_whole, MOST_BYTES)),
                Some(false) => self.go_on(line.leading(), Inside::Line),
                None => false,
            },
        }
    }

    /// Adds a part that ends after this number of bytes, if its end is known.
    fn part(&mut self, rest: &str, end: Option<usize>) -> bool {
        let Some(source) = end.and_then(|end| rest.get(..end)) else { return false };
        self.rows.append(&mut blocks::rows(source, self.page));
        self.go_on(source.len(), Inside::Nothing)
    }

    /// Returns true if the line is the head of a table; `None` if that depends on text that has not come yet.
    fn begins_table(&self, rest: &str, line: Line<'_>) -> Option<bool> {
        if !line.text.contains('|') || self.has_full_row(line) {
            return Some(false);
        }
        match Line::first(rest.get(line.length..)?, self.is_whole) {
            Some(next) if next.is_complete => Some(next.is_below_table_head()),
            Some(next) if !next.may_be_below_table_head() => Some(false),
            Some(_) => None,
            None => self.is_whole.then_some(false),
        }
    }

    /// Returns true if the line has a row that may be printed before the line ends. Then the line is not the head of a
    /// table.
    fn has_full_row(&self, line: Line<'_>) -> bool {
        let text = line.text.get(line.leading()..).unwrap_or_default();
        let plain = text.get(..first_sign(text).unwrap_or(text.len())).unwrap_or_default();
        break_line(plain, self.page.width).len() > 1
    }

    fn code(
        &mut self,
        line: Line<'a>,
        fence: Fence,
        language: Option<&'static Language>,
        state: CodeState,
    ) -> bool {
        if !line.is_complete {
            return false;
        }
        if fence.is_closed_by(line.text) {
            self.rows.push(verbatim(vec![TextSpan::new(line.text, self.style(Look::Dim))]));
            return self.go_on(line.length, Inside::Nothing);
        }
        let mut state = state;
        self.rows.push(code_row(line.text, language, &mut state, self.page));
        self.go_on(line.length, Inside::Code { fence, language, state })
    }

    /// Decides whether a line continues a paragraph.
    fn paragraph(&mut self, rest: &'a str, line: Line<'a>) -> bool {
        if !line.is_complete {
            return line.is_surely_text()
                && self.has_full_row(line)
                && self.go_on(line.leading(), Inside::Line);
        }
        if line.is_blank() || line.interrupts() {
            return self.go_on(0, Inside::Nothing);
        }
        match self.begins_table(rest, line) {
            Some(true) => self.go_on(0, Inside::Nothing),
            Some(false) => self.go_on(line.leading(), Inside::Line),
            None => false,
        }
    }

    /// Adds rows of a paragraph. Rows before the first Markdown sign of the line are added as soon as they are full;
    /// the rest is added as soon as no sign is open at the end of a line.
    fn piece(&mut self, rest: &'a str, line: Line<'a>) -> bool {
        let sign = first_sign(line.text);
        let plain = line.text.get(..sign.unwrap_or(line.text.len())).unwrap_or_default();
        let mut rows = break_line(plain, self.page.width);
        if sign.is_none() && line.is_complete {
            let look = self.style(Look::Plain);
            self.rows.extend(rows.into_iter().map(|row| Row::new(row.text, look)));
            return self.go_on(line.length, Inside::Paragraph);
        }
        rows.pop();
        if let Some(last) = rows.last() {
            let bytes = last.end;
            let look = self.style(Look::Plain);
            self.rows.extend(rows.into_iter().map(|row| Row::new(row.text, look)));
            return self.go_on(bytes, Inside::Line);
        }
        if !line.is_complete {
            return false;
        }
        let Some((mut inline, length)) = self.formatted(rest, line) else { return false };
        for spans in inline.take_lines() {
            self.rows.append(&mut break_spans(&spans, self.page.width));
        }
        self.go_on(length, Inside::Paragraph)
    }

    /// Formats the lines up to the first line end at which no Markdown sign is open, and also returns their length;
    /// `None` if that line end is not known yet.
    fn formatted(&self, rest: &'a str, line: Line<'a>) -> Option<(Inline, usize)> {
        let mut length = line.length;
        loop {
            let source = rest.get(..length)?;
            let inline = Inline::of_paragraph(source, self.page);
            if !inline.is_open || length > MOST_BYTES_OF_PIECE {
                return Some((inline, length));
            }
            let below = rest.get(length..)?;
            let Some(next) = Line::first(below, self.is_whole) else {
                return self.is_whole.then_some((inline, length));
            };
            if !next.is_complete {
                return None;
            }
            let is_end = next.is_blank() || next.interrupts() || next.is_underline();
            if is_end || self.begins_table(below, next)? {
                return Some((inline, length));
            }
            length += next.length;
        }
    }

    fn style(&self, look: Look) -> crate::theme::Style {
        self.page.theme.style(look)
    }
}

/// Returns a row that the terminal wraps.
fn verbatim(spans: Vec<TextSpan>) -> Row {
    Row { spans, wrap: Wrap::Terminal }
}

/// Returns the row of a line of code, and advances the state to the next line.
fn code_row(line: &str, language: Option<&Language>, state: &mut CodeState, page: &Page) -> Row {
    let pieces = match language {
        Some(language) => pieces(line, language, state),
        None => vec![(line, Look::Plain)],
    };
    verbatim(pieces.into_iter().map(|(text, look)| TextSpan::new(text, page.theme.style(look))).collect())
}

#[cfg(test)]
mod tests;
