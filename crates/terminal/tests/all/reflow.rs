//! A terminal that breaks its lines anew when its width changes, as most do and vt100 does not. It knows the
//! sequences that the screen writes, and that to the row below, which stops at the bottom and so lost rows once.

use std::io::{self, Write};

use archon_terminal::{Frame, Inline, Place, Row, Screen, Size, Style, Support, Wrap};
use archon_testkit::{Chance, cases, first_seed};

use crate::emulator::any_size;

/// A row of the scrollback or of the screen.
#[derive(Clone, Default)]
struct Line {
    text: Vec<char>,
    /// True if the next row is the rest of the same line.
    goes_on: bool,
}

struct Reflow {
    size: Size,
    lines: Vec<Line>,
    /// The number of rows in the scrollback.
    top: usize,
    row: usize,
    column: usize,
    wraps: bool,
    /// True if a screen that becomes lower deletes rows below the cursor first, as tmux does.
    deletes_below: bool,
}

impl Reflow {
    fn new(size: Size, deletes_below: bool) -> Self {
        let lines = vec![Line::default(); usize::from(size.rows)];
        Self { size, lines, top: 0, row: 0, column: 0, wraps: true, deletes_below }
    }

    fn columns(&self) -> usize {
        self.size.columns.into()
    }

    fn bottom(&self) -> usize {
        self.top + usize::from(self.size.rows) - 1
    }

    fn put(&mut self, c: char) {
        if self.column == self.columns() {
            if self.wraps {
                self.lines[self.row].goes_on = true;
                self.line_feed();
                self.column = 0;
            } else {
                self.column -= 1;
            }
        }
        let text = &mut self.lines[self.row].text;
        text.resize(text.len().max(self.column + 1), ' ');
        text[self.column] = c;
        self.column += 1;
    }

    fn line_feed(&mut self) {
        self.row += 1;
        if self.row > self.bottom() {
            self.top += 1;
            self.lines.push(Line::default());
        }
    }

    fn erase_to_end_of_row(&mut self) {
        let column = self.column;
        self.lines[self.row].text.truncate(column);
        self.lines[self.row].goes_on = false;
    }

    fn obey(&mut self, sequence: &str) {
        let count = sequence[..sequence.len() - 1].parse().unwrap_or(1);
        match sequence.as_bytes().last() {
            Some(b'A') => self.row = self.row.saturating_sub(count).max(self.top),
            Some(b'B') => self.row = (self.row + count).min(self.bottom()),
            Some(b'C') => self.column = (self.column + count).min(self.columns() - 1),
            Some(b'K') => self.erase_to_end_of_row(),
            Some(b'J') => {
                self.erase_to_end_of_row();
                let below = self.row + 1;
                self.lines[below..].fill(Line::default());
            }
            _ if sequence == "?7h" => self.wraps = true,
            _ if sequence == "?7l" => self.wraps = false,
            _ => {}
        }
    }

    /// Breaks all lines anew. The cursor stays on its text.
    fn resize(&mut self, size: Size) {
        let used = self.lines.iter().rposition(|line| !line.text.is_empty()).map_or(0, |last| last + 1);
        let used = used.max(self.row + 1);
        let columns = usize::from(size.columns);
        let (mut lines, mut cursor) = (Vec::new(), (0, 0));
        let mut line: Vec<char> = Vec::new();
        let mut at = None;
        for (number, part) in self.lines[..used].iter().enumerate() {
            if number == self.row {
                at = Some(line.len() + self.column);
            }
            line.extend(&part.text);
            if part.goes_on && number + 1 < used {
                continue;
            }
            if let Some(at) = at.take() {
                cursor = (lines.len() + at / columns, at % columns);
            }
            let count = line.len().div_ceil(columns).max(1);
            let parts = line.chunks(columns).map(<[char]>::to_vec).chain([Vec::new()]).take(count);
            lines.extend(parts.enumerate().map(|(n, text)| Line { text, goes_on: n + 1 < count }));
            line.clear();
        }
        let (rows, before) = (usize::from(size.rows), usize::from(self.size.rows));
        self.top = lines.len().saturating_sub(rows).min(cursor.0);
        if self.deletes_below && rows < before {
            let top = lines.len().saturating_sub(before).min(cursor.0);
            let below = top + before - 1 - cursor.0;
            self.top = top + (before - rows).saturating_sub(below);
        }
        lines.resize_with(lines.len().max(self.top + rows), Line::default);
        lines.truncate(self.top + rows);
        (self.lines, self.row, self.column, self.size) = (lines, cursor.0, cursor.1, size);
    }

    /// Returns the lines that are not empty, each whole.
    fn paper(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        for line in &self.lines {
            lines.last_mut().unwrap().extend(&line.text);
            if !line.goes_on {
                lines.push(String::new());
            }
        }
        lines.retain(|line| !line.trim().is_empty());
        lines
    }
}

impl Write for Reflow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = std::str::from_utf8(bytes).unwrap();
        while let Some(c) = rest.chars().next() {
            if let Some(sequence) = rest.strip_prefix("\x1b[") {
                let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap() + 1;
                self.obey(&sequence[..end]);
                rest = &sequence[end..];
                continue;
            }
            match c {
                '\r' => self.column = 0,
                '\n' => self.line_feed(),
                c => self.put(c),
            }
            rest = &rest[c.len_utf8()..];
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn any_rows(chance: &mut Chance, sign: char, count: u64, numbers: &mut usize) -> Vec<Row> {
    let row = |_| {
        let long = usize::try_from(chance.below(160)).unwrap();
        *numbers += 1;
        Row {
            wrap: Wrap::Terminal,
            ..Row::new(format!("{sign}{:05} {}", *numbers - 1, "x".repeat(long)), Style::PLAIN)
        }
    };
    (0..count).map(row).collect()
}

/// Returns true if the live rows still fit on the screen after they are broken anew; if not, the top of the live
/// area may be in the scrollback before anybody can redraw it.
fn fits(live: &[Row], old: Size, new: Size) -> bool {
    let shown = live.iter().rev().take(old.live_rows());
    let rows: usize = shown.map(|row| row.width().min(old.width()).div_ceil(new.columns.into()).max(1)).sum();
    rows <= usize::from(new.rows)
}

/// Commits rows, changes the live area and the size of the terminal at random, and returns the committed texts and
/// what is printed in the end.
fn play(seed: u64, may_cut: bool) -> (Vec<String>, Vec<String>) {
    let mut chance = Chance(seed);
    let terminal = Reflow::new(any_size(&mut chance), chance.percent(50));
    let mut screen = Inline::new(terminal, Support::default());
    let (mut committed, mut ignored) = (0, 0);
    let mut live = any_rows(&mut chance, '~', 3, &mut ignored);
    let (mut texts, mut read) = (Vec::new(), screen.out().size);
    for _ in 0..40 {
        let mut rows = Vec::new();
        let count = 1 + chance.below(12);
        match chance.below(4) {
            0 => live = any_rows(&mut chance, '~', count, &mut ignored),
            1 => rows = any_rows(&mut chance, '#', count * count / 4, &mut committed),
            _ => {
                let (old, new) = (screen.out().size, any_size(&mut chance));
                if may_cut || fits(&live, old, new) {
                    screen.out_mut().resize(new);
                }
            }
        }
        if chance.percent(50) {
            live.iter_mut().for_each(|row| row.push("yyy", Style::PLAIN));
        }
        texts.extend(rows.iter().map(|row| row.text().trim_end().to_owned()));
        let caret = Some(Place { row: live.len() - 1, column: 3 });
        // Sometimes the terminal has another size already when the frame arrives.
        let size = if chance.percent(30) { read } else { screen.out().size };
        read = screen.out().size;
        screen.frame(&Frame { committed: &rows, live: &live, caret, caret_is_real: false, size }).unwrap();
    }
    screen.leave().unwrap();
    let paper = screen.out().paper().iter().map(|line| line.trim_end().to_owned()).collect();
    (texts, paper)
}

#[test]
fn resizes_of_a_terminal_that_breaks_lines_anew_lose_and_repeat_nothing() {
    for seed in first_seed()..first_seed() + cases(200, 5_000) {
        let (texts, paper) = play(seed, false);
        assert_eq!(paper, texts, "seed {seed}");
    }
}

/// If a resize puts the top of the live area into the scrollback, it stands there for ever; but nothing is lost.
#[test]
fn resizes_that_cut_the_live_area_lose_and_repeat_nothing() {
    let number = |text: &str| text.get(..6).map(str::to_owned);
    for seed in first_seed()..first_seed() + cases(200, 5_000) {
        let (texts, paper) = play(seed, true);
        // What stands behind a rest of the live area continues its line.
        let numbers = |line: &String| -> Vec<String> {
            line.match_indices('#').filter_map(|(at, _)| number(&line[at..])).collect()
        };
        let found: Vec<String> = paper.iter().flat_map(numbers).collect();
        let expected: Vec<String> = texts.iter().filter_map(|text| number(text)).collect();
        assert_eq!(found, expected, "seed {seed}");
    }
}
