//! Fuzzy search: finds the candidates that have all characters of a pattern in the pattern's order, and the best of
//! them.
//!
//! A match is worth more at the beginning of a word or of a part of a path, in the last part of a path, and where
//! characters follow each other. The best match in a candidate is found with a table that has a row for each character
//! of the pattern. So the time for a candidate grows with its length times the pattern's length. Candidates that lack
//! a character are left out before that.

use std::cmp::Reverse;

/// The worth of a character that directly follows the match of the character before it.
const CONSECUTIVE: i32 = 8;
/// The worth of a character at the beginning, or after a separator of paths.
const PART_START: i32 = 10;
/// The worth of a character at the beginning of a word.
const WORD_START: i32 = 8;
/// The worth of a capital letter after a small one.
const CAPITAL: i32 = 6;
/// The worth of a character in the last part of a path.
const LAST_PART: i32 = 2;
/// The number of characters of a candidate that are looked at.
const LONGEST: usize = 512;
/// The worth of no match.
const NONE: i32 = i32::MIN / 2;

/// A pattern, and buffers that are used again for each candidate.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    chars: Vec<char>,
    /// True if the pattern has capital letters; otherwise small and capital letters are the same.
    is_case_sensitive: bool,
    /// The characters of a candidate, and the score of a match at each of them.
    places: Vec<(char, i32)>,
    /// For each place, the score of the best match that ends there with the present character of the pattern;
    /// `row_before` has the same for the character before it.
    row: Vec<i32>,
    row_before: Vec<i32>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        let is_case_sensitive = chars.iter().any(|c| c.is_uppercase());
        Self { chars, is_case_sensitive, places: Vec::new(), row: Vec::new(), row_before: Vec::new() }
    }

    /// Returns the indexes of the best candidates, at most `most`, the best first. Among equally good candidates, the
    /// shorter one comes first, then the earlier one. For an empty pattern, returns the first candidates.
    pub(crate) fn best<'c>(
        &mut self,
        candidates: impl IntoIterator<Item = &'c str>,
        most: usize,
    ) -> Vec<usize> {
        let numbered = candidates.into_iter().enumerate();
        if self.chars.is_empty() {
            return numbered.take(most).map(|(number, _)| number).collect();
        }
        let mut found: Vec<(Reverse<i32>, usize, usize)> = numbered
            .filter_map(|(number, text)| Some((Reverse(self.worth(text)?), text.len(), number)))
            .collect();
        if most < found.len() {
            found.select_nth_unstable(most);
            found.truncate(most);
        }
        found.sort_unstable();
        found.into_iter().map(|(.., number)| number).collect()
    }

    /// Returns the worth of the best match; `None` if there is no match.
    fn worth(&mut self, text: &str) -> Option<i32> {
        if !self.is_in(text) {
            return None;
        }
        self.look_at(text);
        self.row_before.clear();
        for (number, wanted) in self.chars.iter().enumerate() {
            // The best match of the characters before that ends at least one place apart.
            let mut apart = if number == 0 { 0 } else { NONE };
            self.row.clear();
            for (at, (c, worth)) in self.places.iter().enumerate() {
                let beside = match at.checked_sub(1) {
                    Some(before) => self.row_before.get(before).copied().unwrap_or(NONE),
                    None => NONE,
                };
                let best = apart.max(beside + CONSECUTIVE);
                self.row.push(if c == wanted && best > NONE / 2 { best + worth } else { NONE });
                apart = apart.max(beside);
            }
            std::mem::swap(&mut self.row, &mut self.row_before);
        }
        self.row_before.iter().copied().max().filter(|worth| *worth > NONE / 2)
    }

    /// Returns true if the text has the characters of the pattern in their order.
    fn is_in(&self, text: &str) -> bool {
        let mut there = text.chars().take(LONGEST).map(|c| self.fold_case(c));
        self.chars.iter().all(|wanted| there.any(|c| c == *wanted))
    }

    fn fold_case(&self, c: char) -> char {
        match self.is_case_sensitive {
            true => c,
            false if c.is_ascii() => c.to_ascii_lowercase(),
            false => c.to_lowercase().next().unwrap_or(c),
        }
    }

    fn look_at(&mut self, text: &str) {
        let is_separator = |c: char| matches!(c, '/' | '\\');
        let separators = text.chars().take(LONGEST).enumerate().filter(|(_, c)| is_separator(*c));
        let last_part = separators.last().map_or(0, |(at, _)| at + 1);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        let mut before = None;
        for (at, c) in text.chars().take(LONGEST).enumerate() {
            let start = match before {
                None => PART_START,
                Some(before) if is_separator(before) => PART_START,
                Some(before) if c.is_alphanumeric() && !char::is_alphanumeric(before) => WORD_START,
                Some(before) if c.is_uppercase() && before.is_lowercase() => CAPITAL,
                Some(_) => 0,
            };
            let part = if at >= last_part { LAST_PART } else { 0 };
            places.push((self.fold_case(c), start + part));
            before = Some(c);
        }
        self.places = places;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use archon_testkit::{Chance, cases, first_seed};

    use super::*;

    fn best(pattern: &str, candidates: &[&str]) -> String {
        let found = Pattern::new(pattern).best(candidates.iter().copied(), 10);
        found.iter().map(|number| candidates[*number]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn best_has_beginnings_of_words_before_places_in_words() {
        for (pattern, candidates, expected) in [
            ("fb", &["xfxb", "foo_bar", "afbq"][..], "foo_bar afbq xfxb"),
            ("fb", &["afooBar", "fooBar"], "fooBar afooBar"),
            ("sm", &["src/chasm.rs", "src/main.rs"], "src/main.rs src/chasm.rs"),
            (
                "main",
                &["src/main/lib.rs", "src/main.rs", "lib/domain.rs"],
                "src/main.rs src/main/lib.rs lib/domain.rs",
            ),
            ("read", &["crates/readme/x.md", "docs/README.md"], "docs/README.md crates/readme/x.md"),
            ("co", &["/context", "/compact", "/cost"], "/cost /context /compact"),
            ("abc", &["a-b-c", "xabc", "ab"], "a-b-c xabc"),
        ] {
            assert_eq!(best(pattern, candidates), expected, "{pattern}");
        }
    }

    #[test]
    fn best_of_a_pattern_with_capitals_has_only_the_same_letters() {
        assert_eq!(best("Re", &["readme", "Readme", "README"]), "Readme");
        assert_eq!(best("re", &["README", "read", "x"]), "read README");
        assert_eq!(best("ß", &["STRASSE", "straße"]), "straße");
    }

    #[test]
    fn best_of_equally_good_candidates_are_the_shorter_and_then_the_earlier() {
        assert_eq!(best("a", &["abc", "ab", "aa", "ac"]), "ab aa ac abc");
        assert_eq!(best("", &["b", "a"]), "b a");
        assert_eq!(Pattern::new("a").best(["abc", "ab", "a"], 2), [2, 1]);
        assert_eq!(best("zz", &["z", ""]), "");
    }

    /// A way to find the same that tries everything.
    fn worth_of_all_ways(pattern: &[char], places: &[(char, i32)], before: Option<usize>) -> Option<i32> {
        let Some((wanted, rest)) = pattern.split_first() else { return Some(0) };
        let from = before.map_or(0, |before| before + 1);
        (from..places.len())
            .filter(|at| places[*at].0 == *wanted)
            .filter_map(|at| {
                let beside = if before.is_some_and(|before| before + 1 == at) { CONSECUTIVE } else { 0 };
                Some(worth_of_all_ways(rest, places, Some(at))? + places[at].1 + beside)
            })
            .max()
    }

    #[test]
    fn worth_of_random_texts_is_that_of_the_best_way() {
        const LETTERS: [char; 8] = ['a', 'b', 'B', '/', '_', '.', 'é', ' '];
        for seed in first_seed()..first_seed() + cases(500, 20_000) {
            let mut chance = Chance(seed);
            let mut text = |most| -> String {
                let letters = (0..chance.below(most)).map(|_| chance.below(8));
                letters.map(|n| LETTERS[usize::try_from(n).unwrap()]).collect()
            };
            let (wanted, candidate) = (text(4), text(14));
            let mut pattern = Pattern::new(&wanted);
            pattern.look_at(&candidate);
            let expected = worth_of_all_ways(&pattern.chars, &pattern.places, None);
            let expected = expected.filter(|_| !pattern.chars.is_empty());
            let worth = pattern.worth(&candidate).filter(|_| !pattern.chars.is_empty());
            assert_eq!(worth, expected, "seed {seed}: {wanted:?} in {candidate:?}");
        }
    }

    #[test]
    fn best_of_fifty_thousand_paths_is_found_in_one_pass() {
        let paths: Vec<String> =
            (0..50_000).map(|n| format!("crates/part{}/src/module_{n}/file.rs", n % 97)).collect();
        let since = Instant::now();
        let found = Pattern::new("mod7fi").best(paths.iter().map(String::as_str), 100);
        assert_eq!(paths[found[0]], "crates/part7/src/module_7/file.rs");
        // A search that compared candidates with each other would take minutes.
        assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    }
}
