//! What is asked of memories: the question, taken apart once.

use std::{borrow::Cow, cmp::Reverse, collections::HashSet};

use archon_types::Timestamp;

use super::{Analyzer, TimeHint, time_hints, words};

/// A question, and what is known around it. Of one that is longer than 8 KiB the first and the last half of that count,
/// and of more than 256 terms as many from both ends: whoever pastes a log asks before it or behind it.
///
/// ```
/// use archon_memory::rank::{Analyzer, Question};
///
/// let asked = Question::new(&Analyzer::default(), "When did Caroline paint the sunrise?").with_speakers(["Caroline", "Mel"]);
/// assert_eq!(asked.search_text(), "caroline sunrise paint");
/// assert_eq!(asked.meaning(), "When did paint the sunrise?");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// Terms with their weights, each once: 1 for those of the question, less for those that were added.
    pub(super) terms: Vec<(String, f32)>,
    /// The words of the question in lower case, to find the names of speakers among.
    pub(super) words: Vec<String>,
    pub(super) times: Vec<TimeHint>,
    /// What recency is counted from.
    pub(super) now: Option<Timestamp>,
    text: String,
    search: Vec<String>,
    speakers: Vec<String>,
}

/// What a term weighs that is not of the question, but of what the task has at hand.
const ADDED_WEIGHT: f32 = 0.3;

/// Most terms that are added.
const MOST_ADDED: usize = 32;

/// Most bytes of a question: some 2,000 tokens, which is more than most embedders look at.
const MOST_BYTES: usize = 8_192;

/// Most terms of a question itself: each is counted in each candidate.
const MOST_TERMS: usize = 256;

/// Who speaks in every conversation. These are no names, even where a question has them.
const ROLES: [&str; 5] = ["user", "assistant", "system", "tool", "agent"];

impl Question {
    /// A question. The dates that it names count; those that are counted from today, only [`with_now`](Self::with_now).
    pub fn new(analyzer: &Analyzer, text: &str) -> Self {
        let text = &*ends_of(text);
        let mut asked = Self {
            terms: Vec::new(),
            words: Vec::new(),
            times: time_hints(text, None),
            now: None,
            text: text.to_owned(),
            search: Vec::new(),
            speakers: Vec::new(),
        };
        words::words(text, |word| asked.words.push(word.to_owned()));
        asked.add(analyzer, text, 1.0, usize::MAX);
        without_middle(&mut asked.terms, MOST_TERMS);
        without_middle(&mut asked.search, MOST_TERMS);
        // A long word tends to be a rare one.
        asked.search.sort_by_key(|word| Reverse(word.chars().count()));
        asked
    }

    /// The same, asked at this time: memories count the more, the younger they are, and "yesterday" means a day.
    pub fn with_now(mut self, now: Timestamp) -> Self {
        self.times = time_hints(&self.text, Some(now));
        self.now = Some(now);
        self
    }

    /// The same, asked by somebody who has `texts` at hand (the goal, values of the working memory). Their words
    /// are looked for too, with less weight; the first 32 that are new.
    pub fn with_context<'a>(mut self, analyzer: &Analyzer, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let end = self.terms.len() + MOST_ADDED;
        for text in texts {
            self.add(analyzer, &ends_of(text), ADDED_WEIGHT, end);
        }
        self
    }

    /// The same in a memory where these people speak.
    pub fn with_speakers<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        for name in names.into_iter().filter(|name| !ROLES.contains(&name.to_lowercase().as_str())) {
            words::words(name, |part| {
                if !self.speakers.iter().any(|known| known == part) {
                    self.speakers.push(part.to_owned());
                }
            });
        }
        self
    }

    /// What a store is to look for by words: the words that say something, one space between them. Those of the question
    /// stand before those at hand, and the longest of them first, as a store may look for the first of them alone. Empty
    /// if there is none.
    pub fn search_text(&self) -> String {
        self.search.join(" ")
    }

    /// What is to be embedded: the question without the names of those who speak. A name in the question draws its
    /// vector to everything that is said to or about that person; who spoke is known without it.
    pub fn meaning(&self) -> String {
        let kept = |word: &&str| {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            let bare = bare.strip_suffix("'s").or(bare.strip_suffix("\u{2019}s")).unwrap_or(&bare);
            !self.speakers.iter().any(|name| name == bare)
        };
        let left: Vec<&str> = self.text.split_whitespace().filter(kept).collect();
        if left.iter().any(|word| word.chars().any(char::is_alphanumeric)) {
            left.join(" ")
        } else {
            self.text.clone()
        }
    }

    /// Whether the question names this speaker.
    pub(super) fn names(&self, speaker: &str) -> bool {
        let name = speaker.to_lowercase();
        let mut parts = Vec::new();
        words::words(&name, |word| parts.push(word.to_owned()));
        !ROLES.contains(&name.as_str())
            && !parts.is_empty()
            && parts.iter().all(|part| self.words.contains(part))
    }

    fn add(&mut self, analyzer: &Analyzer, text: &str, weight: f32, end: usize) {
        let mut known: HashSet<String> = self.terms.iter().map(|(term, _)| term.clone()).collect();
        let (terms, search) = (&mut self.terms, &mut self.search);
        analyzer.each_with_word(text, |term, word| {
            if terms.len() < end && known.insert(term.to_owned()) {
                terms.push((term.to_owned(), weight));
                search.push(word.to_owned());
            }
        });
    }
}

/// A text, or both ends of one that is too long to be asked as a whole.
pub(crate) fn ends_of(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_BYTES {
        return Cow::Borrowed(text);
    }
    // With a space between, the ends are no longer than what is asked as a whole.
    let half = (MOST_BYTES - 1) / 2;
    let first = &text[..text.floor_char_boundary(half)];
    let last = &text[text.ceil_char_boundary(text.len() - half)..];
    Cow::Owned(format!("{first} {last}"))
}

/// Leaves as many from both ends as may stay.
fn without_middle<T>(all: &mut Vec<T>, most: usize) {
    if all.len() > most {
        all.drain(most / 2..all.len() - most / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Question {
        Question::new(&Analyzer::default(), text)
    }

    // spec: M-12
    #[test]
    fn what_the_task_has_at_hand_is_looked_for_with_less_weight() {
        let asked = ask("Where do the tests run?")
            .with_context(&Analyzer::default(), ["runs the tests of billing", "billing"]);
        let terms: Vec<_> = asked.terms.iter().map(|(term, weight)| (term.as_str(), *weight)).collect();
        assert_eq!(terms, [("test", 1.0), ("run", 1.0), ("bill", 0.3)]);
        assert_eq!(asked.search_text(), "tests run billing");
    }

    #[test]
    fn a_long_context_adds_some_words_only() {
        let many: String = (0..1000).map(|i| format!("word{i} ")).collect();
        assert_eq!(
            ask("tests").with_context(&Analyzer::default(), [many.as_str()]).terms.len(),
            1 + MOST_ADDED
        );
    }

    // spec: M-12, M-16
    #[test]
    fn a_store_looks_for_the_words_that_were_asked_before_those_at_hand() {
        let asked = ask("Where is the red key of the cupboard?")
            .with_context(&Analyzer::default(), ["refurbishment of the greenhouse"]);
        assert_eq!(asked.search_text(), "cupboard red key refurbishment greenhouse");
    }

    // spec: M-12
    #[test]
    fn a_question_of_any_length_has_so_many_terms_only() {
        let long: String = (0..1_000_000).map(|i| format!("w{i}, ")).collect();
        for text in [long.as_str(), &"x".repeat(10 << 20), &"\u{6771}\u{4eac} ".repeat(2 << 20)] {
            let asked = ask(text).with_context(&Analyzer::default(), [long.as_str()]);
            assert!(asked.terms.len() <= 256 + MOST_ADDED, "{}", asked.terms.len());
            assert_eq!(asked.terms.len(), asked.search.len());
            let lengths = [asked.meaning().len(), asked.words.len(), asked.search_text().len()];
            assert!(lengths.iter().all(|length| *length <= 8_192), "{lengths:?}");
        }
        let asked = ask(&long);
        for end in ["w0", "w99", "w999999"] {
            assert!(asked.terms.iter().any(|(term, _)| term == end), "{end}");
        }
    }

    #[test]
    fn names_of_speakers_are_known_and_left_out_of_the_meaning() {
        let asked = ask("What do Melanie's kids and Caroline like?").with_speakers(["Melanie", "Caroline"]);
        assert_eq!(asked.meaning(), "What do kids and like?");
        assert!(asked.names("Caroline") && !asked.names("Mel") && !asked.names(""));
    }

    #[test]
    fn a_role_is_no_name_and_a_name_alone_is_a_question() {
        let asked = ask("user preferences").with_speakers(["user", "assistant"]);
        assert_eq!(asked.meaning(), "user preferences");
        assert!(!asked.names("user"));
        assert_eq!(ask("Caroline?").with_speakers(["Caroline"]).meaning(), "Caroline?");
    }
}
