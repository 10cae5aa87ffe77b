//! Facts by patterns of plain English sentences: no model, no cost, and little found.

use archon_types::{BoxFuture, MemoryError, Trust};

use super::{KnowledgeExtractor, Passage};
use crate::{Fact, words::words};

/// Finds what is said in the plainest way: `I live in Bern`, `My name is Alice`, `Alice works for ACME`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleExtractor;

/// What is said after the subject, the relation that it means, and whether the relation has one object at a time.
const PATTERNS: &[(&str, &str, bool)] = &[
    ("now live in", "lives in", true),
    ("now lives in", "lives in", true),
    ("live in", "lives in", true),
    ("lives in", "lives in", true),
    ("moved to", "lives in", true),
    ("work for", "works for", true),
    ("works for", "works for", true),
    ("work at", "works for", true),
    ("works at", "works for", true),
    ("work as", "works as", true),
    ("works as", "works as", true),
    ("prefer", "prefers", false),
    ("prefers", "prefers", false),
    ("like", "likes", false),
    ("likes", "likes", false),
    ("love", "likes", false),
    ("loves", "likes", false),
    ("hate", "dislikes", false),
    ("hates", "dislikes", false),
    ("use", "uses", false),
    ("uses", "uses", false),
    ("own", "owns", false),
    ("owns", "owns", false),
    ("am allergic to", "is allergic to", false),
    ("is allergic to", "is allergic to", false),
    ("am", "is", false),
    ("is", "is", false),
];

/// What a person says of themselves: `my NAME is`.
const OWN: &[(&str, &str)] = &[
    ("name", "is called"),
    ("email", "has email"),
    ("phone", "has phone"),
    ("birthday", "was born on"),
    ("job", "works as"),
];

impl RuleExtractor {
    fn of_sentence(sentence: &str, speaker: &str) -> Option<Fact> {
        let sentence = sentence.trim().replace("I'm ", "I am ").replace("I\u{2019}m ", "I am ");
        let tokens: Vec<&str> = sentence.split_whitespace().collect();
        if let [first, what, "is", rest @ ..] = tokens.as_slice()
            && first.eq_ignore_ascii_case("my")
            && let Some((_, relation)) = OWN.iter().find(|(name, _)| name.eq_ignore_ascii_case(what))
        {
            return fact(speaker, relation, rest, true);
        }
        // Whom it is about: `I`, or one to three words that begin with a capital.
        let capital = |token: &&&str| token.chars().next().is_some_and(char::is_uppercase);
        let named = tokens.iter().take(3).take_while(capital).count();
        if named == 0 {
            return None;
        }
        let subject = if tokens[0] == "I" { speaker.to_owned() } else { tokens[..named].join(" ") };
        let named = if tokens[0] == "I" { 1 } else { named };
        if NO_NAMES.contains(&subject.to_lowercase().as_str()) {
            return None;
        }
        let said = tokens[named..].join(" ");
        let (pattern, relation, one) = PATTERNS
            .iter()
            .find(|(pattern, ..)| said.strip_prefix(pattern).is_some_and(|rest| rest.starts_with(' ')))?;
        let rest: Vec<&str> = said[pattern.len()..].split_whitespace().collect();
        fact(&subject, relation, &rest, *one)
    }
}

/// Words that begin sentences and are nobody's name.
const NO_NAMES: &[&str] = &[
    "the", "a", "an", "this", "that", "it", "he", "she", "they", "we", "you", "there", "what", "who", "how",
    "if",
];

fn fact(subject: &str, relation: &str, object: &[&str], one: bool) -> Option<Fact> {
    // An object is short; what follows `because` or `and` is another matter.
    let ends = |token: &&&str| !["because", "and", "but", "since", "so", "which"].contains(*token);
    let object: Vec<&str> = object.iter().take_while(ends).copied().collect();
    let object = object.join(" ").trim_matches(|c: char| c.is_ascii_punctuation()).to_owned();
    if object.is_empty() || object.len() > 120 {
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
        Box::pin(async move {
            // A question says nothing.
            let sentences = passage.text.split_inclusive(['.', '!', '?', '\n', ';', ',']);
            let said = sentences.filter(|sentence| !sentence.trim_end().ends_with('?'));
            Ok(said.filter_map(|sentence| Self::of_sentence(sentence, &passage.speaker)).collect())
        })
    }
}
