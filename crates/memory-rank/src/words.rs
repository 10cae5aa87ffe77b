//! Turns a text into terms: lower case, Latin letters without accents, no stop words, stemmed.
//!
//! A question and its answer share few words and fewer endings: "When did she paint the sunrise?" should
//! find "I painted that lake at sunrise last year". So words that only form the question (when, did, she)
//! are left out on both sides, and the other words are stemmed with the English Snowball stemmer. Words of
//! other alphabets are not stemmed; each character of a script without spaces is a separate term.

use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use crate::accents::bare;

/// Turns texts into terms: stemmed words in lower case, without stop words. One analyzer can be used for any number of
/// texts.
pub struct Analyzer {
    stemmer: Stemmer,
}

impl Default for Analyzer {
    fn default() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }
}

archon_types::debug_fields!(Analyzer);

impl Analyzer {
    /// Returns the terms of a text, in order, with repetitions.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.each(text, |term| terms.push(term.to_owned()));
        terms
    }

    /// Calls `take` with each term.
    pub fn each(&self, text: &str, mut take: impl FnMut(&str)) {
        self.each_with_word(text, |term, _| take(term));
    }

    /// Calls `take` with each term and its original word in lower case.
    pub fn each_with_word(&self, text: &str, mut take: impl FnMut(&str, &str)) {
        words(text, |word| {
            if STOP_WORDS.binary_search(&word).is_ok() {
                return;
            }
            if word.is_ascii() && word.len() <= LONGEST_STEMMED {
                take(&self.stemmer.stem(word), word);
            } else {
                take(cut(word), word);
            }
        });
    }
}

/// Returns true if a word is one of `words`, which have spaces between them.
pub(crate) fn is_any(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// The maximum length of a word that is stemmed, in bytes; longer runs of letters are not real words.
const LONGEST_STEMMED: usize = 64;

/// The maximum length of a term, in bytes; longer terms are cut to save memory.
const LONGEST_TERM: usize = 256;

fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(LONGEST_TERM)]
}

/// Calls `take` with each word of `text` in lower case, without a final `'s`.
pub(crate) fn words(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if stands_alone(c) {
            flush(&mut word, &mut take);
            word.push(c);
            flush(&mut word, &mut take);
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()).filter_map(bare));
        } else if bare(c).is_some() {
            flush(&mut word, &mut take);
            if matches!(c, '\'' | '\u{2019}') {
                drop_possessive(&mut rest);
            }
        }
    }
    flush(&mut word, &mut take);
}

/// Skips an `s` that ends the word after an apostrophe.
fn drop_possessive(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let mut ahead = rest.clone();
    if ahead.next().is_some_and(|c| c == 's' || c == 'S') && !ahead.next().is_some_and(char::is_alphanumeric)
    {
        rest.next();
    }
}

fn flush(word: &mut String, take: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        take(word);
        word.clear();
    }
}

/// Returns true if the character is of a script without spaces between words: Han, kana, Thai and similar
/// scripts.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && c.is_alphanumeric()
}

/// English stop words, sorted, with the fragments of contractions (`don`, `ll`).
static STOP_WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let words = "a about above after again against all am an and any are as at be because been before being \
         below between both but by can could d did do does doing don down during each few for from \
         further had has have having he her here hers herself him himself his how i if in into is it \
         its itself just ll m many may me might more most much my myself no nor not now o of off on \
         once only or other our ours ourselves out over own re s same shall she should so some such t \
         than that the their theirs them themselves then there these they this those through to too \
         under until up ve very was we were what when where which while who whom why will with would y \
         you your yours yourself yourselves";
    words.split(' ').collect()
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, terms: &[&str]) {
        assert_eq!(Analyzer::default().terms(text), terms, "{text}");
    }

    #[test]
    fn the_words_that_make_a_question_are_left_out_and_endings_do_not_matter() {
        check("When did Caroline go to the support groups?", &["carolin", "go", "support", "group"]);
        check("She's painted Melanie\u{2019}s sunrises", &["paint", "melani", "sunris"]);
        check("I don't, they'll", &[]);
    }

    #[test]
    fn numbers_names_and_other_alphabets_stay() {
        check("port 8080 on srv-12", &["port", "8080", "srv", "12"]);
        check("Привет, Μάρκο!", &["привет", "μάρκο"]);
        check("ZÜRICH, Zu\u{308}rich, zurich", &["zurich", "zurich", "zurich"]);
        check("東京へ行く", &["東", "京", "へ", "行", "く"]);
    }

    #[test]
    fn the_list_is_in_order() {
        assert!(STOP_WORDS.is_sorted_by(|a, b| a < b));
    }

    proptest! {
        #[test]
        fn any_text_has_terms_without_space_or_upper_case(text in any::<String>()) {
            for term in Analyzer::default().terms(&text) {
                prop_assert!(!term.is_empty() && term.len() <= LONGEST_TERM);
                prop_assert!(term.chars().all(char::is_alphanumeric), "{term:?}");
                prop_assert!(!term.bytes().any(|b| b.is_ascii_uppercase()));
            }
        }
    }
}
