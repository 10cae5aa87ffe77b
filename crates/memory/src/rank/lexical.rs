//! Scores the share of a question's words that a text has: BM25 over the candidates. For a question with the
//! terms `t` of weight `w(t)`, and a text with `f` occurrences of a term and a length of `l` terms:
//!
//! ```text
//! coverage = Σ w(t) · idf(t) · f / (f + K1 · (1 − B + B · l / average l))  /  Σ w(t) · idf(t)
//! idf(t)   = ln(1 + (N − n(t) + ½) / (n(t) + ½))              N texts, n(t) of them with the term
//! ```
//!
//! Both sums include only terms that occur in some candidate. So coverage is between 0 and 1 and can be
//! compared between questions of any length and between stores. A session is scored as one long text.
//! (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.)

use std::collections::HashMap;

use super::Analyzer;

/// BM25 parameters of single memories: `k1` limits the effect of repeated words, `b` the effect of length.
/// Memories are short, and a longer one usually contains more information.
const OF_TEXTS: Saturation = Saturation { k1: 1.0, b: 0.4 };

/// BM25 parameters of sessions, which are long.
const OF_SESSIONS: Saturation = Saturation { k1: 1.2, b: 0.75 };

#[derive(Clone, Copy)]
struct Saturation {
    k1: f32,
    b: f32,
}

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

    /// Returns the coverage of each text.
    pub(super) fn coverage(&self) -> Vec<f32> {
        coverage(self.asked, &self.texts, OF_TEXTS)
    }

    /// Returns the coverage of each session. `session` has the session number of each text, less than
    /// `sessions`.
    pub(super) fn coverage_of_sessions(&self, session: &[usize], sessions: usize) -> Vec<f32> {
        let mut sums = vec![(vec![0.0; self.asked.len()], 0.0); sessions];
        for ((counts, length), session) in self.texts.iter().zip(session) {
            let sum = &mut sums[*session];
            sum.0.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            sum.1 += length;
        }
        coverage(self.asked, &sums, OF_SESSIONS)
    }
}

fn coverage(asked: &[(String, f32)], texts: &[(Vec<f32>, f32)], saturation: Saturation) -> Vec<f32> {
    let average = (texts.iter().map(|(_, length)| length).sum::<f32>() / texts.len() as f32).max(1.0);
    let mut covered = vec![0.0; texts.len()];
    let mut attainable = 0.0;
    for (number, (_, weight)) in asked.iter().enumerate() {
        let with = texts.iter().filter(|(counts, _)| counts[number] > 0.0).count();
        if with == 0 {
            continue;
        }
        let rarity = weight * idf(texts.len() as f32, with as f32);
        attainable += rarity;
        for (covered, (counts, length)) in covered.iter_mut().zip(texts) {
            *covered += rarity * saturation.of(counts[number], length / average);
        }
    }
    if attainable > 0.0 {
        covered.iter_mut().for_each(|covered| *covered /= attainable);
    }
    covered
}

impl Saturation {
    /// Returns the saturated frequency of a term in a text, which is below 1; `length` is in units of the
    /// average length.
    fn of(self, frequency: f32, length: f32) -> f32 {
        frequency / (frequency + self.k1 * (1.0 - self.b + self.b * length))
    }
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
        counts.coverage()
    }

    #[test]
    fn a_rare_word_weighs_more_than_a_common_one() {
        let covered =
            coverage_of("dogs or owls?", &["a dog, a cat", "a dog, an owl", "a dog, an elk", "an elk"]);
        assert!(covered[1] > 0.45 && covered[0] > 0.0 && covered[0] < 0.5 * covered[1], "{covered:?}");
        let covered = coverage_of("dogs or owls?", &["dog cat", "owl cat", "dog elk"]);
        assert!(covered[1] > 1.5 * covered[0], "{covered:?}");
        assert_eq!(covered[0], covered[2]);
    }

    #[test]
    fn coverage_ignores_words_that_no_text_has() {
        let texts = ["dog cat", "owl"];
        assert_eq!(coverage_of("dog unheard", &texts), coverage_of("dog", &texts));
        assert_eq!(coverage_of("unheard", &texts), [0.0, 0.0]);
        assert!(coverage_of("dog", &[]).is_empty());
    }

    #[test]
    fn a_session_is_one_long_text() {
        let asked = query_words("dog owl elk");
        let mut counts = Counts::new(&asked);
        for text in ["dog", "owl", "elk", "elk"] {
            counts.add(&Analyzer::default(), &[text]);
        }
        let sessions = counts.coverage_of_sessions(&[0, 0, 1, 1], 2);
        assert!(sessions[0] > sessions[1] && sessions[1] > 0.0, "{sessions:?}");
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
