//! How long a whole question to 100,000 memories in SQLite takes: candidates by words and by vector, their neighbours,
//! their order, and no text twice; and how long it takes to fill a prompt, which has room for more memories.
//! `cargo bench -p archon-evals --no-default-features`.
//!
//! The vectors are those of the hash embedder: what a model takes for the vector of a question is its own time.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a bench prints, and stops where it cannot go on"
)]

#[allow(dead_code, reason = "the vectors are made of the texts here")]
#[path = "../../crates/store/benches/memories/made_up.rs"]
mod made_up;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use archon_memory::{HashEmbedder, Memory};
use archon_store::SqliteMemory;
use archon_testkit::{SeededIds, VirtualClock};
use archon_types::{
    Collection, LongTerm as _, MemoryChange, MemoryEntry, MemoryQuery, MemoryStore as _, TokenEstimate,
};
use made_up::{Random, entry};

const ENTRIES: usize = 100_000;
const QUESTIONS: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = SqliteMemory::open(dir.path().join("memory.db")).expect("opens");
    let mut random = Random(7);
    for batch in 0..ENTRIES / 500 {
        let entries: Vec<MemoryEntry> =
            (batch * 500..(batch + 1) * 500).map(|n| entry(&mut random, n)).collect();
        let with_vector = |entry: MemoryEntry| {
            let vector = HashEmbedder::vector(&entry.content);
            MemoryChange::put(entry.with_vector(HashEmbedder::ID, vector))
        };
        store.apply(entries.into_iter().map(with_vector).collect()).await.expect("kept");
    }
    let mut slow = false;
    for (what, scope) in
        [("all", Collection::root()), ("one of 50 owners", Collection::new("user:u7").expect("a name"))]
    {
        let store = Arc::new(store.collection(scope).expect("within the root"));
        let memory = Memory::new(store, Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
            .with_embedder(Arc::new(HashEmbedder));
        memory.long_term().query(&MemoryQuery::new("the first reads the vectors")).await.expect("found");
        for prompt in [false, true] {
            let mut times = Vec::new();
            for _ in 0..QUESTIONS {
                let question = random.question();
                let start = Instant::now();
                match prompt {
                    false => {
                        drop(memory.long_term().query(&MemoryQuery::new(question)).await.expect("found"))
                    }
                    true => drop(memory.recall().context(&question, 3_333, &TokenEstimate).await),
                }
                times.push(start.elapsed());
            }
            times.sort();
            let (median, p95) = (times[QUESTIONS / 2], times[QUESTIONS * 95 / 100]);
            let asked = if prompt { "a prompt from" } else { "a question to" };
            println!("{asked} {what}: median {median:?}, p95 {p95:?}");
            slow |= p95 > Duration::from_millis(20) && !prompt;
        }
    }
    assert!(!slow, "p95 of hybrid queries has to be 20 ms");
}
