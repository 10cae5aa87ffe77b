//! How fast memories are in SQLite at 100,000 entries: `cargo bench -p archon-store --features sqlite-memory`.

#![allow(clippy::print_stdout, missing_docs, reason = "a bench prints")]

use std::time::{Duration, Instant};

use archon_store::SqliteMemory;
use archon_types::{Collection, MemoryChange, MemoryEntry, MemoryKind, MemorySearch, MemoryStore, Timestamp};

const ENTRIES: usize = 100_000;
const DIMENSIONS: usize = 384;
const EMBEDDER: &str = "bench:384";

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

    /// A word by Zipf's law over 30,000, as in texts: the tenth most frequent word is in a tenth as many.
    fn word(&mut self) -> String {
        let rank = (30_000_f64.powf(self.unit())) as u64;
        format!("w{rank}")
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| (self.unit() - 0.5) as f32).collect()
    }
}

fn near(random: &mut Random) -> MemorySearch {
    MemorySearch::words(random.text(6), 50).near(EMBEDDER, random.vector())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("memory.db");
    let mut random = Random(7);
    let entry = |random: &mut Random, n: usize| {
        let mut entry = MemoryEntry::new(format!("m{n}"), random.text(20), Timestamp::from_millis(n as u64));
        entry.kind = MemoryKind::Turn;
        entry.metadata.insert("session".into(), format!("s{}", n / 50).into());
        entry.collection = Collection::new(format!("user:u{}", n % 50)).expect("a name");
        entry
    };

    let lexical = SqliteMemory::open(dir.path().join("lexical.db")).expect("opens");
    let turns: Vec<MemoryEntry> = (0..5_000).map(|n| entry(&mut random, n)).collect();
    let start = Instant::now();
    for turn in turns {
        lexical.apply(vec![MemoryChange::put(turn)]).await.expect("kept");
    }
    let rate = 5_000.0 / start.elapsed().as_secs_f64();
    println!("lexical ingest, a transaction for each turn: {rate:.0} turns/s");
    let mut kept = Vec::new();
    kept.push((rate >= 1_000.0, "lexical ingest of at least 1,000 turns/s"));

    let store = SqliteMemory::open(&path).expect("opens");
    let start = Instant::now();
    for batch in 0..ENTRIES / 500 {
        let changes = (batch * 500..(batch + 1) * 500)
            .map(|n| MemoryChange::put(entry(&mut random, n).with_vector(EMBEDDER, random.vector())))
            .collect();
        store.apply(changes).await.expect("kept");
    }
    println!("ingest with vectors, 500 at once: {:.0}/s", ENTRIES as f64 / start.elapsed().as_secs_f64());
    drop(store);

    let start = Instant::now();
    let store = SqliteMemory::open(&path).expect("opens");
    let opened = start.elapsed();
    let question = near(&mut random);
    store.candidates(&question).await.expect("found");
    println!("open: {opened:?}; with the first question, which reads the vectors: {:?}", start.elapsed());
    kept.push((start.elapsed() <= Duration::from_millis(300), "opening, and the first question, in 300 ms"));

    queries(&store, &mut random, &mut kept).await;
    let missed: Vec<&str> = kept.iter().filter(|(kept, _)| !kept).map(|(_, what)| *what).collect();
    assert!(missed.is_empty(), "missed: {missed:?}");
}

/// Questions to the whole store, and to one tenant's part.
async fn queries(store: &SqliteMemory, random: &mut Random, kept: &mut Vec<(bool, &'static str)>) {
    for (what, scope) in
        [("all", Collection::root()), ("one of 50 tenants", Collection::new("user:u7").expect("a name"))]
    {
        let store = store.collection(scope).expect("within the root");
        for (kind, words, vector) in [("words", true, false), ("vector", false, true), ("hybrid", true, true)]
        {
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
            println!("{kind} query of {what}: median {:?}, p95 {:?}", times[100], times[190]);
            kept.push((
                times[190] <= Duration::from_millis(20) || kind != "hybrid",
                "p95 of hybrid queries of 20 ms",
            ));
        }
    }
}
