//! Diffs of files, with marks at the words that differ.

use similar::TextDiff;

use crate::{
    row::{Row, TextSpan},
    theme::{Look, Page, Style},
    wrap::break_spans,
};

/// The maximum size of a diff that is shown, in bytes.
const MOST_BYTES: usize = 102_400;
/// The maximum size of a group of changed lines in which the words that differ are marked, in bytes.
const MOST_BYTES_OF_WORDS: usize = 8_192;

/// Returns the rows of a unified diff: line numbers, signs, and marks at the words that differ. Lines that are wider
/// than the page are wrapped, and the names of the files are left out. Returns `None` if the diff has more than
/// 102,400 bytes; the caller then shows something else.
///
/// ```
/// use archon_terminal::{Page, Row, Theme, diff_rows};
///
/// let page = Page::new(40, Theme::new(true));
/// let rows = diff_rows("--- a/x\n+++ b/x\n@@ -7,2 +7,2 @@\n one\n-two\n+three\n", &page).unwrap_or_default();
/// assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), ["7  one", "8 -two", "8 +three"]);
/// ```
pub fn diff_rows(diff: &str, page: &Page) -> Option<Vec<Row>> {
    if diff.len() > MOST_BYTES {
        return None;
    }
    let lines = parse(diff);
    let last = lines.iter().filter_map(|line| line.number).max().unwrap_or(0);
    let columns = last.to_string().len();
    Some(lines.iter().flat_map(|line| line.rows(columns, page)).collect())
}

/// A line of a diff.
#[derive(Debug)]
struct DiffLine<'a> {
    kind: Kind,
    /// The number of the line: in the old file for a removed line, otherwise in the new one.
    number: Option<usize>,
    text: &'a str,
    /// The pieces of the text, each with true if it differs from the other file; empty if no words are marked.
    parts: Vec<(bool, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Same,
    Removed,
    Added,
    /// A sign between two hunks, for the lines that the diff does not have.
    Skipped,
    /// Any other line.
    Note,
}

impl DiffLine<'_> {
    fn rows(&self, columns: usize, page: &Page) -> Vec<Row> {
        let (sign, look, marked) = match self.kind {
            Kind::Same => (" ", Look::Plain, Look::Plain),
            Kind::Removed => ("-", Look::Removed, Look::RemovedPart),
            Kind::Added => ("+", Look::Added, Look::AddedPart),
            Kind::Skipped | Kind::Note => ("", Look::Dim, Look::Dim),
        };
        let style = |look| page.theme.style(look);
        let number = self.number.map(|number| number.to_string()).unwrap_or_default();
        let mut spans = vec![TextSpan::new(sign, style(look))];
        match self.parts.is_empty() {
            true => spans.push(TextSpan::new(self.text, style(look))),
            false => spans.extend(self.parts.iter().map(|(is_marked, text)| {
                TextSpan::new(text.as_str(), style(if *is_marked { marked } else { look }))
            })),
        }
        let room = page.width.saturating_sub(columns + 1).max(1);
        let rows = break_spans(&spans, room).into_iter().enumerate();
        let before = |is_first| if is_first { number.as_str() } else { "" };
        rows.map(|(n, row)| row.after(format!("{:>columns$} ", before(n == 0)), numbers(page))).collect()
    }
}

fn numbers(page: &Page) -> Style {
    page.theme.style(Look::Dim)
}

fn parse(diff: &str) -> Vec<DiffLine<'_>> {
    let mut lines: Vec<DiffLine<'_>> = Vec::new();
    let (mut old, mut new) = (0, 0);
    let mut is_in_hunk = false;
    for line in diff.lines() {
        if let Some(begin) = hunk(line) {
            (old, new) = begin;
            if is_in_hunk {
                lines.push(DiffLine { kind: Kind::Skipped, number: None, text: "⋮", parts: Vec::new() });
            }
            is_in_hunk = true;
            continue;
        }
        let (sign, text) = (line.get(..1).unwrap_or_default(), line.get(1..).unwrap_or_default());
        let (kind, number, text) = match sign {
            _ if !is_in_hunk && (line.starts_with("--- ") || line.starts_with("+++ ")) => continue,
            "-" => (Kind::Removed, Some(old), text),
            "+" => (Kind::Added, Some(new), text),
            _ if sign == " " || line.is_empty() => (Kind::Same, Some(new), text),
            _ => (Kind::Note, None, line),
        };
        old += usize::from(matches!(kind, Kind::Removed | Kind::Same));
        new += usize::from(matches!(kind, Kind::Added | Kind::Same));
        // Without a hunk no number is known.
        lines.push(DiffLine { kind, number: number.filter(|_| is_in_hunk), text, parts: Vec::new() });
    }
    mark_words(&mut lines);
    lines
}

/// Returns the first numbers of a hunk: `@@ -7,2 +9,3 @@` begins at the lines 7 and 9.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let mut ranges = line.strip_prefix("@@ ")?.split(' ');
    let mut number =
        |sign: char| -> Option<usize> { ranges.next()?.strip_prefix(sign)?.split(',').next()?.parse().ok() };
    Some((number('-')?, number('+')?))
}

/// Marks the words that differ, in each group of removed lines that is followed by added lines.
fn mark_words(lines: &mut [DiffLine<'_>]) {
    let mut rest = lines;
    while !rest.is_empty() {
        let removed = rest.iter().take_while(|line| line.kind == Kind::Removed).count();
        let added = rest.iter().skip(removed).take_while(|line| line.kind == Kind::Added).count();
        let (group, after) = rest.split_at_mut((removed + added).max(1));
        if removed > 0 && added > 0 {
            let (old, new) = group.split_at_mut(removed);
            mark_group(old, new);
        }
        rest = after;
    }
}

fn mark_group<'a>(old: &mut [DiffLine<'a>], new: &mut [DiffLine<'a>]) {
    let text =
        |lines: &[DiffLine<'_>]| -> String { lines.iter().map(|line| format!("{}\n", line.text)).collect() };
    let (before, after) = (text(old), text(new));
    if before.len() + after.len() > MOST_BYTES_OF_WORDS {
        return;
    }
    let diff = TextDiff::from_lines(before.as_str(), after.as_str());
    for op in diff.ops() {
        // Without a time limit, so that the rows are always the same.
        for change in diff.iter_inline_changes_deadline(op, None) {
            let parts: Vec<(bool, String)> = change
                .values()
                .iter()
                .map(|(is_marked, text)| (*is_marked, text.trim_end_matches('\n').to_owned()))
                .filter(|(_, text)| !text.is_empty())
                .collect();
            // A line that differs as a whole needs no marks.
            if parts.iter().all(|(is_marked, _)| *is_marked) {
                continue;
            }
            let old = change.old_index().and_then(|index| old.get_mut(index));
            let new = change.new_index().and_then(|index| new.get_mut(index));
            for line in [old, new].into_iter().flatten() {
                // Other lines are counted if the text has line ends of another kind.
                let is_whole = parts.iter().map(|(_, text)| text.as_str()).collect::<String>() == line.text;
                line.parts = if is_whole { parts.clone() } else { Vec::new() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn page(width: usize) -> Page {
        Page::new(width, Theme::new(true))
    }

    fn texts(diff: &str, width: usize) -> Vec<String> {
        diff_rows(diff, &page(width)).unwrap().iter().map(Row::text).collect()
    }

    // spec: CL-09
    #[test]
    fn diff_rows_have_line_numbers_of_their_files() {
        let diff = "--- a/x\n+++ b/x\n@@ -9,3 +9,3 @@\n one\n-two\n+2\n three\n@@ -100 +100,2 @@\n+--- new\n last\n\\ No newline at end of file\n";
        assert_eq!(
            texts(diff, 40),
            [
                "  9  one",
                " 10 -two",
                " 10 +2",
                " 11  three",
                "    ⋮",
                "100 +--- new",
                "101  last",
                "    \\ No newline at end of file",
            ]
        );
    }

    // spec: CL-09
    #[test]
    fn diff_rows_mark_the_words_that_differ() {
        let diff = "@@ -1 +1 @@\n-let total = count + 1;\n+let total = count + 2;\n";
        let rows = diff_rows(diff, &page(60)).unwrap();
        let marked = |row: usize, look| -> String {
            let style = page(60).theme.style(look);
            rows[row].spans.iter().filter(|span| span.style() == style).map(TextSpan::text).collect()
        };
        assert_eq!((marked(0, Look::RemovedPart).as_str(), marked(1, Look::AddedPart).as_str()), ("1", "2"));
        assert_eq!(marked(0, Look::Removed), "-let total = count + ;");
        // Nothing is the same, so nothing is marked.
        let rows = diff_rows("@@ -1 +1 @@\n-one\n+2\n", &page(60)).unwrap();
        let looks: Vec<Style> = rows.iter().map(|row| row.spans[1].style()).collect();
        assert_eq!(looks, [Look::Removed, Look::Added].map(|look| page(60).theme.style(look)));
    }

    #[test]
    fn diff_rows_wrap_and_show_all_of_a_line() {
        assert_eq!(texts("@@ -1 +1 @@\n+one two three\n", 10), ["1 +one two", "  three"]);
        assert_eq!(texts("no diff\n+a\x1b[2J", 30), ["  no diff", "  +a\\u{1b}[2J"]);
    }

    // spec: CL-09
    #[test]
    fn diff_rows_of_a_large_difference_are_none_and_of_anything_else_some() {
        assert!(diff_rows(&"+line\n".repeat(20_000), &page(40)).is_none());
        for diff in ["", "\n", "@@", "@@ -x +y @@", "@@ -1 +1 @@\né\n-é\n+e\u{301}\n", "-\n+\n"] {
            assert!(diff_rows(diff, &page(5)).is_some(), "{diff:?}");
        }
    }
}
