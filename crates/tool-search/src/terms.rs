//! Splits texts and names into terms: words in lower case, without stop words and endings.

use rust_stemmers::{Algorithm, Stemmer};

/// Maximum length of a word in bytes. Of a longer word only the beginning is a term.
const LONGEST: usize = 64;

/// Splits texts into terms. A term is a word in lower case, without its ending if the word is English.
pub(crate) struct Terms(Stemmer);

impl Default for Terms {
    fn default() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }
}

impl Terms {
    /// Calls `take` with each term of a text, in order. The parts of a name are terms: `getUserID` has two,
    /// `user` and `id`, because `get` is a stop word.
    pub(crate) fn each(&self, text: &str, mut take: impl FnMut(&str)) {
        let mut word = String::new();
        let mut before = ' ';
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let next = rest.peek().copied().unwrap_or(' ');
            if !c.is_alphanumeric() || starts_word(before, c, next) || stands_alone(before) {
                self.flush(&mut word, &mut take);
            }
            if c.is_alphanumeric() {
                word.extend(c.to_lowercase());
            }
            before = c;
        }
        self.flush(&mut word, &mut take);
    }

    fn flush(&self, word: &mut String, take: &mut impl FnMut(&str)) {
        word.truncate(word.floor_char_boundary(LONGEST));
        match word.as_str() {
            "" => {}
            stop if STOP_WORDS.binary_search(&stop).is_ok() => {}
            english if english.is_ascii() => take(&self.0.stem(english)),
            other => take(other),
        }
        word.clear();
    }
}

/// Returns `true` if a new word starts at `c`: at an upper-case letter after a lower-case one (`getUser`),
/// and at the last of several upper-case letters before a lower-case one (`IDCard`).
fn starts_word(before: char, c: char, next: char) -> bool {
    let after_small = before.is_lowercase() || before.is_numeric();
    stands_alone(c) || (c.is_uppercase() && (after_small || (before.is_uppercase() && next.is_lowercase())))
}

/// Returns `true` for characters of scripts without spaces between words; each is a term of its own.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// English words that do not describe a tool, sorted.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "could", "do", "for", "from", "get", "give",
    "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "need", "of", "on",
    "or", "please", "should", "so", "some", "tell", "that", "the", "their", "them", "there", "these", "this",
    "to", "using", "want", "was", "we", "what", "when", "where", "which", "who", "will", "with", "would",
    "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut terms = Vec::new();
        Terms::default().each(text, |term| terms.push(term.to_owned()));
        assert_eq!(terms.join(" "), expected, "{text}");
    }

    #[test]
    fn each_of_a_name_gives_its_parts() {
        check("github__create_issue", "github creat issu");
        check("getUserIDCard", "user id card");
        check("math.sqrt-2D v2", "math sqrt 2 d v2");
        check("HTTPServer", "http server");
    }

    #[test]
    fn each_of_a_sentence_leaves_out_stop_words_and_endings() {
        check("Please list the files that were changed.", "list file were chang");
        check("天气 예보 Zürich", "天 气 예보 zürich");
        check(" ,;\u{200b}", "");
    }

    #[test]
    fn each_cuts_long_runs_at_a_character() {
        let mut length = 0;
        Terms::default().each(&"ü".repeat(999), |term| length = term.len());
        assert_eq!(length, LONGEST);
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }
}
