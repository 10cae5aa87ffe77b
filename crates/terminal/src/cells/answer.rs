//! An answer of a model: paragraphs that are wrapped, and code between fences that stays as it is.

use archon_types::{AssistantMessage, CommandId, Content};

use crate::{
    row::{Row, Span, Wrap},
    theme::{Look, Page},
    wrap::break_line,
};

/// An answer of a model, whole or as much of it as has streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerCell {
    /// The text, without empty lines at its beginning. Several blocks of text are separated by an empty line.
    pub text: String,
    pub(crate) command: CommandId,
    attempt: u32,
    /// The number of bytes of this attempt that have streamed; `None` if some of them are missing.
    streamed: Option<u64>,
    /// True if another part of the answer, such as a tool call, followed the text so far.
    is_interrupted: bool,
}

impl AnswerCell {
    pub(crate) fn new(command: CommandId) -> Self {
        Self { text: String::new(), command, attempt: 0, streamed: Some(0), is_interrupted: false }
    }

    /// Begins an attempt. The text of an earlier attempt is void.
    pub(crate) fn begin(&mut self, attempt: u32) {
        *self = Self { attempt, ..Self::new(self.command) };
    }

    /// Appends a piece of the text that begins at the byte `offset`. A piece that is known already changes
    /// nothing; if a piece is missing, the rest is known only when the answer is whole.
    pub(crate) fn stream(&mut self, attempt: u32, offset: u64, piece: &str) {
        if attempt < self.attempt {
            return;
        }
        if attempt > self.attempt {
            self.begin(attempt);
        }
        let Some(streamed) = self.streamed else { return };
        let Some(known) = streamed.checked_sub(offset) else {
            self.streamed = None;
            return;
        };
        let Some(new) = usize::try_from(known).ok().and_then(|known| piece.get(known..)) else { return };
        self.streamed = Some(streamed + new.len() as u64);
        if std::mem::take(&mut self.is_interrupted) && !self.text.is_empty() && !new.is_empty() {
            self.text.push_str(SEPARATOR);
        }
        self.text.push_str(if self.text.is_empty() { new.trim_start_matches(is_line_end) } else { new });
    }

    /// Remembers that something other than text streams now.
    pub(crate) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Sets the whole text.
    pub(crate) fn finish(&mut self, message: &AssistantMessage) {
        let blocks = message.content.iter().filter_map(Content::as_text).filter(|text| !text.is_empty());
        let text = blocks.collect::<Vec<_>>().join(SEPARATOR);
        self.text = text.trim_start_matches(is_line_end).to_owned();
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        answer_rows(&self.text, page)
    }
}

/// Returns the rows of a whole answer.
pub(crate) fn answer_rows(text: &str, page: &Page) -> Vec<Row> {
    rows_of(text, &Progress::default(), true, page).into_iter().map(|made| made.row).collect()
}

const SEPARATOR: &str = "\n\n";

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

/// The part of an answer that is on paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The number of bytes of the text that are on paper.
    pub(crate) bytes: usize,
    fence: Option<Fence>,
    /// True if a line with text is on paper, so that an empty line matters.
    has_begun: bool,
    is_gap_due: bool,
    /// True if a part of a line is on paper, so that what follows begins no line.
    is_in_line: bool,
}

/// The opening line of a block of code: its sign and the number of signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    sign: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let (sign, length, rest) = signs(line)?;
        (sign != '`' || !rest.contains('`')).then_some(Self { sign, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        signs(line).is_some_and(|(sign, length, rest)| {
            sign == self.sign && length >= self.length && rest.trim().is_empty()
        })
    }
}

/// Splits a line that begins as a fence does: the sign, how often it stands there, and the rest.
fn signs(line: &str) -> Option<(char, usize, &str)> {
    let begin = line.trim_start_matches(' ');
    let sign = begin.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = begin.trim_start_matches(sign);
    let length = begin.len() - rest.len();
    (length >= 3 && line.len() - begin.len() <= 3).then_some((sign, length, rest))
}

/// A row of an answer, and how far the answer is on paper once the row is.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) row: Row,
    pub(crate) after: Progress,
    /// True if text that is appended later cannot change the row.
    pub(crate) is_final: bool,
}

/// Returns the rows of the text behind `from`. `is_whole` is true if no text follows.
pub(crate) fn rows_of(text: &str, from: &Progress, is_whole: bool, page: &Page) -> Vec<Made> {
    let mut maker = Maker { page, is_whole, at: *from, made: Vec::new() };
    let rest = text.get(from.bytes..).unwrap_or_default();
    for line in rest.split_inclusive('\n') {
        maker.add(line);
    }
    maker.made
}

struct Maker<'a> {
    page: &'a Page,
    is_whole: bool,
    at: Progress,
    made: Vec<Made>,
}

impl Maker<'_> {
    fn add(&mut self, line: &str) {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let is_line_final = self.is_whole || text.len() < line.len();
        let text = text.strip_suffix('\r').unwrap_or(text);
        let end = self.at.bytes + line.len();
        match self.at.fence {
            Some(fence) if fence.is_closed_by(text) => {
                let after = Progress { bytes: end, fence: None, ..self.at };
                self.push(self.verbatim(text, Look::Dim), after, is_line_final);
            }
            Some(_) => {
                let after = Progress { bytes: end, ..self.at };
                self.push(self.verbatim(text, Look::Plain), after, is_line_final);
            }
            None if text.trim().is_empty() && !self.at.is_in_line => {
                self.at = Progress { bytes: end, is_gap_due: self.at.has_begun, ..self.at };
            }
            None => self.add_text(text, end, is_line_final),
        }
    }

    /// Adds a line outside of code, after the gap that is due before it.
    fn add_text(&mut self, text: &str, end: usize, is_line_final: bool) {
        if self.at.is_gap_due {
            let after = Progress { is_gap_due: false, ..self.at };
            self.push(Row::default(), after, true);
        }
        let begun = Progress { has_begun: true, is_in_line: false, ..self.at };
        let begins_line = !self.at.is_in_line;
        if let Some(fence) = Fence::opened_by(text).filter(|_| begins_line) {
            let after = Progress { bytes: end, fence: Some(fence), ..begun };
            return self.push(self.verbatim(text, Look::Dim), after, is_line_final);
        }
        let begin = self.at.bytes;
        let mut rows = break_line(text, self.page.width).into_iter().peekable();
        // Whether a line opens a block of code is known only at its end.
        let may_be_fence = begins_line && signs(text).is_some();
        while let Some(row) = rows.next() {
            let is_last = rows.peek().is_none();
            let bytes = if is_last { end } else { begin + row.end };
            let after = Progress { bytes, is_in_line: !is_last, ..begun };
            let is_final = is_line_final || !is_last && !may_be_fence;
            self.push(Row::of(row.text, Look::Plain, self.page), after, is_final);
        }
    }

    fn verbatim(&self, text: &str, look: Look) -> Row {
        let span = Span::new(text, self.page.theme.style(look));
        Row { spans: vec![span], wrap: Wrap::Terminal }
    }

    fn push(&mut self, row: Row, after: Progress, is_final: bool) {
        self.at = after;
        self.made.push(Made { row, after, is_final });
    }
}
