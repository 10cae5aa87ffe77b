//! Finds texts in the bytes of files, word by word.
//!
//! Files have a text in many forms: in one line, with other spaces and signs, in JSON, or in a text of JSON inside of
//! JSON. So only the words count, in their order and with their case. A word never matches a part of a longer one.

use std::collections::HashMap;

/// Texts to find, as lists of words.
#[derive(Default)]
pub(crate) struct Texts {
    by_first: HashMap<String, Vec<Vec<String>>>,
    too_short: usize,
}

/// The fewest bytes of a text that is searched for. A shorter text, such as `yes`, would be everywhere.
const LEAST_BYTES: usize = 8;
/// The number of words of a part. A text of twice as many words is found by each of its parts, because prompts have
/// parts of long texts.
const PART: usize = 20;

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
    fn texts_beside_bytes_that_are_not_utf8_are_found() {
        assert!(Texts::of(["My number is 4711"]).are_in(b"\xff\x00My number\x00is 4711\xfe"));
    }
}
