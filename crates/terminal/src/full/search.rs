//! The search of the full view: the hits of a text in the rows, and the way from one to the next.

use super::document::CellRow;

/// A place in the rows: the index of the row, and the byte offset in its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) row: usize,
    pub(super) byte: usize,
}

/// A hit: the place of its beginning, and the byte offset of its end in the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) spot: Spot,
    pub(super) end: usize,
}

/// A text that is searched for, and its hits.
#[derive(Clone, Debug)]
pub(super) struct Search {
    text: String,
    /// True if the search is case-sensitive, because the text has a capital letter.
    is_exact: bool,
    hits: Vec<Hit>,
    /// The number of rows whose hits never change again.
    settled: usize,
}

impl Search {
    /// Creates a search for a text, which must not be empty. A text without capital letters also finds capital
    /// letters.
    pub(super) fn new(text: String) -> Self {
        let is_exact = text.chars().any(char::is_uppercase);
        Self { text, is_exact, hits: Vec::new(), settled: 0 }
    }

    /// Searches the rows that are new or may have changed since the last call; the first `settled` rows never change
    /// again.
    pub(super) fn update(&mut self, rows: &[CellRow], settled: usize) {
        let known = self.hits.partition_point(|hit| hit.spot.row < self.settled);
        self.hits.truncate(known);
        for (number, row) in rows.iter().enumerate().skip(self.settled) {
            let (text, mut from) = (row.row.text(), 0);
            while let Some((byte, end)) = self.find(&text, from) {
                self.hits.push(Hit { spot: Spot { row: number, byte }, end });
                from = end;
            }
        }
        self.settled = settled;
    }

    /// Forgets all hits, because the rows were made anew.
    pub(super) fn restart(&mut self) {
        self.hits.clear();
        self.settled = 0;
    }

    /// Returns the hits in a row.
    pub(super) fn hits_in(&self, row: usize) -> &[Hit] {
        let begin = self.hits.partition_point(|hit| hit.spot.row < row);
        let end = self.hits.partition_point(|hit| hit.spot.row <= row);
        self.hits.get(begin..end).unwrap_or_default()
    }

    /// Returns the first hit at a place or after it; if there is none, the last of all hits.
    pub(super) fn nearest(&self, from: Spot) -> Option<Spot> {
        let at = self.hits.partition_point(|hit| hit.spot < from);
        self.hits.get(at).or(self.hits.last()).map(|hit| hit.spot)
    }

    /// Returns the first hit after a place; if there is none, the first of all hits.
    pub(super) fn next(&self, from: Spot) -> Option<Spot> {
        let at = self.hits.partition_point(|hit| hit.spot <= from);
        self.hits.get(at).or(self.hits.first()).map(|hit| hit.spot)
    }

    /// Returns the last hit before a place; if there is none, the last of all hits.
    pub(super) fn previous(&self, from: Spot) -> Option<Spot> {
        let at = self.hits.partition_point(|hit| hit.spot < from).checked_sub(1);
        at.and_then(|at| self.hits.get(at)).or(self.hits.last()).map(|hit| hit.spot)
    }

    /// Returns a text for a person: the search text, the number of the hit at this place, and the number of all hits.
    pub(super) fn label(&self, at: Spot) -> String {
        let (text, count) = (&self.text, self.hits.len());
        match self.hits.binary_search_by_key(&at, |hit| hit.spot) {
            Ok(index) => format!("{text:?} {} of {count}", index + 1),
            Err(_) if count == 0 => format!("{text:?} is not found"),
            Err(_) if count == 1 => format!("{text:?} 1 hit"),
            Err(_) => format!("{text:?} {count} hits"),
        }
    }

    /// Returns the byte offsets of the beginning and the end of the next hit in a row, from the offset `from` on.
    fn find(&self, row: &str, from: usize) -> Option<(usize, usize)> {
        let rest = row.get(from..).unwrap_or_default();
        rest.char_indices().find_map(|(at, _)| {
            let length = self.length_at_beginning(rest.get(at..)?)?;
            Some((from + at, from + at + length))
        })
    }

    /// Returns the length of a hit at the beginning of a text, in bytes; `None` if the text does not begin with a hit.
    fn length_at_beginning(&self, text: &str) -> Option<usize> {
        let mut characters = text.chars();
        let mut length = 0;
        for wanted in self.text.chars() {
            let character = characters.next().filter(|c| self.is_same(*c, wanted))?;
            length += character.len_utf8();
        }
        Some(length)
    }

    fn is_same(&self, character: char, wanted: char) -> bool {
        character == wanted || !self.is_exact && character.to_lowercase().eq([wanted])
    }
}
