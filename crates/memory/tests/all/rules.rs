//! The sentences that rules read, and those that they skip.

use archon_memory::{Fact, KnowledgeExtractor, Passage, RuleExtractor};
use archon_types::{Timestamp, Trust};
use futures_util::FutureExt as _;

fn learnt(text: &str) -> String {
    let passage = Passage::new(text, "user", Timestamp::from_millis(1)).trusted(Trust::Trusted);
    let facts = RuleExtractor.extract(&passage).now_or_never().unwrap().unwrap();
    let ends = |fact: &Fact| if fact.ends { "not: " } else { "" };
    let line = |fact: &Fact| format!("{}{} {} {}", ends(fact), fact.subject, fact.relation, fact.object);
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
        ("I am not old. I live in Bern.", "not: user is old; user lives in Bern"),
    ]);
}

// spec: M-25
#[test]
fn rule_extractor_reads_moves_in_natural_sentences() {
    let moves = [
        "I moved to Lyon last month.",
        "Last spring we moved to Lyon for my job.",
        "We have finally moved to Lyon, and the boxes are everywhere.",
        "I've just relocated to Lyon because of the new job.",
        "By the way, I am now living in Lyon.",
        "I'm based in Lyon these days.",
        "We found a small flat in Lyon near the river.",
        "I moved from Bern to Lyon two weeks ago.",
        "My new home is in Lyon.",
        "I've been living in Lyon since my studies.",
        "After the summer I settled in Lyon.",
        "We moved into a bright apartment in Lyon.",
    ];
    for text in moves {
        assert_eq!(learnt(text), "user lives in Lyon", "{text:?}");
    }
    check(&[
        ("As of Monday I work for Nokia.", "user works for Nokia"),
        ("I've been vegetarian since 2012.", "user is vegetarian"),
        ("I really hate cilantro.", "user dislikes cilantro"),
        ("On flights I prefer window seats.", "user prefers window seats"),
        ("Call me Ash.", "user is called Ash"),
        ("I use Neovim for everything.", "user uses Neovim"),
        ("Bob moved to Lyon last week.", "Bob lives in Lyon"),
    ]);
}

// spec: M-25
#[test]
fn rule_extractor_reads_what_holds_no_longer() {
    let leaving = [
        "I left Bern for good.",
        "I have left Bern.",
        "I moved away from Bern last year.",
        "We moved out of Bern.",
    ];
    for text in leaving {
        let ended = learnt(text);
        assert!(ended.contains("not: user lives in Bern"), "{text:?}: {ended}");
    }
    for text in [
        "I no longer live in Bern.",
        "I don't live in Bern any more.",
        "I do not live in Bern anymore.",
        "I am no longer living in Bern.",
        "I used to live in Bern.",
        "Bern is no longer my home.",
        "I stopped living in Bern.",
    ] {
        assert_eq!(learnt(text), "not: user lives in Bern", "{text:?}");
    }
    check(&[
        ("I no longer work for ACME.", "not: user works for ACME"),
        ("I don't like tea any more.", "not: user likes tea"),
        ("I stopped using vim.", "not: user uses vim"),
        ("I am not vegetarian any longer.", "not: user is vegetarian"),
        ("I am no longer at ACME.", "not: user works for ACME"),
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
        "I live in Bern no longer.",
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
        // Stories, and what is not meant.
        "My character lives in Waterdeep. I use a longsword.",
        "In my dream I live in Paris.",
        "Oh great. I love waiting in line.",
        "I prefer the second option.",
        "I like where this is going.",
        "We rented a house in Nice for a week.",
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
