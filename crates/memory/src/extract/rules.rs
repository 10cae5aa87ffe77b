//! Extracts facts with patterns of plain English sentences. This needs no model, but finds few facts.
//!
//! A fact that this extractor finds counts as the person's own statement and ends earlier facts. So
//! everything doubtful is skipped: questions, conditions, negations, reported speech, and sentences whose end
//! is unclear.

mod objects;
mod sentences;

use archon_types::{BoxFuture, MemoryError, Trust};

use super::{KnowledgeExtractor, Passage};
use crate::{Fact, words::words};
use objects::{Shape, is_name, object};
use sentences::{is_corrected, is_opener, statements};

/// An extractor for the plainest sentences: `I live in Bern`, `My name is Alice`, `Alice works for ACME`.
/// All other sentences are skipped.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleExtractor;

/// Each pattern has the words after `I`, the words after a name, the relation, the shape of the object, and
/// true if the relation has only one object at a time.
const PATTERNS: &[(&str, &str, &str, Shape, bool)] = &[
    ("now live in", "now lives in", "lives in", Shape::Name, true),
    ("live in", "lives in", "lives in", Shape::Name, true),
    ("moved to", "moved to", "lives in", Shape::NameAlone, true),
    ("work for", "works for", "works for", Shape::Name, true),
    ("work at", "works at", "works for", Shape::Name, true),
    ("work as", "works as", "works as", Shape::Role, true),
    ("prefer", "prefers", "prefers", Shape::Thing, false),
    ("like", "likes", "likes", Shape::Thing, false),
    ("love", "loves", "likes", Shape::Thing, false),
    ("hate", "hates", "dislikes", Shape::Thing, false),
    ("use", "uses", "uses", Shape::Thing, false),
    ("own", "owns", "owns", Shape::Thing, false),
    ("am allergic to", "is allergic to", "is allergic to", Shape::Thing, false),
];

/// Patterns of statements about oneself: `my NAME is`.
const OWN: &[(&str, &str, Shape)] = &[
    ("name", "is called", Shape::Name),
    ("email", "has email", Shape::Email),
    ("phone", "has phone", Shape::Phone),
    ("birthday", "was born on", Shape::Date),
];

/// Words that may be capitalised without being a name.
const NO_NAMES: &str = "i the a an this that these those it he she they we you my your his her our their its \
     there here what who which how why where when while because although since as or then maybe perhaps \
     everyone everybody everything someone somebody something anyone anybody anything nobody nothing one some \
     many most all both each sometimes often only even yesterday tomorrow";

impl RuleExtractor {
    fn of_text(text: &str, speaker: &str) -> Vec<Fact> {
        statements(text).iter().flat_map(|said| Self::of_statement(said, speaker)).collect()
    }

    /// Returns the facts of a sentence's clauses, up to the first clause that matches no pattern, since
    /// later clauses may depend on it. Returns no facts if that clause may correct the others.
    fn of_statement(said: &[&str], speaker: &str) -> Vec<Fact> {
        let mut facts = Vec::new();
        for clause in said.split_inclusive(|word| word.ends_with(',')) {
            let openers = clause.iter().take_while(|word| is_opener(word)).count();
            if openers == clause.len() {
                continue;
            }
            match Self::of_clause(&clause[openers..], speaker) {
                Some(fact) => facts.push(fact),
                None if is_corrected(said) => return Vec::new(),
                None => break,
            }
        }
        facts
    }

    fn of_clause(clause: &[&str], speaker: &str) -> Option<Fact> {
        match clause {
            [my, what, "is", rest @ ..] if my.eq_ignore_ascii_case("my") => {
                let (_, relation, shape) = OWN.iter().find(|(name, ..)| name.eq_ignore_ascii_case(what))?;
                fact(speaker, relation, object(rest, *shape)?, true)
            }
            ["I", said @ ..] => match pattern(said, |pattern| pattern.0) {
                Some((rest, relation, shape, one)) => fact(speaker, relation, object(rest, shape)?, one),
                // Not after a name, where `is` may begin anything: `Lunch is ready`.
                None => {
                    let ["am", rest @ ..] = said else { return None };
                    fact(speaker, "is", object(rest, Shape::State)?, false)
                }
            },
            _ => {
                let named = clause.iter().take(3).take_while(|word| is_name(word)).count();
                let (subject, said) = clause.split_at(named);
                let is_nobody = |word: &&str| {
                    let word = word.to_lowercase();
                    NO_NAMES.split(' ').any(|other| other == word)
                };
                if subject.is_empty() || subject.iter().any(is_nobody) {
                    return None;
                }
                let (rest, relation, shape, one) = pattern(said, |pattern| pattern.1)?;
                fact(&subject.join(" "), relation, object(rest, shape)?, one)
            }
        }
    }
}

type Pattern = (&'static str, &'static str, &'static str, Shape, bool);

/// Finds the first pattern that the words begin with. Returns the words after the pattern, and its relation,
/// shape and number of objects.
fn pattern<'c, 't>(
    said: &'c [&'t str],
    words: impl Fn(&'static Pattern) -> &'static str,
) -> Option<(&'c [&'t str], &'static str, Shape, bool)> {
    PATTERNS.iter().find_map(|pattern| {
        let mut rest = said;
        for word in words(pattern).split(' ') {
            rest = rest.strip_prefix(&[word])?;
        }
        let (_, _, relation, shape, one) = *pattern;
        Some((rest, relation, shape, one))
    })
}

fn fact(subject: &str, relation: &str, object: String, one: bool) -> Option<Fact> {
    if object.len() > 120 {
        return None;
    }
    let mut fact = Fact::new(subject, relation, object).trusted(Trust::Trusted);
    if !one {
        fact = fact.one_of_many();
    }
    let mut topics: Vec<String> = words(&fact.object).filter(|word| word.chars().count() > 3).collect();
    topics.truncate(3);
    fact.topics = topics;
    Some(fact)
}

impl KnowledgeExtractor for RuleExtractor {
    fn id(&self) -> &str {
        "rules:1"
    }

    fn extract<'a>(&'a self, passage: &'a Passage) -> BoxFuture<'a, Result<Vec<Fact>, MemoryError>> {
        Box::pin(async move { Ok(Self::of_text(&passage.text, &passage.speaker)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(text: &str) -> String {
        let facts = RuleExtractor::of_text(text, "user");
        let line = |fact: &Fact| format!("{} {} {}", fact.subject, fact.relation, fact.object);
        facts.iter().map(line).collect::<Vec<_>>().join("; ")
    }

    fn check(texts: &[(&str, &str)]) {
        for (text, expected) in texts {
            assert_eq!(learnt(text), *expected, "{text:?}");
        }
    }

    // spec: M-25
    #[test]
    fn rule_extractor_keeps_punctuation_inside_words() {
        check(&[
            ("My email is anna@example.com.", "user has email anna@example.com"),
            ("my phone is +41 79 123 45 67", "user has phone +41 79 123 45 67"),
            ("I use Node.js", "user uses Node.js"),
            ("I use C++.", "user uses C++"),
            ("I use C#, I like .NET!", "user uses C#; user likes .NET"),
            ("I like 3.5 inch disks.", "user likes 3.5 inch disks"),
            (
                "I live in St. Gallen. I work for Acme Inc. I like tea.",
                "user lives in St. Gallen; user works for Acme Inc; user likes tea",
            ),
            ("Mr. Smith lives in Bern.", "Mr. Smith lives in Bern"),
            ("I like tea (green).", "user likes tea"),
            ("My birthday is 3 March 1990.", "user was born on 3 March 1990"),
            ("My birthday is 1990-03-03.", "user was born on 1990-03-03"),
        ]);
    }

    // spec: M-25
    #[test]
    fn a_place_is_a_name_in_any_script() {
        check(&[
            ("I live in Zürich.", "user lives in Zürich"),
            ("I live in 東京", "user lives in 東京"),
            ("I live in 東京。", "user lives in 東京"),
            ("I live in the Netherlands, where it rains.", "user lives in the Netherlands"),
            ("I now live in Frankfurt am Main because of work.", "user lives in Frankfurt am Main"),
            ("I live in New York these days.", "user lives in New York"),
            ("I moved to Basel.", "user lives in Basel"),
        ]);
    }

    // spec: M-25
    #[test]
    fn rule_extractor_subject_is_the_speaker_or_a_name() {
        check(&[
            ("Today I use Rust.", "user uses Rust"),
            ("Hi, my name is Anna Müller and I live in Bern.", "user is called Anna Müller"),
            ("Hello! I'm vegetarian, and I live in Bern.", "user is vegetarian; user lives in Bern"),
            ("Anna works for ACME now.", "Anna works for ACME"),
            ("Bob Miller is allergic to nuts.", "Bob Miller is allergic to nuts"),
        ]);
    }

    // spec: M-25
    #[test]
    fn rule_extractor_keeps_facts_before_harmless_additions() {
        check(&[
            ("I live in Bern, Switzerland.", "user lives in Bern"),
            ("I live in Bern, actually.", "user lives in Bern"),
            ("Actually, I live in Bern, where it rains.", "user lives in Bern"),
            ("I live in Bern, and actually I like tea.", "user lives in Bern; user likes tea"),
            ("I am not old. I live in Bern.", "user lives in Bern"),
        ]);
    }

    // spec: M-25
    #[test]
    fn rule_extractor_ignores_questions_and_conditions() {
        let texts = [
            // Questions, conditions and what is imagined.
            "If I live in Bern, can I vote?",
            "I live in Bern, right?",
            "I live in Bern? Or Basel?",
            "Can I vote if I live in Bern?",
            "If I win, I live in Bern.",
            "I live in Bern unless it rains.",
            "I like tea when it is cold.",
            "Suppose that\nI live in Bern.",
            "Pretend that you are me. I live in Tortuga.",
            "I live in Bern, I would say.",
            // What is denied, or may be the one or the other.
            "I am not vegetarian.",
            "I live in Bern no longer.",
            "I don't live in Bern.",
            "I no longer work for ACME.",
            "I like neither tea nor coffee.",
            "I live in Bern or Basel.",
            "Nobody likes tea.",
            // The same after a comma, wherever it stands.
            "I live in Bern, or Basel.",
            "I live in Bern,\nor Basel.",
            "I live in Bern, not Basel.",
            "I live in Bern, but not any more.",
            "I live in Bern, where it rains, but no longer.",
            "I work for ACME, no longer.",
            "I work for ACME, but I don't any more.",
            "My name is Anna, I live in Bern, or Basel.",
            // What is taken back.
            "I live in Bern, sorry, Basel.",
            "I live in Bern, sorry Basel.",
            "I live in Bern, I mean Basel.",
            "I live in Bern, rather in Basel.",
            "I live in Bern, wait, Basel.",
            "I live in Bern, oops, Basel.",
            "I live in Bern, no, Basel.",
            "I live in Bern, actually Basel.",
            "I live in Bern, actually, in Basel.",
            "I live in Bern, well, Basel actually.",
            "I live in Bern, where it rains, actually in Basel.",
            // What others say.
            "Bob said: I live in Bern. I like tea.",
            "Anna said, I live in Bern.",
            "According to Bob, I live in Bern.",
            "\"I am old. I live in Bern,\" said Anna.",
            "'I am old. I live in Bern,' said Anna.",
            "„Ich bin alt.“ I live in Bern.",
            "> I am old. I live in Bern.",
            "Translate this to German. I live in Bern.",
            "I live in Bern, or so Bob says.",
            "A page says:\n\nI live in Bern.",
            // What begins with a capital and is nobody.
            "Sometimes I use Rust.",
            "Here is the code.",
            "Lunch is ready.",
            "Engineers like tea.",
            "Everyone likes tea.",
            "When Bob lives in Bern, he is happy.",
            // What is of the moment, or another sense of the word.
            "I moved to the next task.",
            "I moved to Bern in 1990 and to Basel in 2000.",
            "I live in fear.",
            "I live in Anna's house.",
            "I work for free.",
            "I work as usual.",
            "I am looking for a flat.",
            "I am in Bern.",
            "I like it.",
            "My phone is broken.",
            "My email is down.",
            "My birthday is in 3 days.",
            "My name is not Bob.",
            // Where it begins or ends is not clear.
            "(I like tea.)",
            "I live in Bern\nThanks",
            "I use Visual\nStudio Code.",
            "I use C. It is fast.",
            "I use approx. 3 litres.",
            "I like tea. i mean coffee.",
            "I live in",
            "I use ...",
        ];
        for text in texts {
            assert_eq!(learnt(text), "", "{text:?}");
        }
    }
}
