//! Extracts facts with patterns of plain English sentences. This needs no model, but finds few facts.
//!
//! A fact that this extractor finds counts as the person's own statement and ends earlier facts. So
//! everything doubtful is skipped: questions, conditions, reported speech, stories, and sentences whose end is
//! unclear. A denial only ends the fact that it names.

mod objects;
mod sentences;

use archon_types::{BoxFuture, MemoryError, Trust};

use super::{KnowledgeExtractor, Passage};
use crate::{Fact, words::words};
use objects::{Shape, is_name, object};
use sentences::{Statement, bare, is_corrected, is_opener, statements};

/// An extractor for plain English sentences about the speaker or a person with a name: `I live in Bern`, `Last month we
/// moved to Lyon`, `My name is Alice`, `Alice works for ACME`; and for their ends: `I no longer live in Bern`, `I left
/// ACME`, `I stopped using vim`. Other sentences and other languages are skipped; [`LlmExtractor`](crate::LlmExtractor)
/// reads them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleExtractor;

/// A verb: its words after `I`, after a name, and with `-ing`; the relation, the shape of the object, and true if the
/// relation has only one object at a time.
type Verb = (&'static str, &'static str, &'static str, &'static str, Shape, bool);

const VERBS: &[Verb] = &[
    ("live in", "lives in", "living in", "lives in", Shape::Name, true),
    ("work for", "works for", "working for", "works for", Shape::Name, true),
    ("work at", "works at", "working at", "works for", Shape::Name, true),
    ("work as", "works as", "working as", "works as", Shape::Role, true),
    ("prefer", "prefers", "preferring", "prefers", Shape::Thing, false),
    ("like", "likes", "liking", "likes", Shape::Thing, false),
    ("love", "loves", "loving", "likes", Shape::Thing, false),
    ("hate", "hates", "hating", "dislikes", Shape::Thing, false),
    ("use", "uses", "using", "uses", Shape::Tool, false),
    ("own", "owns", "owning", "owns", Shape::Thing, false),
    ("am allergic to", "is allergic to", "allergic to", "is allergic to", Shape::Thing, false),
];

/// Words before the name of the place in which a person lives from now on.
const MOVES: &[&str] =
    &["moved to", "moved back to", "moved over to", "relocated to", "settled in", "settled down in"];

/// Words before the name of what a person has left: a place or an employer.
const LEAVES: &[&str] = &["left", "moved away from", "moved out of", "quit", "resigned from", "moved from"];

/// Patterns of statements about oneself: `my NAME is`.
const OWN: &[(&str, &str, Shape)] = &[
    ("name", "is called", Shape::Name),
    ("email", "has email", Shape::Email),
    ("phone", "has phone", Shape::Phone),
    ("birthday", "was born on", Shape::Date),
];

/// Words for a place in which a person lives.
const HOMES: &str = "home flat apartment house place room studio condo cottage loft";

/// Words between the subject and the verb that do not change the meaning.
const ADVERBS: &str = "now just finally recently currently really actually also still already officially absolutely \
     truly mostly always usually have all";

/// Words that begin a time or an aside before the subject.
const LEADS: &str = "last this since as in on after by these for two three a over at from during";

/// Words that may be capitalised without being a name.
const NO_NAMES: &str = "i the a an this that these those it he she they we you my your his her our their its \
     there here what who which how why where when while because although since as or then maybe perhaps \
     everyone everybody everything someone somebody something anyone anybody anything nobody nothing one some \
     many most all both each sometimes often only even yesterday tomorrow";

impl RuleExtractor {
    fn of_text(text: &str, speaker: &str) -> Vec<Fact> {
        let facts = |said: &Statement<'_>| match said.is_denied {
            true => Self::of_denial(&said.words, speaker),
            false => Self::of_statement(&said.words, speaker),
        };
        statements(text).iter().flat_map(facts).collect()
    }

    /// Returns the facts of a sentence's clauses, up to the first clause that matches no pattern, since
    /// later clauses may depend on it. Returns no facts if that clause may correct the others.
    fn of_statement(said: &[&str], speaker: &str) -> Vec<Fact> {
        let mut facts = Vec::new();
        for clause in said.split_inclusive(|word| word.ends_with(',')) {
            let openers = opening(clause);
            let is_aside = facts.is_empty() && is_any(clause[0], LEADS) && !clause.contains(&"I");
            if openers == clause.len() || is_aside {
                continue;
            }
            let found = Self::of_clause(&clause[openers..], speaker);
            match found.is_empty() {
                false => facts.extend(found),
                true if is_corrected(said) => return Vec::new(),
                true => break,
            }
        }
        facts
    }

    fn of_clause(clause: &[&str], speaker: &str) -> Vec<Fact> {
        let own = |relation, object| fact(speaker, relation, object, true).into_iter().collect();
        match clause {
            [call, "me", rest @ ..] if is_any(call, "call") => {
                own("is called", object(rest, Shape::NameAlone))
            }
            ["I", said @ ..] => Self::of_speaker(skip(said, ADVERBS), speaker),
            [my, rest @ ..] if is_any(my, "my our") => match skip(rest, "new current") {
                // `my new home is in Lisbon`
                [what, "is", rest @ ..] if is_any(what, HOMES) => {
                    own("lives in", object(skip(rest, "now in"), Shape::Place))
                }
                [what, "is", rest @ ..] => match OWN.iter().find(|(name, ..)| is_any(what, name)) {
                    Some((_, relation, shape)) => own(relation, object(rest, *shape)),
                    None => Vec::new(),
                },
                _ => Vec::new(),
            },
            _ => Self::of_named(clause),
        }
    }

    /// Returns the facts in the words after `I`.
    fn of_speaker(said: &[&str], speaker: &str) -> Vec<Fact> {
        let one = |fact: Option<Fact>| fact.into_iter().collect();
        if let Some((rest, (.., relation, shape, is_one))) = verb(said, |verb| verb.0) {
            return one(fact(speaker, relation, object(rest, shape), is_one));
        }
        if let Some(place) = home(said) {
            return one(fact(speaker, "lives in", Some(place), true));
        }
        if let Some(left) = facts_of_leaving(said, speaker) {
            return left;
        }
        match said {
            ["am" | "been", rest @ ..] => {
                let rest = skip(rest, ADVERBS);
                if let Some((rest, (.., relation, shape, is_one))) = verb(rest, |verb| verb.2) {
                    return one(fact(speaker, relation, object(rest, shape), is_one));
                }
                match rest {
                    ["based", "in", rest @ ..] => {
                        one(fact(speaker, "lives in", object(rest, Shape::Place), true))
                    }
                    // Not after a name, where `is` may begin anything: `Lunch is ready`.
                    _ => one(fact(speaker, "is", object(rest, Shape::State), false)),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Returns the facts about a person with a name.
    fn of_named(clause: &[&str]) -> Vec<Fact> {
        let named = clause.iter().take(3).take_while(|word| is_name(word)).count();
        let (subject, said) = clause.split_at(named);
        if subject.is_empty() || subject.iter().any(|word| is_any(word, NO_NAMES)) {
            return Vec::new();
        }
        let said = skip(said, ADVERBS);
        let subject = subject.join(" ");
        if let Some(place) = home(said) {
            return fact(&subject, "lives in", Some(place), true).into_iter().collect();
        }
        let Some((rest, (.., relation, shape, is_one))) = verb(said, |verb| verb.1) else {
            return Vec::new();
        };
        fact(&subject, relation, object(rest, shape), is_one).into_iter().collect()
    }

    /// Returns what a sentence with a denial says to hold no longer.
    fn of_denial(said: &[&str], speaker: &str) -> Vec<Fact> {
        let said = &said[opening(said)..];
        let ends = |(rest, (.., relation, shape, is_one)): (&[&str], Verb)| {
            fact(speaker, relation, object(rest, shape), is_one)
        };
        let ended = match said {
            ["I", said @ ..] => match skip(said, ADVERBS) {
                ["no", "longer", rest @ ..]
                | ["do", "not", rest @ ..]
                | ["don't" | "don\u{2019}t", rest @ ..] => {
                    verb(skip(rest, ADVERBS), |verb| verb.0).and_then(ends)
                }
                ["am", "no", "longer", rest @ ..] | ["am", "not", rest @ ..] => match rest {
                    ["at" | "with", rest @ ..] => fact(speaker, "works for", object(rest, Shape::Name), true),
                    _ => verb(rest, |verb| verb.2)
                        .and_then(ends)
                        .or_else(|| fact(speaker, "is", object(rest, Shape::State), false)),
                },
                _ => None,
            },
            _ => {
                // `Bern is no longer my home`
                let named = said.iter().take(3).take_while(|word| is_name(word)).count();
                let (name, rest) = said.split_at(named);
                let relation = match rest {
                    ["is", "no", "longer", my, what, ..] | ["is", "not", my, what, ..]
                        if is_any(my, "my our") =>
                    {
                        relation_of(what)
                    }
                    _ => None,
                };
                relation.and_then(|relation| fact(speaker, relation, object(name, Shape::Name), true))
            }
        };
        ended.map(Fact::no_longer).into_iter().collect()
    }
}

/// Returns the number of words before the subject that do not change the meaning of a clause: `By the way`, `As of
/// Monday`.
fn opening(clause: &[&str]) -> usize {
    let openers = clause.iter().take_while(|word| is_opener(word)).count();
    let rest = &clause[openers..];
    let subject = rest.iter().take(6).position(|word| *word == "I").unwrap_or_default();
    let is_phrase = subject > 1 && is_any(rest[0], LEADS);
    if is_phrase { openers + subject } else { openers }
}

/// Returns the words after those at the beginning that are among `words`.
fn skip<'c, 't>(said: &'c [&'t str], words: &str) -> &'c [&'t str] {
    &said[said.iter().take_while(|word| is_any(word, words)).count()..]
}

/// Returns true if a word, whatever its case, is one of `words`.
fn is_any(word: &str, words: &str) -> bool {
    words.split(' ').any(|other| other.eq_ignore_ascii_case(bare(word)))
}

/// Returns the words after `words`, if these are the first.
fn after<'c, 't>(said: &'c [&'t str], words: &str) -> Option<&'c [&'t str]> {
    words.split(' ').try_fold(said, |rest, word| {
        rest.split_first().filter(|(first, _)| **first == word).map(|(_, rest)| rest)
    })
}

/// Returns the first verb that the words begin with, and the words after it.
fn verb<'c, 't>(said: &'c [&'t str], form: impl Fn(&Verb) -> &'static str) -> Option<(&'c [&'t str], Verb)> {
    VERBS.iter().find_map(|verb| Some((after(said, form(verb))?, *verb)))
}

/// Returns the place that a person has moved to: `moved to Lyon`, `found a small flat in Lyon`.
fn home(said: &[&str]) -> Option<String> {
    if let Some(rest) = after(said, "moved from") {
        let to = rest.iter().position(|word| *word == "to")?;
        return object(&rest[to + 1..], Shape::Place);
    }
    MOVES.iter().find_map(|words| object(after(said, words)?, Shape::Place)).or_else(|| {
        let (_, rest) =
            said.split_first().filter(|(verb, _)| is_any(verb, "found bought rented got signed moved"))?;
        let noun = rest.iter().take(8).position(|word| is_any(word, HOMES))?;
        object(after(&rest[noun + 1..], "in")?, Shape::Place)
    })
}

/// Returns what a person has left: the place or the employer of this name, whichever it is.
fn facts_of_leaving(said: &[&str], speaker: &str) -> Option<Vec<Fact>> {
    let before = after(said, "used to").and_then(|rest| verb(rest, |verb| verb.0));
    let before = before.or_else(|| after(said, "stopped").and_then(|rest| verb(rest, |verb| verb.2)));
    if let Some((rest, (.., relation, shape, is_one))) = before {
        return Some(vec![fact(speaker, relation, object(rest, shape), is_one)?.no_longer()]);
    }
    let name = LEAVES.iter().find_map(|words| object(after(said, words)?, Shape::Name))?;
    let ends = |relation| Some(fact(speaker, relation, Some(name.clone()), true)?.no_longer());
    Some(["lives in", "works for"].into_iter().filter_map(ends).collect())
}

fn relation_of(what: &str) -> Option<&'static str> {
    match () {
        () if is_any(what, HOMES) || is_any(what, "city town hometown address") => Some("lives in"),
        () if is_any(what, "employer company job") => Some("works for"),
        () => None,
    }
}

fn fact(subject: &str, relation: &str, object: Option<String>, is_one: bool) -> Option<Fact> {
    let object = object.filter(|object| object.len() <= 120)?;
    let mut fact = Fact::new(subject, relation, object).trusted(Trust::Trusted);
    if !is_one {
        fact = fact.one_of_many();
    }
    fact.topics = words(&fact.object).filter(|word| word.chars().count() > 3).take(3).collect();
    Some(fact)
}

impl KnowledgeExtractor for RuleExtractor {
    fn id(&self) -> &str {
        "rules:2"
    }

    fn extract<'a>(&'a self, passage: &'a Passage) -> BoxFuture<'a, Result<Vec<Fact>, MemoryError>> {
        Box::pin(async move { Ok(Self::of_text(&passage.text, &passage.speaker)) })
    }
}
