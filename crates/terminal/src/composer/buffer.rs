//! The text that a person types: its caret, its changes, and what was killed.

use std::{collections::VecDeque, ops::Range};

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::{
    long_paste::LongPaste,
    piece::{Piece, STAND_IN},
};
use crate::keymap::{Binding, Motion};

/// The maximum number of changes that can be taken back.
const MOST_CHANGES: usize = 1_000;

/// A change that can be undone: its place, the removed text, the length of the inserted text, and the earlier place of
/// the caret.
#[derive(Clone, Debug)]
struct Change {
    at: usize,
    removed: Piece,
    inserted: usize,
    caret: usize,
}

/// The kind of the last input: letters that are typed one after the other are one change, and consecutive kills add to
/// one killed text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    Typed,
    Killed,
    #[default]
    Other,
}

/// A text with a caret. The caret is a byte offset at the boundary of a grapheme.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    piece: Piece,
    caret: usize,
    changes: VecDeque<Change>,
    /// The undone changes that can still be redone.
    undone: Vec<Change>,
    killed: Piece,
    /// The long pastes. One character of the text stands for each, with the index of the paste. They are never
    /// removed, because the changes and the killed text may refer to them.
    long_pastes: Vec<LongPaste>,
    last: Last,
    /// A number that increases with each change of the text or the caret.
    revision: u64,
}

impl Buffer {
    pub(crate) fn piece(&self) -> &Piece {
        &self.piece
    }

    /// Returns the text that is edited, in which one character stands for a long paste.
    pub(crate) fn text(&self) -> &str {
        self.piece.text()
    }

    /// Returns the text with each long paste written out.
    pub(crate) fn whole(&self) -> String {
        let mut whole = String::new();
        let mut from = 0;
        for (at, paste) in self.long_pastes() {
            whole.push_str(self.text().get(from..at).unwrap_or_default());
            whole.push_str(paste.text());
            from = at + STAND_IN.len_utf8();
        }
        whole.push_str(self.text().get(from..).unwrap_or_default());
        whole
    }

    /// Returns the parts of the whole text that were pasted.
    pub(crate) fn pasted_parts(&self) -> Vec<Range<usize>> {
        let mut pasted: Vec<Range<usize>> = Vec::new();
        let mut long_pastes = self.long_pastes().peekable();
        let mut end = 0;
        for (at, c) in self.text().char_indices() {
            let begin = end;
            let long_paste = long_pastes.next_if(|(place, _)| *place == at);
            end += long_paste.map_or(c.len_utf8(), |(_, paste)| paste.text().len());
            if self.piece.is_typed(at) {
                continue;
            }
            match pasted.last_mut().filter(|last| last.end == begin) {
                Some(last) => last.end = end,
                None => pasted.push(begin..end),
            }
        }
        pasted
    }

    /// Returns the long pastes of the text, each with the offset of the character that stands for it.
    pub(crate) fn long_pastes(&self) -> impl Iterator<Item = (usize, &LongPaste)> {
        self.piece
            .long_pastes()
            .filter_map(|(at, number)| Some((at, self.long_pastes.get(usize::from(number))?)))
    }

    pub(crate) fn caret(&self) -> usize {
        self.caret
    }

    /// Returns the text of the last kill. If it ends with a line end, it is whole lines.
    pub(crate) fn killed(&self) -> &Piece {
        &self.killed
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn type_char(&mut self, c: char) {
        let begins_word = !c.is_whitespace() && self.before().ends_with(char::is_whitespace);
        let goes_on = self.last == Last::Typed && c != '\n' && !begins_word;
        match self.changes.back_mut().filter(|last| goes_on && last.at + last.inserted == self.caret) {
            Some(last) => {
                last.inserted += c.len_utf8();
                self.put(self.caret..self.caret, Piece::typed(c));
            }
            None => self.change(self.caret..self.caret, Piece::typed(c)),
        }
        self.last = Last::Typed;
    }

    /// Inserts a pasted text as it is, except that each line end is `\n`: terminals send `\r` for it.
    pub(crate) fn paste(&mut self, text: &str) {
        self.change(self.caret..self.caret, Piece::pasted(with_line_ends(text)));
    }

    /// Inserts a pasted text like [`paste`](Self::paste), but a long text as one character that stands for it.
    pub(crate) fn paste_as_one(&mut self, text: &str) {
        let paste = LongPaste::of(&with_line_ends(text)).zip(u16::try_from(self.long_pastes.len()).ok());
        let Some((paste, number)) = paste else { return self.paste(text) };
        self.long_pastes.push(paste);
        self.change(self.caret..self.caret, Piece::stand_in(number));
    }

    /// Replaces a part of the text by a typed one. The ends of the part are boundaries of graphemes.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.change(range, Piece::typed(text));
    }

    /// Stores a part of the text like a kill, but does not remove it.
    pub(crate) fn keep(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            (self.killed, self.last) = (self.piece.part(range), Last::Other);
        }
    }

    /// Stores whole lines like [`keep`](Self::keep), with a line end after the last one.
    pub(crate) fn keep_lines(&mut self, range: Range<usize>) {
        (self.killed, self.last) = (self.piece.part(range), Last::Other);
        self.killed.append(Piece::typed('\n'));
    }

    /// Inserts the text of the last kill.
    pub(crate) fn put_killed(&mut self, at: usize) {
        self.change(at..at, self.killed.clone());
    }

    /// Inserts killed lines after the last line.
    pub(crate) fn append_killed_lines(&mut self) {
        let mut lines = Piece::typed('\n');
        lines.append(self.killed.part(0..self.killed.text().len().saturating_sub(1)));
        self.change(self.text().len()..self.text().len(), lines);
    }

    /// Replaces the whole text; this change can be undone.
    pub(crate) fn set(&mut self, piece: Piece) {
        self.change(0..self.text().len(), piece);
    }

    /// Removes the text and the changes; the killed text is kept.
    pub(crate) fn clear(&mut self) {
        let (killed, long_pastes) = (std::mem::take(&mut self.killed), std::mem::take(&mut self.long_pastes));
        *self = Self { killed, long_pastes, revision: self.revision + 1, ..Self::default() };
    }

    /// Moves the caret to this byte offset, or to the next boundary of a grapheme after it.
    pub(crate) fn move_to(&mut self, at: usize) {
        let at = boundary(self.text(), at);
        self.revision += u64::from(at != self.caret);
        (self.caret, self.last) = (at, Last::Other);
    }

    /// Replaces a typed backslash before the caret by a line end. Returns false if there is none, or if it is escaped
    /// by another backslash.
    pub(crate) fn continue_line(&mut self) -> bool {
        let before = self.before();
        let slashes = before.len() - before.trim_end_matches('\\').len();
        let is_typed = self.caret.checked_sub(1).is_some_and(|at| self.piece.is_typed(at));
        let continues = slashes % 2 == 1 && is_typed;
        if continues {
            self.change(self.caret - 1..self.caret, Piece::typed('\n'));
        }
        continues
    }

    /// Performs a binding that changes the text or moves the caret. Ignores all other bindings, and also Up and Down,
    /// which need the rows on the screen.
    pub(crate) fn edit(&mut self, binding: Binding) {
        match binding {
            Binding::NewLine => self.change(self.caret..self.caret, Piece::typed('\n')),
            Binding::Move(motion) => self.move_to(self.target(motion)),
            Binding::Erase(motion) => drop(self.erase(motion)),
            Binding::Kill(motion) => self.kill(motion),
            Binding::Yank => self.put_killed(self.caret),
            Binding::Undo => self.undo(),
            _ => {}
        }
    }

    /// Undoes the last change.
    pub(crate) fn undo(&mut self) {
        self.last = Last::Other;
        if let Some(change) = self.changes.pop_back() {
            let redo = self.revert(change);
            self.undone.push(redo);
        }
    }

    /// Redoes the last undone change.
    pub(crate) fn redo(&mut self) {
        self.last = Last::Other;
        if let Some(change) = self.undone.pop() {
            let undo = self.revert(change);
            self.changes.push_back(undo);
        }
    }

    fn before(&self) -> &str {
        self.text().get(..self.caret).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text().get(self.caret..).unwrap_or_default()
    }

    fn kill(&mut self, motion: Motion) {
        let was_kill = self.last == Last::Killed;
        let is_backward = self.target(motion) < self.caret;
        let mut killed = self.erase(motion);
        if was_kill {
            let mut earlier = std::mem::take(&mut self.killed);
            if !is_backward {
                std::mem::swap(&mut earlier, &mut killed);
            }
            killed.append(earlier);
        }
        if !killed.text().is_empty() {
            self.killed = killed;
        }
        self.last = Last::Killed;
    }

    fn erase(&mut self, motion: Motion) -> Piece {
        let target = match (motion, self.target(motion)) {
            // At the end of a line its line end goes.
            (Motion::LineStart, at) if at == self.caret => self.target(Motion::Left),
            (Motion::LineEnd, at) if at == self.caret => self.target(Motion::Right),
            (_, at) => at,
        };
        let range = target.min(self.caret)..target.max(self.caret);
        let erased = self.text().get(range.clone()).unwrap_or_default().len();
        self.change(range, Piece::default());
        match self.changes.back() {
            Some(change) if erased > 0 => change.removed.clone(),
            _ => Piece::default(),
        }
    }

    /// Undoes a change, and returns the opposite change.
    fn revert(&mut self, change: Change) -> Change {
        let Change { at, removed, inserted, caret } = change;
        let (length, caret_now) = (removed.text().len(), self.caret);
        let removed = self.put(at..at + inserted, removed);
        self.move_to(caret);
        Change { at, removed, inserted: length, caret: caret_now }
    }

    fn change(&mut self, range: Range<usize>, new: Piece) {
        self.last = Last::Other;
        if range.is_empty() && new.text().is_empty() {
            return;
        }
        self.undone.clear();
        let (at, inserted, caret) = (range.start, new.text().len(), self.caret);
        let removed = self.put(range, new);
        if self.changes.len() == MOST_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(Change { at, removed, inserted, caret });
    }

    fn put(&mut self, range: Range<usize>, new: Piece) -> Piece {
        let end = range.start + new.text().len();
        let removed = self.piece.splice(range, new);
        // The new text may join what stands behind it, such as an accent.
        self.caret = boundary(self.text(), end);
        self.revision += 1;
        removed
    }

    fn target(&self, motion: Motion) -> usize {
        let (before, after, caret) = (self.before(), self.after(), self.caret);
        match motion {
            Motion::Left => before.graphemes(true).next_back().map_or(0, |last| caret - last.len()),
            Motion::Right => caret + after.graphemes(true).next().map_or(0, str::len),
            Motion::WordLeft => {
                let mut words = before.split_word_bound_indices().rev();
                words.find(|(_, word)| is_word(word)).map_or(0, |(at, _)| at)
            }
            Motion::WordRight => {
                let mut words = after.split_word_bound_indices();
                let word = words.find(|(_, word)| is_word(word));
                caret + word.map_or(after.len(), |(at, word)| at + word.len())
            }
            Motion::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            Motion::LineEnd => caret + after.find('\n').unwrap_or(after.len()),
            Motion::TextStart => 0,
            Motion::TextEnd => self.text().len(),
            // These need the rows on the screen.
            Motion::Up | Motion::Down => caret,
        }
    }
}

fn is_word(word: &str) -> bool {
    word.contains(|c: char| c.is_alphanumeric() || c == STAND_IN)
}

fn with_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns the first boundary of a grapheme at or after a byte offset.
fn boundary(text: &str, at: usize) -> usize {
    let at = (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        _ => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
    }
}
