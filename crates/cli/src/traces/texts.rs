//! Finds texts in the bytes of files, word by word.
//!
//! Files have a text in many forms: in one line, with other spaces and signs, in JSON, or in a text of JSON inside of
//! JSON. So only the words count, in their order and with their case. A word never matches a part of a longer one.

use std::{
    collections::HashMap,
    io::{self, Read},
};

/// Texts to find, as lists of words.
#[derive(Default)]
pub(crate) struct Texts {
    by_first: HashMap<String, Vec<Vec<String>>>,
    too_short: usize,
    /// The bytes of the words of the longest part.
    longest: usize,
}

/// The fewest bytes of a text that is searched for. A shorter text, such as `yes`, would be everywhere.
const LEAST_BYTES: usize = 8;
/// The number of words of a part. A text of twice as many words is found by each of its parts, because prompts have
/// parts of long texts.
const PART: usize = 20;
/// The number of bytes of a file that are read at a time.
const BLOCK: usize = 1 << 20;
/// The most bytes of signs, spaces and escapes between the words of a part for which it is surely found where it lies
/// in two blocks.
const BETWEEN: usize = 16 * 1024;

impl Texts {
    /// Creates the lists of words of these texts.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for text in texts {
            let found = words(text.as_bytes());
            if found.is_empty() || text.trim().len() < LEAST_BYTES {
                all.too_short += 1;
                continue;
            }
            let mut rest = &found[..];
            while rest.len() >= 2 * PART {
                let (part, others) = rest.split_at(PART);
                all.add(part);
                rest = others;
            }
            all.add(rest);
        }
        all
    }

    fn add(&mut self, part: &[&str]) {
        self.longest = self.longest.max(part.iter().map(|word| word.len()).sum());
        let part: Vec<String> = part.iter().map(|word| (*word).to_owned()).collect();
        let parts = self.by_first.entry(part[0].clone()).or_default();
        if !parts.contains(&part) {
            parts.push(part);
        }
    }

    /// Returns the number of texts that are too short to be searched for.
    pub(crate) fn too_short(&self) -> usize {
        self.too_short
    }

    /// Returns true if there is no text to search for.
    pub(crate) fn are_none(&self) -> bool {
        self.by_first.is_empty()
    }

    /// Returns true if the bytes have one of the texts, or a part of a long one.
    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        if self.are_none() {
            return false;
        }
        let words = words(bytes);
        (0..words.len()).any(|at| {
            let parts = self.by_first.get(words[at]);
            parts.is_some_and(|parts| parts.iter().any(|part| begins_with(&words[at..], part)))
        })
    }

    /// Returns true if a file has one of the texts, or a part of a long one. At most a block and what may belong to the
    /// next one are in memory.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn are_in_file(&self, file: impl Read) -> io::Result<bool> {
        self.are_in_blocks(file, BLOCK, BETWEEN)
    }

    fn are_in_blocks(&self, mut file: impl Read, block: usize, between: usize) -> io::Result<bool> {
        let mut bytes = Vec::new();
        loop {
            if file.by_ref().take(block as u64).read_to_end(&mut bytes)? < block {
                return Ok(self.are_in(&bytes));
            }
            // A word that goes on in the next block is searched for there, so that no beginning of a word is found.
            let last = bytes[bytes.len().saturating_sub(between)..].iter().rev().position(is_between);
            if self.are_in(&bytes[..bytes.len() - last.unwrap_or_default()]) {
                return Ok(true);
            }
            // Nor is an end of a word found, which the rest for the next block could begin with.
            let rest = bytes.len().saturating_sub(self.longest + 3 * between);
            let first = bytes[rest..].iter().take(between).position(is_between);
            bytes.drain(..if rest > 0 { rest + first.unwrap_or_default() } else { 0 });
        }
    }
}

/// Returns true for a byte that is surely between words, and in no escape.
fn is_between(byte: &u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"_\\".contains(byte)
}

fn begins_with(words: &[&str], part: &[String]) -> bool {
    words.len() >= part.len() && words.iter().zip(part).all(|(word, of_part)| word == of_part)
}

/// Returns the words of a text. Signs, spaces and escapes of JSON are between words, and so is what is not UTF-8. In a
/// script without spaces each character is a word.
fn words(bytes: &[u8]) -> Vec<&str> {
    let mut words = Vec::new();
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(begin) = rest.find(|c: char| c == '\\' || is_of_word(c)) {
            rest = &rest[begin..];
            if rest.starts_with('\\') {
                rest = behind_escape(rest);
                continue;
            }
            let mut chars = rest.char_indices();
            let first = chars.next().map_or(' ', |(_, first)| first);
            let is_end = |(_, c): &(usize, char)| is_whole(first) || is_whole(*c) || !is_of_word(*c);
            let end = chars.find(is_end).map_or(rest.len(), |(end, _)| end);
            words.push(&rest[..end]);
            rest = &rest[end..];
        }
    }
    words
}

/// Returns the text behind a run of backslashes, and behind the letter of the escape of JSON that they begin.
fn behind_escape(text: &str) -> &str {
    let text = text.trim_start_matches('\\');
    let is_code = |code: &str| code.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.as_bytes().first() {
        Some(b'n' | b'r' | b't' | b'b' | b'f') => &text[1..],
        Some(b'u') if text.get(1..5).is_some_and(is_code) => &text[5..],
        _ => text,
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true for a character of a script that has no spaces between words: Thai, Lao, Burmese, Khmer, Chinese,
/// Japanese.
fn is_whole(c: char) -> bool {
    matches!(u32::from(c), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x2E80..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
        && is_of_word(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, place: &str, expected: bool) {
        assert_eq!(Texts::of([text]).are_in(place.as_bytes()), expected, "{text:?} in {place:?}");
    }

    #[test]
    fn texts_are_found_in_each_form_that_a_file_has_of_them() {
        let text = "My \"passport\" is\n  X 4711 0815\u{7}.";
        let json = serde_json::to_string(text).unwrap();
        let twice = serde_json::to_string(&json).unwrap();
        let line = r#"{"text":"[Memory] My \"passport\" is X 4711 0815."}"#;
        for place in [text, line, &json, &twice, "a My \"passport\" is X 4711 0815. b"] {
            check(text, place, true);
        }
        for place in ["", "My passport", "My \"passport\" is X 4711.", "my passport is x 4711 0815"] {
            check(text, place, false);
        }
        check("C:\\new\\table", r#"{"path":"C:\\new\\table"}"#, true);
        check("我住在伯尔尼", "{\"text\":\"他说:我住在伯尔尼。\"}", true);
        check("我住在伯尔尼", "我住在巴塞尔", false);
    }

    #[test]
    fn texts_at_the_bounds_of_words_only_are_found() {
        check("I use vim", "I use vim.", true);
        check("I use vim", "I use vimeo", false);
        check("I use vim", "Hawaii use vim", false);
        check("hunter22", "the_hunter22", false);
        check("short", "short", false);
        check("!!!!!!!!!", "!!!!!!!!!", false);
        assert_eq!(Texts::of(["short", "!!!!!!!!!", "long enough"]).too_short(), 2);
    }

    #[test]
    fn texts_that_are_long_are_found_by_a_part_of_20_words() {
        let long: Vec<String> = (0..500).map(|n| format!("word{n}")).collect();
        let text = long.join(" ");
        check(&text, &long[130..169].join("\\n"), true);
        check(&text, &long[130..150].join(" "), false);
        check(&long[..39].join(" "), &long[..38].join(" "), false);
        check(&long[..39].join(" "), &long[..39].join(" "), true);
    }

    #[test]
    fn texts_in_a_file_are_found_across_the_bounds_of_blocks() {
        let is_in = |before: usize, filler: &str, text: &str| {
            let bytes = filler.bytes().cycle().take(before).chain(text.bytes()).chain([b'.'; 99]);
            let bytes: Vec<u8> = bytes.collect();
            Texts::of(["I use vim"]).are_in_blocks(&*bytes, 32, 8).unwrap()
        };
        for before in 0..200 {
            for filler in [". ", "é ", "\\n"] {
                assert!(is_in(before, filler, "\\nI use\\nvim"), "{before} {filler}");
                assert!(!is_in(before, filler, " HI use vim"), "{before} {filler}");
                assert!(!is_in(before, filler, " I use vimeo"), "{before} {filler}");
            }
        }
    }

    #[test]
    fn texts_beside_bytes_that_are_not_utf8_are_found() {
        assert!(Texts::of(["My number is 4711"]).are_in(b"\xff\x00My number\x00is 4711\xfe"));
    }
}
