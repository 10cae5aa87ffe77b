//! A parsed question for ranking memories.

use std::{borrow::Cow, cmp::Reverse, collections::HashSet};

use archon_types::Timestamp;

use crate::{Analyzer, TimeHint, time_hints, words, words::is_any};

/// A question with its context. Of a text longer than 8 KiB only the first and the last 4 KiB are used, and
/// of more than 256 terms the first and the last 128: a pasted log usually has the question before or after
/// it.
///
/// ```
/// use archon_memory_rank::{Analyzer, RankQuestion};
///
/// let asked = RankQuestion::new(&Analyzer::default(), "When did Caroline paint the sunrise?").with_speakers(["Caroline", "Mel"]);
/// assert_eq!(asked.search_text(), "caroline sunrise paint");
/// assert_eq!(asked.meaning(), "When did paint the sunrise?");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RankQuestion {
    /// The terms with their weights, each once: 1 for terms of the question, less for terms of the context.
    pub(super) terms: Vec<(String, f32)>,
    /// The words of the question in lower case, for finding the names of speakers.
    pub(super) words: Vec<String>,
    pub(super) times: Vec<TimeHint>,
    /// 1 if the question asks for the latest, -1 if it asks for the first, otherwise 0.
    pub(super) toward: f32,
    /// The time of asking, for the recency of memories.
    pub(super) now: Option<Timestamp>,
    text: String,
    search: Vec<String>,
    speakers: Vec<String>,
}

/// The weight of terms from the context.
const ADDED_WEIGHT: f32 = 0.3;

/// The maximum number of terms from the context.
const MOST_ADDED: usize = 32;

/// The maximum number of bytes of a question: about 2,000 tokens, more than most embedders read.
const MOST_BYTES: usize = 8_192;

/// The maximum number of terms of the question itself, since each term is counted in each candidate.
const MOST_TERMS: usize = 256;

/// The roles in a conversation. They are not names of speakers, even if a question contains them.
const ROLES: [&str; 5] = ["user", "assistant", "system", "tool", "agent"];

/// Returns true if a speaker is a person's name and not a role.
pub(crate) fn is_name(speaker: &str) -> bool {
    !ROLES.iter().any(|role| role.eq_ignore_ascii_case(speaker))
}

impl RankQuestion {
    /// Creates a question. Dates in the text are used; relative dates only after
    /// [`with_now`](Self::with_now).
    pub fn new(analyzer: &Analyzer, text: &str) -> Self {
        let text = &*ends_of(text);
        let times = time_hints(text, None);
        let mut asked = Self { times, text: text.to_owned(), ..Self::default() };
        words::words(text, |word| asked.words.push(word.to_owned()));
        asked.toward = toward(&asked.words);
        asked.add(analyzer, text, 1.0, usize::MAX);
        without_middle(&mut asked.terms, MOST_TERMS);
        without_middle(&mut asked.search, MOST_TERMS);
        // Longer words tend to be rarer.
        asked.search.sort_by_key(|word| Reverse(word.chars().count()));
        asked
    }

    /// Sets the time of asking: recent memories then get a higher score, and words such as "yesterday" are
    /// resolved.
    ///
    /// ```
    /// use archon_memory_rank::Ranker;
    /// use archon_types::Timestamp;
    /// let now = Timestamp::from_millis(1_700_000_000_000);
    /// let question = Ranker::default().question("Who called yesterday?").with_now(now);
    /// ```
    pub fn with_now(mut self, now: Timestamp) -> Self {
        self.times = time_hints(&self.text, Some(now));
        self.now = Some(now);
        self
    }

    /// Adds at most 32 new terms of `texts` with a lower weight, for instance of the goal or of values of
    /// the working memory.
    ///
    /// ```
    /// use archon_memory_rank::Ranker;
    /// let ranker = Ranker::default();
    /// let question = ranker.question("Which one?").with_context(&ranker.analyzer, ["a trip to Paris"]);
    /// ```
    pub fn with_context<'a>(mut self, analyzer: &Analyzer, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let end = self.terms.len() + MOST_ADDED;
        for text in texts {
            self.add(analyzer, &ends_of(text), ADDED_WEIGHT, end);
        }
        self
    }

    /// Sets the names of the people who speak in this memory.
    ///
    /// ```
    /// use archon_memory_rank::Ranker;
    /// let question = Ranker::default().question("Where does Anna live?").with_speakers(["Anna", "Bob"]);
    /// ```
    pub fn with_speakers<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        for name in names.into_iter().filter(|name| is_name(name)) {
            words::words(name, |part| {
                if !self.speakers.iter().any(|known| known == part) {
                    self.speakers.push(part.to_owned());
                }
            });
        }
        self
    }

    /// Returns the words for a store's text search, with single spaces; empty if there are none. Words of
    /// the question come before words of the context, and longer words first, because a store may search for
    /// the first words only.
    pub fn search_text(&self) -> String {
        self.search.join(" ")
    }

    /// Returns the text to embed: the question without the names of speakers. A name would move the vector
    /// towards everything said to or about that person, and the speaker is already scored separately.
    pub fn meaning(&self) -> String {
        let is_no_speaker = |word: &&str| {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            let bare = bare.strip_suffix("'s").or(bare.strip_suffix("\u{2019}s")).unwrap_or(&bare);
            !self.speakers.iter().any(|name| name == bare)
        };
        let text = self.text.split_whitespace().filter(is_no_speaker).collect::<Vec<_>>().join(" ");
        if text.contains(char::is_alphanumeric) { text } else { self.text.clone() }
    }

    /// Returns true if the question contains the name of this speaker.
    pub(super) fn names(&self, speaker: &str) -> bool {
        let mut parts = Vec::new();
        words::words(speaker, |word| parts.push(word.to_owned()));
        is_name(speaker) && !parts.is_empty() && parts.iter().all(|part| self.words.contains(part))
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

/// Returns 1 for a question for the latest, -1 for one for the first, otherwise 0.
fn toward(words: &[String]) -> f32 {
    let has = |list: &str| f32::from(u8::from(words.iter().any(|word| is_any(word, list))));
    has("latest newest recent recently current currently now") - has("first earliest originally initially")
}

/// Returns true if a text only asks, in English: each sentence is a question that begins with a word such as `what`
/// or `can`, after at most three words and a comma (`By the way, …`).
pub fn only_asks(text: &str) -> bool {
    const ASKING: &str = "what when where which who whom whose why how do does did is are was were am can could would \
                          will should shall have has had may might";
    let is_asking = |part: &str| {
        let first =
            part.split(|c: char| !c.is_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
        ASKING.split(' ').any(|word| word.eq_ignore_ascii_case(first))
    };
    let asks = |sentence: &str| {
        let after_comma = sentence.split_once(',').filter(|(lead, _)| lead.split_whitespace().count() <= 3);
        is_asking(sentence) || after_comma.is_some_and(|(_, rest)| is_asking(rest))
    };
    let mut sentences =
        text.trim().split_inclusive(['.', '!', '?', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let mut some = false;
    sentences.all(|sentence| {
        some = true;
        sentence.ends_with('?') && asks(sentence)
    }) && some
}

/// Returns the text; of a text longer than 8 KiB, its first and its last 4 KiB.
pub fn ends_of(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_BYTES {
        return Cow::Borrowed(text);
    }
    // With a space between them, the ends are still within the limit.
    let half = (MOST_BYTES - 1) / 2;
    let first = &text[..text.floor_char_boundary(half)];
    let last = &text[text.ceil_char_boundary(text.len() - half)..];
    Cow::Owned(format!("{first} {last}"))
}

/// Keeps the first and the last `most / 2` items.
fn without_middle<T>(all: &mut Vec<T>, most: usize) {
    if all.len() > most {
        all.drain(most / 2..all.len() - most / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> RankQuestion {
        RankQuestion::new(&Analyzer::default(), text)
    }

    // spec: M-12
    #[test]
    fn question_context_words_have_less_weight() {
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
    fn question_search_text_has_asked_words_before_context_words() {
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

    // spec: M-08
    #[test]
    fn only_questions_that_say_nothing_only_ask() {
        for text in ["Where will the wedding take place?", "By the way, do I live in Bern? What do you know?"]
        {
            assert!(only_asks(text), "{text}");
        }
        for text in [
            "",
            "I live in Bern. Where is the station?",
            "I moved to Bern, can you update my address?",
            "Isn't Bern my home?",
            "What a day.",
            "Hi. Where is it?",
        ] {
            assert!(!only_asks(text), "{text}");
        }
    }

    #[test]
    fn questions_for_the_first_and_the_latest_are_told_apart() {
        assert_eq!(ask("What was the first city?").toward, -1.0);
        assert_eq!(ask("Where do I live now?").toward, 1.0);
        assert_eq!(ask("Where do I live?").toward, 0.0);
    }

    #[test]
    fn a_role_is_no_name_and_a_name_alone_is_a_question() {
        let asked = ask("user preferences").with_speakers(["user", "assistant"]);
        assert_eq!(asked.meaning(), "user preferences");
        assert!(!asked.names("user"));
        assert_eq!(ask("Caroline?").with_speakers(["Caroline"]).meaning(), "Caroline?");
    }
}
