//! How fast memories are in SQLite at 100,000 entries:
//! `cargo bench -p archon-store --features sqlite-memory --bench memories`.
//!
//! Texts and questions are made up, and their sizes and frequencies are those of the LoCoMo conversations, whose turns
//! have 26 words and whose questions have, after stop words, 5.7 words on average. A question's words are drawn so that
//! the shares of entries that have them are as there (`SHARES`): half of the words are in more than 1 % of all
//! entries, one in twenty in more than 8 %.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a bench prints, and stops where it cannot go on"
)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use archon_store::SqliteMemory;
use archon_types::{Collection, MemoryChange, MemoryEntry, MemoryKind, MemorySearch, MemoryStore, Timestamp};

const ENTRIES: usize = 100_000;
const WORDS: usize = 26;
const VOCABULARY: f64 = 30_000.0;
const DIMENSIONS: usize = 384;
const EMBEDDER: &str = "bench:384";

/// Words of a question, at the quantiles 0, ¼, ½, ¾, 0.95 and 1 of LoCoMo's 1,986.
const LENGTHS: [(f64, f64); 6] = [(0.0, 1.0), (0.25, 4.0), (0.5, 5.0), (0.75, 7.0), (0.95, 9.0), (1.0, 13.0)];

/// The share of turns with a word of a question, at the same kind of quantiles.
const SHARES: [(f64, f64); 8] = [
    (0.0, 0.000_05),
    (0.1, 0.000_34),
    (0.25, 0.002_38),
    (0.5, 0.009_69),
    (0.75, 0.023_46),
    (0.9, 0.060_18),
    (0.95, 0.080_24),
    (1.0, 0.242_77),
];

/// Xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A value by its quantiles.
    fn of(&mut self, quantiles: &[(f64, f64)]) -> f64 {
        let at = self.unit();
        let to = quantiles.iter().position(|(quantile, _)| *quantile >= at).unwrap_or(1).max(1);
        let ((q0, low), (q1, high)) = (quantiles[to - 1], quantiles[to]);
        low + (high - low) * (at - q0) / (q1 - q0)
    }

    /// By Zipf's law, as in texts: the tenth most frequent word is in a tenth as many.
    fn text(&mut self) -> String {
        let word = |_| format!("w{}", VOCABULARY.powf(self.unit()) as u64);
        (0..WORDS).map(word).collect::<Vec<_>>().join(" ")
    }

    fn question(&mut self) -> String {
        let words = self.of(&LENGTHS).round() as usize;
        let word = |_| {
            // The word that so many texts have: of its rank is one in rank · ln(vocabulary) words.
            let of_words = -(1.0 - self.of(&SHARES)).ln() / WORDS as f64;
            format!("w{}", (1.0 / (of_words * VOCABULARY.ln())).round().max(1.0) as u64)
        };
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| (self.unit() - 0.5) as f32).collect()
    }
}

fn entry(random: &mut Random, n: usize) -> MemoryEntry {
    let mut entry = MemoryEntry::new(format!("m{n}"), random.text(), Timestamp::from_millis(n as u64));
    entry.kind = MemoryKind::Turn;
    entry.metadata.insert("session".into(), format!("s{}", n / 50).into());
    entry.collection = Collection::new(format!("user:u{}", n % 50)).expect("a name");
    entry
}

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

/// The median and the 95th percentile of 200 questions.
async fn ask(store: &SqliteMemory, random: &mut Random, words: bool, vector: bool) -> (Duration, Duration) {
    let mut times = Vec::new();
    for _ in 0..200 {
        let mut question = near(random);
        if !words {
            question.text = String::new();
        }
        if !vector {
            question.vector = None;
        }
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
    let mut kept = Vec::new();
    kept.push((rate >= 1_000.0, "lexical ingest of at least 1,000 turns/s"));
    ingest(&mut random, &path).await;

    let question = near(&mut random);
    let start = Instant::now();
    let store = SqliteMemory::open(&path).expect("opens");
    let opened = start.elapsed();
    store.candidates(&question).await.expect("found");
    println!("open: {opened:?}; with the first question, which reads the vectors: {:?}", start.elapsed());
    kept.push((start.elapsed() <= Duration::from_millis(300), "opening, and the first question, in 300 ms"));

    for (what, scope) in
        [("all", Collection::root()), ("one of 50 tenants", Collection::new("user:u7").expect("a name"))]
    {
        let store = store.collection(scope).expect("within the root");
        for (kind, words, vector) in [("words", true, false), ("vector", false, true), ("hybrid", true, true)]
        {
            let (median, p95) = ask(&store, &mut random, words, vector).await;
            println!("{kind} query of {what}: median {median:?}, p95 {p95:?}");
            kept.push((
                p95 <= Duration::from_millis(20) || kind != "hybrid",
                "p95 of hybrid queries of 20 ms",
            ));
        }
    }
    let missed: Vec<&str> = kept.iter().filter(|(kept, _)| !kept).map(|(_, what)| *what).collect();
    assert!(missed.is_empty(), "missed: {missed:?}");
}
