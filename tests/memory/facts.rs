//! Facts that change, in every store: the newest valid one comes first, and what held at a time is exact.

#![allow(clippy::print_stdout, reason = "says how many were right")]

use std::sync::Arc;

use archon::{
    SystemClock,
    memory::{Fact, HashEmbedder, InMemoryStore, Memory},
    types::{LongTerm as _, MemoryQuery, Timestamp, Trust},
};
use archon_testkit::{Chance, SeededIds, Trial, cases, first_seed, trial};

use crate::memory::{
    collections::of,
    places::{POSTGRES, Place},
};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(of_1000_updated_facts_the_newest_valid_one_comes_first_in_memory),
    trial!(of_1000_updated_facts_the_newest_valid_one_comes_first_in_sqlite),
    trial!(of_1000_updated_facts_the_newest_valid_one_comes_first_in_postgres).needs(&POSTGRES),
];

/// Whole hundreds, each once.
type Line = Vec<(u64, String, Trust)>;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// What held at a time, by its definition: the most believed, and of these the last that had begun.
fn truth(line: &Line, time: u64) -> Option<String> {
    let begun = line.iter().filter(|(since, ..)| *since <= time);
    begun.max_by_key(|(since, _, trust)| (*trust, *since)).map(|(_, object, _)| object.clone())
}

/// Subjects with a relation, and what is learnt of them, in any order; some of it is hearsay.
fn lines() -> Vec<(String, &'static str, Line)> {
    let mut chance = Chance(first_seed());
    let mut lines = Vec::new();
    for s in 0..cases(40, 250) {
        for relation in ["lives in", "works for", "drives", "is married to"] {
            let mut line = Line::new();
            for n in 0..2 + chance.below(4) {
                let trust = if chance.below(4) == 0 { Trust::Untrusted } else { Trust::Trusted };
                line.push((100 * (n + 1), format!("Thing{}", chance.below(1_000_000)), trust));
            }
            for i in (1..line.len()).rev() {
                line.swap(i, usize::try_from(chance.below(i as u64 + 1)).unwrap());
            }
            lines.push((format!("Person{s}"), relation, line));
        }
    }
    lines
}

async fn check(memory: Memory) {
    let (knowledge, lines) = (memory.knowledge(), lines());
    for (subject, relation, line) in &lines {
        let fact = |(since, object, trust): &(u64, String, Trust)| {
            Fact::new(subject, *relation, object).since(at(*since)).trusted(*trust)
        };
        knowledge.learn(line.iter().map(fact)).await.unwrap();
    }
    let (mut first, mut exact, mut asked) = (0, 0, 0);
    for (subject, relation, line) in &lines {
        let newest = truth(line, u64::MAX).unwrap();
        let found =
            memory.long_term().query(&MemoryQuery::new(format!("{subject} {relation}"))).await.unwrap();
        let content = format!("{subject} {relation} {newest}");
        first += usize::from(found.first().is_some_and(|hit| hit.entry.content == content));
        for time in [50, 150, 250, 350, 450, 550] {
            let found = knowledge.as_of(subject, relation, at(time)).await.unwrap();
            asked += 1;
            exact += usize::from(found.first().map(|fact| fact.object.clone()) == truth(line, time));
        }
    }
    println!("newest first: {first} of {}, as of a date: {exact} of {asked}", lines.len());
    assert_eq!(exact, asked);
    assert!(first * 100 >= lines.len() * 98, "{first} of {}", lines.len());
}

fn memory(store: Arc<dyn archon::types::MemoryStore>) -> Memory {
    Memory::new(store, Arc::new(SystemClock), Arc::new(SeededIds::new(1)))
        .with_embedder(Arc::new(HashEmbedder))
}

// spec: M-25
async fn of_1000_updated_facts_the_newest_valid_one_comes_first_in_memory() {
    check(memory(Arc::new(InMemoryStore::new().collection(of("user:x")).unwrap()))).await;
}

// spec: M-25
async fn of_1000_updated_facts_the_newest_valid_one_comes_first_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check(memory(Place::sqlite(dir.path()).open(&of("user:x")).await)).await;
}

// spec: M-25
async fn of_1000_updated_facts_the_newest_valid_one_comes_first_in_postgres() {
    let place = Place::postgres("archon_test_facts").await;
    check(memory(place.open(&of("user:x")).await)).await;
    place.drop().await;
}
