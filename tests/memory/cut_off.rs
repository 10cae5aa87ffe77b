//! Changes of several entries that are cut off, at each place where they can be, in every store: all of it, or nothing.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    SystemClock,
    memory::{Fact, HashEmbedder, InMemoryStore, Knowledge, Memory, RuleExtractor},
    types::{
        BoxFuture, Collection, Listing, MemoryCandidates, MemoryChange, MemoryEntry, MemoryError, MemoryPage,
        MemorySearch, MemoryStore, Timestamp, Trust,
    },
};
use archon_testkit::{SeededIds, Trial, trial};

use crate::memory::{
    collections::of,
    places::{POSTGRES, Place},
};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(facts_are_learnt_and_forgotten_whole_or_not_at_all),
    trial!(facts_are_learnt_and_forgotten_whole_or_not_at_all_in_sqlite),
    trial!(facts_are_learnt_and_forgotten_whole_or_not_at_all_in_postgres).needs(&POSTGRES),
];

/// A store that dies after some changes.
struct Dying {
    store: Arc<dyn MemoryStore>,
    left: AtomicUsize,
}

impl MemoryStore for Dying {
    fn scope(&self) -> &Collection {
        self.store.scope()
    }

    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            let died = || {
                Err(MemoryError::Storage {
                    action: "write to",
                    place: "here".into(),
                    source: "it died".into(),
                })
            };
            return Box::pin(async move { died() });
        }
        self.store.apply(changes)
    }

    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        self.store.candidates(search)
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        self.store.list(listing)
    }
}

fn memory(store: Arc<dyn MemoryStore>) -> Memory {
    Memory::new(store, Arc::new(SystemClock), Arc::new(SeededIds::new(1)))
        .with_embedder(Arc::new(HashEmbedder))
}

/// Does `work` with a store that dies after none, one, two changes and so on, until it does not. What is there after
/// each death is what was there before.
async fn check(store: &Arc<dyn MemoryStore>, work: impl AsyncFn(Memory) -> Result<(), MemoryError>) {
    let before = memory(store.clone()).export().await.unwrap();
    for left in 0.. {
        let dying = Dying { store: store.clone(), left: AtomicUsize::new(left) };
        let done = work(memory(Arc::new(dying))).await;
        let after = memory(store.clone()).export().await.unwrap();
        if done.is_ok() {
            assert_ne!(after, before, "it does something");
            return;
        }
        assert_eq!(after, before, "dead after {left} changes");
    }
}

fn lives(place: &str, since: u64) -> Fact {
    Fact::new("user", "lives in", place).since(Timestamp::from_millis(since)).trusted(Trust::Trusted)
}

async fn check_all(store: Arc<dyn MemoryStore>) {
    let memory = memory(store.clone());
    let mut turn = MemoryEntry::of_message(
        "t",
        "user",
        "I live in Basel. I like tea. My name is Anna.",
        Timestamp::from_millis(200),
    );
    turn.trust = Trust::Trusted;
    let turn = Knowledge::mark_unread(turn, &RuleExtractor);
    memory.keep(vec![turn.clone()]).await.unwrap();
    memory.knowledge().learn([lives("Bern", 100)]).await.unwrap();
    // Three facts, one of which ends another, and the mark that they are yet to be learnt.
    check(&store, async |memory| memory.knowledge().read(&RuleExtractor, "user", &turn).await.map(drop))
        .await;
    assert!(memory.knowledge().unread(&RuleExtractor, None, 1).await.unwrap().entries.is_empty());
    let place = async |time| {
        let facts = memory.knowledge().as_of("user", "lives in", Timestamp::from_millis(time)).await.unwrap();
        facts[0].object.clone()
    };
    assert_eq!((place(150).await, place(250).await), ("Bern".to_owned(), "Basel".to_owned()));
    // And what they are gone with: Bern holds on.
    check(&store, async |memory| memory.forget("t").await.map(drop)).await;
    assert_eq!(place(250).await, "Bern");
    let left: Vec<_> =
        memory.knowledge().about("user").await.unwrap().into_iter().map(|fact| fact.object).collect();
    assert_eq!(left, ["Bern"]);
}

// spec: M-25
async fn facts_are_learnt_and_forgotten_whole_or_not_at_all() {
    check_all(Arc::new(InMemoryStore::new().collection(of("user:x")).unwrap())).await;
}

// spec: M-25
async fn facts_are_learnt_and_forgotten_whole_or_not_at_all_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check_all(Place::sqlite(dir.path()).open(&of("user:x")).await).await;
}

// spec: M-25
async fn facts_are_learnt_and_forgotten_whole_or_not_at_all_in_postgres() {
    let place = Place::postgres("archon_test_cut_off").await;
    check_all(place.open(&of("user:x")).await).await;
    place.drop().await;
}
