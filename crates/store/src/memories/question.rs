//! Extracts the words to search for from a question.

use std::{cmp::Reverse, collections::HashSet};

/// The maximum number of words of a question that are searched for: the first ones, since callers put the
/// most important words first.
const WORDS: usize = 24;

/// Returns the words of a question, each once, in lower case and without stop words, longest first. They
/// have only letters, digits and combining marks, so that quoted words contain no query syntax.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && !is_mark(c))
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(str::to_lowercase)
        .collect();
    if words.iter().any(|word| !STOP_WORDS.contains(&word.as_str())) {
        words.retain(|word| !STOP_WORDS.contains(&word.as_str()));
    }
    let mut met = HashSet::new();
    words.retain(|word| met.len() < WORDS && met.insert(word.clone()));
    words.sort_by_cached_key(|word| (Reverse(word.chars().count()), word.clone()));
    words
}

/// Returns true for a combining mark, such as the dots of a decomposed `ü`.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Frequent English words, and parts of words with apostrophes, that carry no information about a text.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "she", "so",
    "some", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "up",
    "us", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your", "s", "t", "d", "m", "ll", "re", "ve",
];

#[cfg(test)]
mod tests {
    use super::*;

    // spec: M-16
    #[test]
    fn search_words_are_the_first_distinct_ones() {
        let many: String = (10..50).map(|n| format!("red Red key the word{n} ")).collect();
        let words = words_of(&many);
        assert_eq!((words.len(), words[0].as_str(), words[WORDS - 3].as_str()), (WORDS, "word10", "word31"));
        assert_eq!(words[WORDS - 2..], ["key", "red"]);
    }

    #[test]
    fn a_question_is_words_only() {
        let table = [
            ("What is NEAR(tyres*)?", "tyres near"),
            ("where is it", "where is it"),
            ("\"';--", ""),
            ("Anna's and the dogs'", "anna dogs"),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(words_of(text).join(" "), expected, "{text}");
        }
    }
}
