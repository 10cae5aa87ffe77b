//! Several who learn at once from stores that each opened for itself, as processes do: nobody's fact is lost, and in the
//! end one holds.

use std::sync::Arc;

use archon::{
    SystemClock,
    memory::{Fact, Memory},
    types::{Listing, MemoryEntry, MemoryFilter, MemoryKind, MemoryOrder, MemoryStore, Timestamp, Trust},
};
use archon_testkit::{SeededIds, Trial, cases, trial};
use tokio::sync::Barrier;

use crate::memory::{
    collections::of,
    places::{POSTGRES, Place},
};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(concurrent_facts_leave_one_valid_in_sqlite).on_threads(4),
    trial!(concurrent_facts_leave_one_valid_in_postgres).needs(&POSTGRES).on_threads(4),
];

const WHO: u16 = 4;

fn memory(store: Arc<dyn MemoryStore>, who: u16) -> Memory {
    Memory::new(store, Arc::new(SystemClock), Arc::new(SeededIds::new(who)))
}

/// Each learns where Alice lived at times of its own, and takes some of it back again.
async fn learn(memory: Memory, who: u16, rounds: u64, start: Arc<Barrier>) {
    let knowledge = memory.knowledge();
    start.wait().await;
    for round in 0..rounds {
        let place = format!("Town{who}x{round}");
        let since = Timestamp::from_millis(1 + round * u64::from(WHO) + u64::from(who));
        let fact = Fact::new("Alice", "lives in", place.clone()).since(since).trusted(Trust::Trusted);
        knowledge.learn([fact]).await.unwrap();
        if round % 3 == 2 {
            let learnt =
                facts(&memory).await.into_iter().find(|fact| fact.content.ends_with(&place)).unwrap();
            assert!(memory.forget(&learnt.id).await.unwrap());
        }
    }
}

async fn facts(memory: &Memory) -> Vec<MemoryEntry> {
    let filter = MemoryFilter::all().of(&[MemoryKind::Fact]);
    memory.store().list(&Listing::new(filter, MemoryOrder::First, 10_000)).await.unwrap().entries
}

async fn check(place: &Place) {
    let rounds = cases(12, 60);
    let (mut tasks, start) = (Vec::new(), Arc::new(Barrier::new(usize::from(WHO))));
    for who in 0..WHO {
        let memory = memory(place.open(&of("user:x")).await, who);
        tasks.push(tokio::spawn(learn(memory, who, rounds, start.clone())));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut facts = facts(&memory(place.open(&of("user:x")).await, WHO)).await;
    facts.sort_by_key(|fact| fact.valid_from);
    assert_eq!(facts.len() as u64, u64::from(WHO) * (rounds - rounds / 3));
    // Each ends where the next begins, and the last holds.
    let ends: Vec<_> = facts.iter().map(|fact| fact.valid_to).collect();
    let begins: Vec<_> = facts.iter().skip(1).map(|fact| fact.valid_from).chain([None]).collect();
    assert_eq!(ends, begins);
}

// spec: M-25, M-29
async fn concurrent_facts_leave_one_valid_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check(&Place::sqlite(dir.path())).await;
}

// spec: M-25, M-29
async fn concurrent_facts_leave_one_valid_in_postgres() {
    let place = Place::postgres("archon_test_at_once").await;
    check(&place).await;
    place.drop().await;
}
