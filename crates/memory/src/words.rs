//! Splits texts into words for comparison.

/// Returns the words of a text in lower case. A word is a run of letters and digits.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Returns true if a word is one of `words`, which have spaces between them.
pub(crate) fn is_any(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Normalizes a text for comparison: its words in order, in lower case, without surrounding punctuation and
/// quotes. Characters that may change the meaning stay: a question mark, the sign of a number, and
/// characters within a word or on their own.
pub(crate) fn normalized_words(text: &str) -> String {
    let opening = |c: char| "\"'“„‘‚«»([{".contains(c);
    let closing = |c: char| ".,;:!…\"'”“’‘»«)]}".contains(c);
    let plain = |word: &str| {
        let bare = word.trim_start_matches(opening).trim_end_matches(closing);
        if bare.chars().any(char::is_alphanumeric) { bare.to_lowercase() } else { word.to_owned() }
    };
    text.split_whitespace().map(plain).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: M-11, M-19
    #[test]
    fn said_plainly_is_equal_for_equal_words_in_order() {
        let same = [
            ("The server is in rack 7!", "the  server is\nin rack 7"),
            ("He said: \"Bern, not Basel\".", "he said bern, not basel"),
            ("Use tea (green).", "use tea green"),
        ];
        for (a, b) in same {
            assert_eq!(normalized_words(a), normalized_words(b));
        }
        let others = [
            ("Anna pays Bob", "Bob pays Anna"),
            ("The door is locked", "The door is not locked"),
            ("Use port 8080", "Use port 8081"),
            ("Use port 80.80", "Use port 8080"),
            ("The server is down.", "The server is down?"),
            ("It is -5 degrees", "It is 5 degrees"),
            ("It is .5 litres", "It is 5 litres"),
            ("It costs $5", "It costs €5"),
            ("Write it in C++", "Write it in C"),
            ("a > b", "a < b"),
            ("a b", "ab"),
        ];
        for (a, b) in others {
            assert_ne!(normalized_words(a), normalized_words(b));
        }
    }
}
