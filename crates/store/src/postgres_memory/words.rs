//! Prepares the words of texts and questions for PostgreSQL's text search.
//!
//! PostgreSQL treats a path, an address, a date or a decimal as one word, and its lower case depends on the
//! database's locale. So both texts and questions are reduced to folded words of letters and digits.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::memories::words_of;

/// The maximum total size in bytes of the indexed words of one text. It is somewhat below 1 MiB, which
/// PostgreSQL refuses.
const ROOM: usize = 1_000_000;

/// Returns the text for `to_tsvector`: each distinct word once, as in a question. Words beyond the size
/// limit are left out.
pub(super) fn indexed(content: &str) -> String {
    let folded = folded(content);
    let (mut words, mut seen, mut room) = (String::new(), HashSet::new(), ROOM);
    let all = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in all.filter(|word| seen.insert(*word)) {
        // Some locales take such a character for a number and others for a mark, so PostgreSQL may cut the
        // word there.
        let cuts = word.chars().filter(|c| c.is_numeric() && !c.is_ascii()).count();
        // Each word takes some bytes more. PostgreSQL itself leaves out a word that is too long; later words
        // may still fit.
        if let Some(remaining) = room.checked_sub(word.len() + 8 * (cuts + 1)) {
            room = remaining;
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

/// Returns the words of a question; each is the input of its own `plainto_tsquery`.
pub(super) fn query_words(text: &str) -> Vec<String> {
    words_of(&folded(text))
}

/// Returns a text in lower case and without accents, as SQLite's word index folds it.
fn folded(text: &str) -> String {
    let bare = text.nfd().filter(|c| !matches!(c, '\u{300}'..='\u{36f}'));
    let lower = bare.nfc().flat_map(char::to_lowercase);
    // A capital sigma has one lower case, so the form at the end of a word is replaced by it.
    lower.map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}
