//! Breaks text into rows: at spaces if possible, otherwise between characters.
//!
//! A row depends only on the text up to the first character that no longer fits, so text that is appended later
//! changes only the last row. While a text streams, all rows before the last one are therefore final.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use crate::{
    row::{Row, TextSpan, harmless, width},
    theme::Style,
};

/// A row of a source text: the shown text, and the offset in the source where the row ends, after the spaces at the
/// break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenRow {
    pub(crate) text: String,
    pub(crate) end: usize,
}

/// Breaks one line of a source text, without its line end, into rows of at most `columns` columns. A character
/// that is wider than a row has a row of its own. An empty line is one empty row.
pub(crate) fn break_line(line: &str, columns: usize) -> Vec<BrokenRow> {
    let mut rows = Rows { columns: columns.max(1), ..Rows::default() };
    for word in line.split_word_spaces() {
        rows.add(word);
    }
    rows.finish(line.len())
}

/// Breaks a text of any number of lines into rows in one style.
pub(crate) fn rows(text: &str, style: Style, columns: usize) -> Vec<Row> {
    let lines = text.lines().flat_map(|line| break_line(line, columns));
    lines.map(|row| Row::of_spans(vec![TextSpan::new(row.text, style)])).collect()
}

/// Breaks a line of spans into rows of at most `columns` columns, as [`break_line`] breaks their text.
pub(crate) fn break_spans(spans: &[TextSpan], columns: usize) -> Vec<Row> {
    let line: String = spans.iter().map(TextSpan::text).collect();
    let mut begin = 0;
    let rows = break_line(&line, columns).into_iter().map(|broken| {
        let shown = line.get(begin..broken.end).unwrap_or_default().trim_end_matches(' ').len();
        let row = part(spans, begin, begin + shown);
        begin = broken.end;
        row
    });
    rows.collect()
}

/// Returns the part of a line of spans between two places, in bytes.
pub(crate) fn part(spans: &[TextSpan], from: usize, to: usize) -> Row {
    let (mut row, mut begin) = (Row::default(), 0);
    for span in spans {
        let end = begin + span.text().len();
        let (from, to) = (from.clamp(begin, end) - begin, to.clamp(begin, end) - begin);
        if let Some(text) = span.text().get(from..to).filter(|text| !text.is_empty()) {
            row.push(text, span.style());
        }
        begin = end;
    }
    row
}

/// Splits a line before each word and each run of spaces.
trait Words {
    fn split_word_spaces(&self) -> impl Iterator<Item = &str>;
}

impl Words for str {
    fn split_word_spaces(&self) -> impl Iterator<Item = &str> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let is_space = rest.chars().next()? == ' ';
            let end = rest.find(|c| (c == ' ') != is_space).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            Some(word)
        })
    }
}

#[derive(Default)]
struct Rows {
    columns: usize,
    done: Vec<BrokenRow>,
    row: String,
    used: usize,
    /// The number of source bytes that are in the rows.
    at: usize,
}

impl Rows {
    fn add(&mut self, word: &str) {
        let is_space = word.starts_with(' ');
        let wide = width(&harmless(word));
        if is_space || self.used + wide <= self.columns {
            return self.add_characters(word, is_space);
        }
        // A long word begins a row of its own, so that more letters at its end move no row before it.
        if self.used > 0 {
            self.break_row();
        }
        self.add_characters(word, false);
    }

    fn add_characters(&mut self, word: &str, is_space: bool) {
        for character in word.graphemes(true) {
            let shown = harmless(character);
            let wide = width(&shown);
            if self.used > 0 && self.used + wide > self.columns {
                match is_space {
                    // Spaces at a break are not shown.
                    true => {
                        self.at += character.len();
                        continue;
                    }
                    false => self.break_row(),
                }
            }
            self.row.push_str(&shown);
            self.used += wide;
            self.at += character.len();
        }
    }

    fn break_row(&mut self) {
        let text = std::mem::take(&mut self.row);
        self.done.push(BrokenRow { text: text.trim_end_matches(' ').to_owned(), end: self.at });
        self.used = 0;
    }

    fn finish(mut self, end: usize) -> Vec<BrokenRow> {
        if !self.row.is_empty() || self.done.is_empty() {
            self.at = end;
            self.break_row();
        }
        self.done
    }
}

/// Returns a text as one row of at most `columns` columns, with `…` at the end if it is cut.
pub(crate) fn one_row(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let (part, _) = crate::row::prefix_within(text, columns.saturating_sub(1));
    Cow::Owned(format!("{}…", part.trim_end()))
}

#[cfg(test)]
mod tests {
    use archon_testkit::{Chance, cases, first_seed};

    use super::*;

    fn texts(line: &str, columns: usize) -> Vec<String> {
        break_line(line, columns).into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn break_line_breaks_at_spaces_and_long_words_between_characters() {
        assert_eq!(texts("one two three", 8), ["one two", "three"]);
        assert_eq!(texts("to abcdefghij", 5), ["to", "abcde", "fghij"]);
        assert_eq!(texts("", 5), [""]);
        assert_eq!(texts("日本語", 4), ["日本", "語"]);
        assert_eq!(texts("日", 1), ["日"]);
        assert_eq!(texts("  indented line", 11), ["  indented", "line"]);
    }

    #[test]
    fn break_spans_breaks_where_break_line_does_and_keeps_the_styles() {
        let bold = Style::PLAIN.bold();
        let spans = ["one ", "two日", "本 ", "", "three  "];
        let spans: Vec<TextSpan> = spans
            .into_iter()
            .zip([Style::PLAIN, bold].into_iter().cycle())
            .map(|(text, style)| TextSpan::new(text, style))
            .collect();
        for columns in 1..20 {
            let rows = break_spans(&spans, columns);
            assert!(rows.iter().map(Row::text).eq(texts("one two日本 three  ", columns)), "{columns}");
        }
        let rows = break_spans(&spans, 7);
        assert_eq!(rows[0].spans, [TextSpan::new("one", Style::PLAIN)]);
        assert_eq!(rows[1].spans, [TextSpan::new("two日", bold), TextSpan::new("本", Style::PLAIN)]);
    }

    #[test]
    fn one_row_of_a_long_text_ends_with_an_ellipsis() {
        assert_eq!((one_row("abcdef", 6).as_ref(), one_row("abcdef", 4).as_ref()), ("abcdef", "abc…"));
    }

    // spec: CL-12
    #[test]
    fn break_line_of_a_longer_text_changes_only_the_last_row() {
        const PIECES: [&str; 12] = [
            "a",
            "word",
            " ",
            "  ",
            "é",
            "e\u{301}",
            "日本",
            "👨\u{200d}👩",
            "\u{301}",
            "\t",
            "\x1b[2J",
            "longerthanarow",
        ];
        for seed in first_seed()..first_seed() + cases(300, 20_000) {
            let mut chance = Chance(seed);
            let columns = 1 + usize::try_from(chance.below(24)).unwrap();
            let mut line = String::new();
            let mut before: Vec<BrokenRow> = Vec::new();
            for _ in 0..chance.below(30) {
                line.push_str(PIECES[usize::try_from(chance.below(12)).unwrap()]);
                let now = break_line(&line, columns);
                let stable = before.len().saturating_sub(1);
                assert_eq!(
                    now.get(..stable),
                    before.get(..stable),
                    "seed {seed}, {columns} columns, {line:?}"
                );
                let mut at = 0;
                for row in &now {
                    assert!(line.is_char_boundary(row.end) && row.end >= at, "seed {seed}: {line:?}");
                    at = row.end;
                }
                assert_eq!(at, line.len(), "seed {seed}: every byte is in a row");
                before = now;
            }
        }
    }

    #[test]
    fn break_line_again_behind_a_row_gives_the_rows_that_follow() {
        let line = "some words, and a-very-long-one-indeed 日本語日本語 the end";
        for columns in 3..30 {
            let all = break_line(line, columns);
            for (number, row) in all.iter().enumerate().take(all.len() - 1) {
                let rest = break_line(&line[row.end..], columns);
                let expected = all[number + 1..].iter().map(|row| &row.text);
                assert!(rest.iter().map(|row| &row.text).eq(expected), "{columns}");
            }
        }
    }
}
