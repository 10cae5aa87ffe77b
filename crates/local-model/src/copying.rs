//! Helps a small model to copy names, paths and numbers from the request, by raising the logits of tokens.
//!
//! Most arguments of a tool call occur in the request word for word, and small models misspell them. While
//! the model writes the value of an argument, two kinds of tokens become slightly more likely: those that
//! continue a text of the request, and the end of the value after a whole word of the request. Ordinary words
//! after the first one are not raised, since the rest of a sentence is seldom an argument. The model still
//! decides: a probability is raised by a fixed factor, and no token is excluded.

use crate::vocabulary::{LONGEST_FOUND, Token, Vocabulary};

/// Raises the probability of tokens with which the answer copies a text of the request.
#[derive(Clone, Debug)]
pub(crate) struct Copying {
    source: Vec<u8>,
    weight: f32,
    place: Place,
    /// The bytes of the value that were written so far.
    value: Vec<u8>,
    escaped: bool,
}

/// The position in the JSON text that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Outside of a string, and not directly after a colon.
    Elsewhere,
    /// After a colon, before the value; `spaced` is true after the space.
    BeforeValue { spaced: bool },
    /// In a string that is a value.
    Value,
    /// In a string that is not a value.
    Key,
}

impl Copying {
    /// Creates a helper that copies from `source`; `weight` is added to the logits.
    pub(crate) fn new(source: &str, weight: f32) -> Self {
        Self {
            source: source.as_bytes().to_vec(),
            weight,
            place: Place::Elsewhere,
            value: Vec::new(),
            escaped: false,
        }
    }

    /// Updates the position by the bytes that were written.
    pub(crate) fn wrote(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let escaped = self.escaped;
            self.escaped = byte == b'\\' && !escaped;
            self.place = match (self.place, byte) {
                (Place::Value | Place::Key, b'"') if !escaped => Place::Elsewhere,
                (Place::Value, byte) => {
                    self.value.push(byte);
                    Place::Value
                }
                (Place::Key, _) => Place::Key,
                (Place::BeforeValue { .. }, b'"') => {
                    self.value.clear();
                    Place::Value
                }
                (Place::Elsewhere, b'"') => Place::Key,
                (_, b':') => Place::BeforeValue { spaced: false },
                (Place::BeforeValue { .. }, b' ') => Place::BeforeValue { spaced: true },
                _ => Place::Elsewhere,
            };
        }
    }

    /// Adds the weight to the logits of tokens that begin, continue or end a copy of a text of the source.
    pub(crate) fn apply(&self, logits: &mut [f32], vocabulary: &Vocabulary) {
        let mut raised = Vec::new();
        match self.place {
            Place::Elsewhere | Place::Key => return,
            Place::BeforeValue { spaced } => {
                let open: &[u8] = if spaced { b"\"" } else { b" \"" };
                for rest in continuations(&self.source, b"") {
                    raised.extend(longest(vocabulary, open, rest));
                }
            }
            Place::Value => {
                let word = self.value.iter().rposition(|b| b.is_ascii_whitespace()).map_or(0, |at| at + 1);
                let word = &self.value[word..];
                // Continues the whole value so far, or only the word that is being written.
                let whole = continuations(&self.source, &self.value);
                let parts = continuations(&self.source, word).filter(|_| !word.is_empty()).map(first_word);
                for rest in whole.chain(parts) {
                    if !goes_on_in_prose(rest) {
                        raised.extend(longest(vocabulary, b"", rest));
                    }
                    if !word.is_empty() && rest.first().is_none_or(|b| b.is_ascii_whitespace()) {
                        raised
                            .extend([b"\"".as_slice(), b"\"}"].iter().filter_map(|end| vocabulary.find(end)));
                    }
                }
            }
        }
        raised.sort_unstable();
        raised.dedup();
        for token in raised {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit += self.weight;
            }
        }
    }
}

/// Returns the text after each occurrence of `begin` at the start of a word of the source, up to the end of
/// the sentence.
fn continuations<'a>(source: &'a [u8], begin: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    (0..source.len()).filter(|start| *start == 0 || opens(source[*start - 1])).filter_map(move |start| {
        let rest = source[start..].strip_prefix(begin)?;
        Some(&rest[..sentence(rest)])
    })
}

/// Returns true if `rest` continues with an ordinary word. Only the first word of a value may be a copied
/// ordinary word: a model that is to write `2 ^ 10` would otherwise copy `2 to the power of 10`.
fn goes_on_in_prose(rest: &[u8]) -> bool {
    let word = rest.trim_ascii_start();
    word.len() < rest.len() && first_word(word).iter().all(u8::is_ascii_lowercase)
}

fn first_word(text: &[u8]) -> &[u8] {
    text.split(|b| b.is_ascii_whitespace()).next().unwrap_or(&[])
}

/// Returns the longest token that consists of `open` and a non-empty prefix of `text`.
fn longest(vocabulary: &Vocabulary, open: &[u8], text: &[u8]) -> Option<Token> {
    (1..=text.len().min(LONGEST_FOUND))
        .rev()
        .find_map(|length| vocabulary.find(&[open, &text[..length]].concat()))
}

/// Returns true if a text to copy can begin after this byte.
fn opens(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`".contains(&byte)
}

/// Returns the position of the end of the sentence: a punctuation mark with white space or nothing after it.
fn sentence(text: &[u8]) -> usize {
    let mark = |at: &usize| {
        b"?.!,;:'\"`".contains(&text[*at]) && text.get(at + 1).is_none_or(|b| b.is_ascii_whitespace())
    };
    (0..text.len()).find(mark).unwrap_or(text.len())
}
