//! Words as PostgreSQL is given them, in texts and in questions.
//!
//! Its parser takes a path, an address, a date or a decimal for one word, and lower case is what the database's locale
//! says it is. A question is letters and digits, so texts are too, and what is to be the same is made so here.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::memories::words_of;

/// Bytes that an index of a text may have, with some left: PostgreSQL refuses a mebibyte.
const ROOM: usize = 1_000_000;

/// What a text is found by, for `to_tsvector`: each of its words once, as in a question. Where there is no more room the
/// other words are left out.
pub(super) fn indexed(content: &str) -> String {
    let folded = folded(content);
    let (mut words, mut seen, mut room) = (String::new(), HashSet::new(), ROOM);
    let all = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in all.filter(|word| seen.insert(*word)) {
        // What some locales have for a number and others for a mark is where a word may be cut.
        let cuts = word.chars().filter(|c| c.is_numeric() && !c.is_ascii()).count();
        // Each has some bytes beside it. A word that PostgreSQL finds too long is left out by it; others may still fit.
        if let Some(left) = room.checked_sub(word.len() + 8 * (cuts + 1)) {
            room = left;
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

/// The words of a question, for `plainto_tsquery` each.
pub(super) fn asked(text: &str) -> Vec<String> {
    words_of(&folded(text))
}

/// A text in lower case and without the accents of its letters, as SQLite's index of words has it.
fn folded(text: &str) -> String {
    let bare = text.nfd().filter(|c| !matches!(c, '\u{300}'..='\u{36f}'));
    let lower = bare.nfc().flat_map(char::to_lowercase);
    // A capital sigma does not say that it ends a word.
    lower.map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}
