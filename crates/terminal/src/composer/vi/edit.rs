//! The commands of vi keys that change the draft or move its caret.

use std::ops::Range;

use super::motion::{Motion, first_text, line_end, line_start, right_of};
use crate::composer::buffer::Buffer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    LeaveInsert,
    Move(Motion, Option<usize>),
    Operate(Operator, Target, Option<usize>),
    Insert(InsertAt),
    Put(Side),
    Undo(usize),
    Redo(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
}

/// The text that an operator works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// From the caret to where the motion ends.
    To(Motion),
    /// The line of the caret and, with a count, lines below it.
    Lines,
}

/// The place where text is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InsertAt {
    Caret,
    BehindCaret,
    FirstText,
    LineEnd,
    NewLineBelow,
    NewLineAbove,
}

/// The side of the caret, or of its line, on which killed text is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    Behind,
}

/// The part of the text that an operator works on.
enum Extent {
    Part(Range<usize>),
    /// Whole lines, without the line end of the last one.
    Lines(Range<usize>),
}

impl Edit {
    pub(super) fn apply(self, buffer: &mut Buffer) {
        let (text, caret) = (buffer.text(), buffer.caret());
        match self {
            Self::LeaveInsert => {
                let at = Motion::Left.target(text, caret, None);
                buffer.move_to(at);
            }
            Self::Move(motion, count) => {
                let at = motion.target(text, caret, count);
                buffer.move_to(at);
            }
            Self::Operate(operator, target, count) => {
                let extent = target.extent(operator, text, caret, count);
                operator.apply(buffer, extent);
            }
            Self::Insert(at) => at.open(buffer),
            Self::Put(side) => side.put(buffer),
            Self::Undo(count) => (0..count).for_each(|_| buffer.undo()),
            Self::Redo(count) => (0..count).for_each(|_| buffer.redo()),
        }
    }
}

impl Target {
    fn extent(self, operator: Operator, text: &str, caret: usize, count: Option<usize>) -> Extent {
        let lines = |first: usize, last: usize| Extent::Lines(line_start(text, first)..line_end(text, last));
        match self {
            Self::Lines => {
                let below = text.get(caret..).unwrap_or_default().match_indices('\n');
                let last = below.take(count.unwrap_or(1) - 1).last().map_or(0, |(at, _)| at + 1);
                lines(caret, caret + last)
            }
            Self::To(motion @ (Motion::FirstLine | Motion::LastLine)) => {
                let to = motion.target(text, caret, count);
                lines(caret.min(to), caret.max(to))
            }
            Self::To(motion) => {
                let to = motion.target(text, caret, count);
                let to = match motion {
                    Motion::WordEnd => right_of(text, to),
                    Motion::NextWord => caret + operator.part_of(text.get(caret..to).unwrap_or_default()),
                    _ => to,
                };
                Extent::Part(caret.min(to)..caret.max(to))
            }
        }
    }
}

impl Operator {
    pub(super) fn of(c: char) -> Option<Self> {
        match c {
            'd' => Some(Self::Delete),
            'c' => Some(Self::Change),
            'y' => Some(Self::Yank),
            _ => None,
        }
    }

    /// Returns the number of bytes that the operator takes of `way`, the text from the caret to the next word.
    /// Changing a word keeps the space after the word, and no operator takes the line end after the last word of a
    /// line.
    fn part_of(self, way: &str) -> usize {
        let words = way.trim_end().len();
        if self == Self::Change && words > 0 {
            return words;
        }
        let space = way.get(words..).unwrap_or_default();
        words + space.find('\n').unwrap_or(space.len())
    }

    fn apply(self, buffer: &mut Buffer, extent: Extent) {
        match (self, extent) {
            (Self::Yank, Extent::Part(range)) => {
                buffer.keep(range.clone());
                buffer.move_to(range.start);
            }
            (Self::Yank, Extent::Lines(range)) => buffer.keep_lines(range),
            (_, Extent::Part(range)) => {
                buffer.keep(range.clone());
                buffer.replace(range, "");
            }
            (Self::Change, Extent::Lines(range)) => {
                buffer.keep_lines(range.clone());
                buffer.replace(range, "");
            }
            (Self::Delete, Extent::Lines(Range { start, end })) => {
                buffer.keep_lines(start..end);
                // With the lines, one line end goes.
                let range = match end < buffer.text().len() {
                    true => start..end + 1,
                    false => start.saturating_sub(1)..end,
                };
                buffer.replace(range, "");
                let at = first_text(buffer.text(), buffer.caret());
                buffer.move_to(at);
            }
        }
    }
}

impl InsertAt {
    fn open(self, buffer: &mut Buffer) {
        let (text, caret) = (buffer.text(), buffer.caret());
        let (start, end) = (line_start(text, caret), line_end(text, caret));
        let at = match self {
            Self::Caret => caret,
            Self::BehindCaret => right_of(text, caret).min(end),
            Self::FirstText => first_text(text, caret),
            Self::LineEnd | Self::NewLineBelow => end,
            Self::NewLineAbove => start,
        };
        match self {
            Self::NewLineBelow => buffer.replace(at..at, "\n"),
            Self::NewLineAbove => {
                buffer.replace(at..at, "\n");
                buffer.move_to(at);
            }
            _ => buffer.move_to(at),
        }
    }
}

impl Side {
    /// Inserts the killed text. Whole lines are inserted above or below the line of the caret.
    fn put(self, buffer: &mut Buffer) {
        let (text, caret) = (buffer.text(), buffer.caret());
        let (start, end) = (line_start(text, caret), line_end(text, caret));
        let last = buffer.killed().text().chars().next_back();
        let at = match (last, self) {
            (None, _) => return,
            (Some('\n'), Self::Before) => {
                buffer.put_killed(start);
                first_text(buffer.text(), start)
            }
            (Some('\n'), Self::Behind) if end < text.len() => {
                buffer.put_killed(end + 1);
                first_text(buffer.text(), end + 1)
            }
            (Some('\n'), Self::Behind) => {
                buffer.append_killed_lines();
                first_text(buffer.text(), end + 1)
            }
            (Some(_), side) => {
                let at = if side == Self::Before { caret } else { right_of(text, caret).min(end) };
                buffer.put_killed(at);
                Motion::Left.target(buffer.text(), buffer.caret(), None)
            }
        };
        buffer.move_to(at);
    }
}
