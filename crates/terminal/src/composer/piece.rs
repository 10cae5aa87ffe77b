//! A text with the origin of each byte: typed, pasted, or part of the one character that stands for a long paste.

use std::ops::Range;

/// The character that stands for a long paste in the text of a draft.
pub(crate) const STAND_IN: char = '\u{fffc}';

/// The origin of a byte of the text. A pasted `/` begins no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Typed,
    Pasted,
    /// A byte of [`STAND_IN`], which stands for the long paste with this index.
    LongPaste(u16),
}

/// A text with a mark for each of its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    text: String,
    marks: Vec<Mark>,
}

impl Piece {
    pub(crate) fn typed(text: impl Into<String>) -> Self {
        Self::new(text.into(), Mark::Typed)
    }

    pub(crate) fn pasted(text: impl Into<String>) -> Self {
        Self::new(text.into(), Mark::Pasted)
    }

    /// Creates a text in which these byte ranges were pasted and the rest was typed.
    pub(crate) fn of(text: String, pasted: &[Range<usize>]) -> Self {
        let mut piece = Self::typed(text);
        for part in pasted {
            if let Some(marks) = piece.marks.get_mut(part.clone()) {
                marks.fill(Mark::Pasted);
            }
        }
        piece
    }

    /// Creates the one character that stands for the long paste with this index.
    pub(crate) fn stand_in(number: u16) -> Self {
        Self::new(STAND_IN.to_string(), Mark::LongPaste(number))
    }

    fn new(text: String, mark: Mark) -> Self {
        Self { marks: vec![mark; text.len()], text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the first character was typed.
    pub(crate) fn begins_typed(&self) -> bool {
        self.is_typed(0)
    }

    /// Returns true if the byte at this offset was typed.
    pub(crate) fn is_typed(&self, at: usize) -> bool {
        self.marks.get(at) == Some(&Mark::Typed)
    }

    /// Returns the offset and the index of each long paste.
    pub(crate) fn long_pastes(&self) -> impl Iterator<Item = (usize, u16)> {
        let places = self.text.match_indices(STAND_IN);
        places.filter_map(|(at, _)| match self.marks.get(at) {
            Some(Mark::LongPaste(number)) => Some((at, *number)),
            _ => None,
        })
    }

    /// Returns a copy of a part.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let text = self.text.get(range.clone()).unwrap_or_default().to_owned();
        Self { text, marks: self.marks.get(range).unwrap_or_default().to_vec() }
    }

    /// Replaces a range, and returns what was there.
    pub(crate) fn splice(&mut self, range: Range<usize>, new: Self) -> Self {
        let text = self.text.get(range.clone()).unwrap_or_default().to_owned();
        self.text.replace_range(range.clone(), &new.text);
        let marks = self.marks.splice(range, new.marks).collect();
        Self { text, marks }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.marks.extend(other.marks);
    }
}
