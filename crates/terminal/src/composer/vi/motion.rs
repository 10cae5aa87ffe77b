//! The motions of vi keys, as functions of a text and a byte offset at the boundary of a grapheme.

use unicode_segmentation::UnicodeSegmentation;

/// A movement of the caret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    NextWord,
    WordStart,
    WordEnd,
    LineStart,
    FirstText,
    LineEnd,
    FirstLine,
    LastLine,
}

/// The kind of a character. A word consists of characters of one kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Letter,
    Sign,
}

impl Motion {
    /// Returns the motion of a key.
    pub(super) fn of(c: char) -> Option<Self> {
        Some(match c {
            'h' => Self::Left,
            'l' => Self::Right,
            'w' => Self::NextWord,
            'b' => Self::WordStart,
            'e' => Self::WordEnd,
            '0' => Self::LineStart,
            '^' => Self::FirstText,
            '$' => Self::LineEnd,
            'G' => Self::LastLine,
            _ => return None,
        })
    }

    /// Returns where the motion from this place ends. The count of a motion to a line is the number of the line.
    pub(super) fn target(self, text: &str, from: usize, count: Option<usize>) -> usize {
        match self {
            Self::FirstLine => line(text, count.unwrap_or(1)),
            Self::LastLine => line(text, count.unwrap_or(usize::MAX)),
            _ => (0..count.unwrap_or(1)).fold(from, |at, _| self.step(text, at)),
        }
    }

    fn step(self, text: &str, at: usize) -> usize {
        match self {
            Self::Left => left_of(text, at).max(line_start(text, at)),
            Self::Right => right_of(text, at).min(line_end(text, at)),
            Self::NextWord => {
                let behind = at + first_run(after(text, at));
                behind + run(after(text, behind), Kind::Space)
            }
            Self::WordStart => {
                let end = at - last_run_of(before(text, at), Kind::Space);
                let last = before(text, end).graphemes(true).next_back();
                end - last.map_or(0, |last| last_run_of(before(text, end), Kind::of(last)))
            }
            Self::WordEnd => {
                let next = right_of(text, at);
                let word = next + run(after(text, next), Kind::Space);
                left_of(text, word + first_run(after(text, word))).max(at)
            }
            Self::LineStart => line_start(text, at),
            Self::FirstText => first_text(text, at),
            Self::LineEnd => line_end(text, at),
            Self::FirstLine | Self::LastLine => at,
        }
    }
}

impl Kind {
    fn of(grapheme: &str) -> Self {
        match grapheme.chars().next() {
            Some(c) if c.is_whitespace() => Self::Space,
            Some(c) if c.is_alphanumeric() || c == '_' => Self::Letter,
            _ => Self::Sign,
        }
    }
}

/// Returns the place of the caret in the normal mode: on a character, if the line has one.
pub(super) fn on_character(text: &str, at: usize) -> usize {
    if at == line_end(text, at) { Motion::Left.step(text, at) } else { at }
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    before(text, at).rfind('\n').map_or(0, |end| end + 1)
}

/// Returns the place before the line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let rest = after(text, at);
    at + rest.find('\n').unwrap_or(rest.len())
}

/// Returns the place of the first character of the line that is not a space; the line end if there is none.
pub(super) fn first_text(text: &str, at: usize) -> usize {
    let start = line_start(text, at);
    let line = text.get(start..line_end(text, at)).unwrap_or_default();
    start + run(line, Kind::Space)
}

pub(super) fn right_of(text: &str, at: usize) -> usize {
    at + after(text, at).graphemes(true).next().map_or(0, str::len)
}

fn left_of(text: &str, at: usize) -> usize {
    at - before(text, at).graphemes(true).next_back().map_or(0, str::len)
}

/// Returns the place of the first character that is not a space in line `number`, counted from 1, or in the last line
/// if there are fewer lines.
fn line(text: &str, number: usize) -> usize {
    let ends = text.match_indices('\n').take(number.saturating_sub(1));
    first_text(text, ends.last().map_or(0, |(at, _)| at + 1))
}

fn before(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or_default()
}

fn after(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// Returns the number of bytes at the beginning of a text whose characters are of this kind.
fn run(text: &str, kind: Kind) -> usize {
    text.graphemes(true).take_while(|grapheme| Kind::of(grapheme) == kind).map(str::len).sum()
}

/// Returns the number of bytes at the beginning of a text whose characters are of the same kind as the first one.
fn first_run(text: &str) -> usize {
    text.graphemes(true).next().map_or(0, |first| run(text, Kind::of(first)))
}

/// Returns the number of bytes at the end of a text whose characters are of this kind.
fn last_run_of(text: &str, kind: Kind) -> usize {
    text.graphemes(true).rev().take_while(|grapheme| Kind::of(grapheme) == kind).map(str::len).sum()
}
