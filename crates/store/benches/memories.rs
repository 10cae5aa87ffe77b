//! How fast memories are in SQLite at 100,000 entries:
//! `cargo bench -p archon-store --features sqlite-memory --bench memories`.
//!
//! Texts and questions are made up, see `memories/made_up.rs`. What is measured here is the store alone: candidates by
//! words and by vector. `cargo bench -p archon-evals --no-default-features` measures whole questions.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a bench prints, and stops where it cannot go on"
)]

#[path = "memories/made_up.rs"]
mod made_up;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use archon_store::SqliteMemory;
use archon_types::{Collection, MemoryChange, MemoryEntry, MemorySearch, MemoryStore};
use made_up::{Random, entry};

const ENTRIES: usize = 100_000;
const EMBEDDER: &str = "bench:384";

/// Turns a second.
async fn ingest_words(random: &mut Random, path: &Path) -> f64 {
    let lexical = SqliteMemory::open(path).expect("opens");
    let turns: Vec<MemoryEntry> = (0..5_000).map(|n| entry(random, n)).collect();
    let start = Instant::now();
    for turn in turns {
        lexical.apply(vec![MemoryChange::put(turn)]).await.expect("kept");
    }
    5_000.0 / start.elapsed().as_secs_f64()
}

async fn ingest(random: &mut Random, path: &Path) {
    let store = SqliteMemory::open(path).expect("opens");
    let start = Instant::now();
    for batch in 0..ENTRIES / 500 {
        let entries = (batch * 500..(batch + 1) * 500).map(|n| entry(random, n));
        let entries: Vec<MemoryEntry> = entries.collect();
        let changes = entries.into_iter().map(|entry| entry.with_vector(EMBEDDER, random.vector()));
        store.apply(changes.map(MemoryChange::put).collect()).await.expect("kept");
    }
    println!("ingest with vectors, 500 at once: {:.0}/s", ENTRIES as f64 / start.elapsed().as_secs_f64());
}

fn near(random: &mut Random) -> MemorySearch {
    MemorySearch::words(random.question(), 50).near(EMBEDDER, random.vector())
}

/// What is asked with a question.
#[derive(Clone, Copy)]
struct Asked {
    words: bool,
    vector: bool,
    /// How many of the store's newest entries are left out.
    without: usize,
}

/// The median and the 95th percentile of 200 questions.
async fn ask(store: &SqliteMemory, random: &mut Random, asked: Asked) -> (Duration, Duration) {
    let mut times = Vec::new();
    for _ in 0..200 {
        let mut question = near(random);
        if !asked.words {
            question.text = String::new();
        }
        if !asked.vector {
            question.vector = None;
        }
        question.filter.without = (ENTRIES - asked.without..ENTRIES).map(|n| format!("m{n}")).collect();
        let start = Instant::now();
        store.candidates(&question).await.expect("found");
        times.push(start.elapsed());
    }
    times.sort();
    (times[100], times[190])
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("memory.db");
    let mut random = Random(7);
    let rate = ingest_words(&mut random, &dir.path().join("lexical.db")).await;
    println!("lexical ingest, a transaction for each turn: {rate:.0} turns/s");
    let mut checks = Vec::new();
    checks.push((rate >= 1_000.0, "lexical ingest of at least 1,000 turns/s"));
    ingest(&mut random, &path).await;

    let question = near(&mut random);
    let start = Instant::now();
    let store = SqliteMemory::open(&path).expect("opens");
    let opened = start.elapsed();
    store.candidates(&question).await.expect("found");
    println!("open: {opened:?}; with the first question, which reads the vectors: {:?}", start.elapsed());
    checks
        .push((start.elapsed() <= Duration::from_millis(300), "opening, and the first question, in 300 ms"));

    for (what, scope) in
        [("all", Collection::root()), ("one of 50 tenants", Collection::new("user:u7").expect("a name"))]
    {
        let store = store.collection(scope).expect("within the root");
        for (kind, words, vector, without) in [
            ("words", true, false, 0),
            ("vector", false, true, 0),
            ("hybrid", true, true, 0),
            // As an agent asks, which leaves out what its window holds.
            ("hybrid without 200 ids", true, true, 200),
        ] {
            let (median, p95) = ask(&store, &mut random, Asked { words, vector, without }).await;
            println!("{kind} query of {what}: median {median:?}, p95 {p95:?}");
            checks.push((
                p95 <= Duration::from_millis(20) || kind != "hybrid",
                "p95 of hybrid queries of 20 ms",
            ));
        }
    }
    let missed: Vec<&str> = checks.iter().filter(|(passed, _)| !passed).map(|(_, what)| *what).collect();
    assert!(missed.is_empty(), "missed: {missed:?}");
}
