//! Scores the share of a question's words that a text has: BM25 over the candidates. For a question with the
//! terms `t` of weight `w(t)`, and a text with `f` occurrences of a term and a length of `l` terms:
//!
//! ```text
//! coverage = Σ w(t) · idf(t) · f / (f + K1 · (1 − B + B · l / average l))  /  Σ w(t) · idf(t)
//! idf(t)   = ln(1 + (N − n(t) + ½) / (n(t) + ½))              N texts (at least 100), n(t) of them with the term
//! ```
//!
//! The second sum includes terms that occur in no candidate. So coverage is between 0 and 1, can be compared
//! between questions of any length and between stores, and is low for a question whose words nobody said.
//! (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.)

use std::collections::HashMap;

use crate::Analyzer;

/// The effect of repeated words.
const K1: f32 = 1.0;

/// The effect of length, as is usual: an assistant's long answers contain any word.
const B: f32 = 0.75;

/// The number of texts that is assumed if there are fewer: in a few texts no word would be rare.
const LEAST_TEXTS: f32 = 100.0;

/// The number of texts that a word counts as having if none has it: often another word was said for it, so it weighs
/// less than the rarest.
const ABSENT: f32 = 3.0;

/// The number of occurrences of a question's terms in each text.
pub(super) struct Counts<'a> {
    asked: &'a [(String, f32)],
    numbers: HashMap<&'a str, usize>,
    /// For each text, the counts of the question's terms and the total number of its terms.
    texts: Vec<(Vec<f32>, f32)>,
}

impl<'a> Counts<'a> {
    /// Creates counts, without texts yet, of a question's terms. `asked` has the terms with their weights, and
    /// must contain each term only once.
    pub(super) fn new(asked: &'a [(String, f32)]) -> Self {
        let numbers = asked.iter().enumerate().map(|(number, (term, _))| (term.as_str(), number)).collect();
        Self { asked, numbers, texts: Vec::new() }
    }

    /// Adds a text that consists of these parts.
    pub(super) fn add(&mut self, analyzer: &Analyzer, parts: &[&str]) {
        let (mut counts, mut length) = (vec![0.0; self.asked.len()], 0.0);
        for part in parts {
            analyzer.each(part, |term| {
                length += 1.0;
                if let Some(number) = self.numbers.get(term) {
                    counts[*number] += 1.0;
                }
            });
        }
        self.texts.push((counts, length));
    }

    /// Returns the coverage of each text, and the share of the question's words that are in it, however long it is.
    pub(super) fn coverage(&self) -> (Vec<f32>, Vec<f32>) {
        let count = self.texts.len() as f32;
        let average = (self.texts.iter().map(|(_, length)| length).sum::<f32>() / count).max(1.0);
        let all = count.max(LEAST_TEXTS);
        let (mut covered, mut shares) = (vec![0.0; self.texts.len()], vec![0.0; self.texts.len()]);
        let mut attainable = 0.0;
        for (number, (_, weight)) in self.asked.iter().enumerate() {
            let with = self.texts.iter().filter(|(counts, _)| counts[number] > 0.0).count();
            let rarity = weight * idf(all, if with == 0 { ABSENT } else { with as f32 });
            attainable += rarity;
            for (at, (counts, length)) in self.texts.iter().enumerate() {
                covered[at] += rarity * saturated(counts[number], length / average);
                shares[at] += if counts[number] > 0.0 { rarity } else { 0.0 };
            }
        }
        if attainable > 0.0 {
            covered.iter_mut().chain(&mut shares).for_each(|sum| *sum /= attainable);
        }
        (covered, shares)
    }
}

/// Returns the saturated frequency of a term in a text, which is below 1; `length` is in units of the average
/// length.
fn saturated(frequency: f32, length: f32) -> f32 {
    frequency / (frequency + K1 * (1.0 - B + B * length))
}

/// Returns the inverse document frequency of a term that occurs in `with` of `all` texts.
fn idf(all: f32, with: f32) -> f32 {
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query_words(words: &str) -> Vec<(String, f32)> {
        let mut terms = Analyzer::default().terms(words);
        terms.sort();
        terms.dedup();
        terms.into_iter().map(|term| (term, 1.0)).collect()
    }

    fn coverage_of(question: &str, texts: &[&str]) -> Vec<f32> {
        let asked = query_words(question);
        let mut counts = Counts::new(&asked);
        texts.iter().for_each(|text| counts.add(&Analyzer::default(), &[text]));
        counts.coverage().0
    }

    #[test]
    fn a_rare_word_weighs_more_than_a_common_one() {
        let covered =
            coverage_of("dogs or owls?", &["a dog, a cat", "a dog, an owl", "a dog, an elk", "an elk"]);
        assert!(covered[1] > 0.45 && covered[0] > 0.0 && covered[0] < 0.5 * covered[1], "{covered:?}");
        let covered = coverage_of("dogs or owls?", &["dog cat", "owl cat", "dog elk"]);
        assert!(covered[1] > 1.1 * covered[0], "{covered:?}");
        assert_eq!(covered[0], covered[2]);
    }

    #[test]
    fn coverage_is_low_if_words_are_absent() {
        let texts = ["dog cat", "owl"];
        let (half, whole) = (coverage_of("dog unheard", &texts), coverage_of("dog", &texts));
        assert!(half[0] > 0.0 && half[0] < 0.6 * whole[0], "{half:?} {whole:?}");
        assert_eq!(coverage_of("unheard", &texts), [0.0, 0.0]);
        assert!(coverage_of("dog", &[]).is_empty());
    }

    #[test]
    fn coverage_of_a_long_text_is_low() {
        let long = format!("dog {}", "word ".repeat(200));
        let covered = coverage_of("dog", &[&long, "a dog barks", "an owl", "an elk"]);
        assert!(covered[0] < 0.5 * covered[1], "{covered:?}");
        let asked = query_words("dog");
        let mut counts = Counts::new(&asked);
        [long.as_str(), "a dog barks"].iter().for_each(|text| counts.add(&Analyzer::default(), &[text]));
        assert_eq!(counts.coverage().1, [1.0, 1.0]);
    }

    proptest! {
        #[test]
        fn coverage_is_a_share(texts in prop::collection::vec("[b-d]( [b-d]){0,9}", 0..20), question in "[b-f]( [b-f]){0,5}") {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            for covered in coverage_of(&question, &texts) {
                prop_assert!((0.0..1.0).contains(&covered), "{covered}");
            }
        }
    }
}
