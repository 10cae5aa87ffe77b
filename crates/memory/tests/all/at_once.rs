//! Two who change one store at once, as two processes do: each has a memory of its own, and no lock is shared.

use std::sync::{Arc, Mutex};

use archon_memory::{Compressor, Fact, InMemoryStore, Knowledge, Learnt, Memory, RuleExtractor};
use archon_testkit::{FnProvider, SeededIds, VirtualClock, all_entries};
use archon_types::{
    BoxFuture, Collection, Episodic, Listing, MemoryCandidates, MemoryChange, MemoryEntry, MemoryError,
    MemoryFilter, MemoryKind, MemoryPage, MemorySearch, MemoryStore, Timestamp, TokenEstimate, Trust,
    Working,
};
use serde_json::{Map, json};

use crate::support::entry;

/// What somebody else does.
type Work = BoxFuture<'static, ()>;

/// A store in which somebody else is quicker: it does its work just before the first change.
struct Overtaken {
    inner: Arc<dyn MemoryStore>,
    other: Mutex<Option<Work>>,
}

impl MemoryStore for Overtaken {
    fn scope(&self) -> &Collection {
        self.inner.scope()
    }

    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        Box::pin(async move {
            let other = self.other.lock().unwrap().take();
            if let Some(other) = other {
                other.await;
            }
            self.inner.apply(changes).await
        })
    }

    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        self.inner.candidates(search)
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        self.inner.list(listing)
    }
}

fn memory_of(store: Arc<dyn MemoryStore>, ids: u16) -> Memory {
    Memory::new(store, Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(ids)))
}

/// Two memories of one store.
fn two() -> (Memory, Arc<dyn MemoryStore>) {
    let store: Arc<dyn MemoryStore> =
        Arc::new(InMemoryStore::new().collection(Collection::new("user:a").unwrap()).unwrap());
    (memory_of(store.clone(), 1), store)
}

/// The second memory, in whose first change the first is quicker.
fn overtaken(store: &Arc<dyn MemoryStore>, other: impl Future<Output = ()> + Send + 'static) -> Memory {
    let other = Mutex::new(Some(Box::pin(other) as Work));
    memory_of(Arc::new(Overtaken { inner: store.clone(), other }), 2)
}

fn lives(place: &str, since: u64) -> Fact {
    Fact::new("Alice", "lives in", place).since(Timestamp::from_millis(since)).trusted(Trust::Trusted)
}

async fn facts(store: &Arc<dyn MemoryStore>) -> Vec<(String, Option<u64>)> {
    let facts = all_entries(&**store, MemoryFilter::all().of(&[MemoryKind::Fact])).await;
    facts.into_iter().map(|fact| (fact.content, fact.valid_to.map(Timestamp::as_millis))).collect()
}

fn note(id: &str, text: &str) -> MemoryEntry {
    let mut entry = entry("user", text);
    (entry.id, entry.kind) = (id.into(), MemoryKind::Note);
    entry
}

// spec: M-25, M-29
#[tokio::test]
async fn concurrent_facts_one_ends_the_other() {
    let (first, store) = two();
    let second = overtaken(&store, async move {
        first.knowledge().learn([lives("Bern", 100)]).await.unwrap();
    });
    let learnt = second.knowledge().learn([lives("Basel", 200)]).await.unwrap();
    assert_eq!(learnt, [Learnt::New { ended: 1 }]);
    assert_eq!(
        facts(&store).await,
        [("Alice lives in Bern".into(), Some(200)), ("Alice lives in Basel".into(), None)]
    );
    // The one that is imported too, in one change with what it ends.
    let (_, of) = two();
    memory_of(of.clone(), 9).knowledge().learn([lives("Chur", 300)]).await.unwrap();
    let lines = memory_of(of, 9).export().await.unwrap().join("\n");
    let (first, store) = two();
    let second = overtaken(&store, async move {
        first.knowledge().learn([lives("Bern", 100)]).await.unwrap();
    });
    second.import(lines.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    assert_eq!(
        facts(&store).await,
        [("Alice lives in Bern".into(), Some(300)), ("Alice lives in Chur".into(), None)]
    );
}

// spec: M-25
#[tokio::test]
async fn concurrent_facts_first_cardinality_wins() {
    let likes = |what: &str| Fact::new("Alice", "likes", what).trusted(Trust::Trusted);
    let (first, store) = two();
    let second = overtaken(&store, async move {
        first.knowledge().learn([likes("tea").one_of_many()]).await.unwrap();
    });
    second.knowledge().learn([likes("jazz")]).await.unwrap();
    assert_eq!(
        facts(&store).await,
        [("Alice likes tea".into(), None), ("Alice likes jazz".into(), None)],
        "there are many"
    );
}

// spec: M-26
#[tokio::test]
async fn concurrent_untrusted_import_adds_no_turns_to_a_trusted_session() {
    let (_, of) = two();
    memory_of(of.clone(), 9).conversation("s").append(entry("user", "An import's")).await.unwrap();
    let lines = memory_of(of, 9).export().await.unwrap().join("\n");
    let (first, store) = two();
    let second = overtaken(&store, async move {
        first.conversation("s").append(entry("user", "A person's")).await.unwrap();
    });
    let imported = second.import(lines.as_bytes(), Trust::Untrusted, |_| {}).await.unwrap();
    assert_eq!((imported.stored, imported.refused.len()), (0, 1));
    assert_eq!(all_entries(&*store, MemoryFilter::all()).await.len(), 1);
}

// spec: M-13, M-14
#[tokio::test]
async fn concurrent_clear_during_a_summary_stays_cleared() {
    let (first, store) = two();
    for n in 0..4 {
        first.conversation("s").append(entry("user", &format!("The secret number is {n}."))).await.unwrap();
    }
    let cleared = first.clone();
    let second = overtaken(&store, async move { cleared.conversation("s").clear().await.unwrap() });
    let model = FnProvider::new(|_, _| {
        FnProvider::text(r#"{"summary": "The secret number is 3.", "facts": {"number": 3}}"#)
    });
    let compressor = Compressor::new(second.clone(), Arc::new(model), "m");
    compressor.compress(&second.conversation("s"), 1, &TokenEstimate).await.unwrap();
    assert_eq!(all_entries(&*store, MemoryFilter::all()).await, []);
}

// spec: M-23, M-25
#[tokio::test]
async fn concurrent_forget_during_extraction_stays_forgotten() {
    let (first, store) = two();
    let mut turn = Knowledge::mark_unread(entry("user", "I live in Bern."), &RuleExtractor);
    (turn.id, turn.kind) = ("turn".into(), MemoryKind::Turn);
    first.keep(vec![turn.clone()]).await.unwrap();
    let second = overtaken(&store, async move {
        assert!(first.forget("turn").await.unwrap());
    });
    let learnt = second.knowledge().read(&RuleExtractor, "user", &turn).await.unwrap();
    assert_eq!(learnt, []);
    assert_eq!(all_entries(&*store, MemoryFilter::all()).await, []);
}

// spec: M-25
#[tokio::test]
async fn concurrent_forget_of_a_text_removes_its_new_fact() {
    let (first, store) = two();
    let mut turn = Knowledge::mark_unread(entry("user", "I live in Bern."), &RuleExtractor);
    (turn.id, turn.kind) = ("turn".into(), MemoryKind::Turn);
    first.keep(vec![turn.clone()]).await.unwrap();
    first.knowledge().learn([lives("Rome", 1)]).await.unwrap();
    let second = overtaken(&store, async move {
        assert_eq!(first.knowledge().read(&RuleExtractor, "Alice", &turn).await.unwrap().len(), 1);
    });
    assert!(second.forget("turn").await.unwrap());
    assert_eq!(facts(&store).await, [("Alice lives in Rome".into(), None)]);
}

// spec: M-03
#[tokio::test]
async fn concurrent_model_value_does_not_overwrite_a_persons_value() {
    let (first, store) = two();
    let second = overtaken(&store, async move {
        first.task("t").set("owner", json!("Anna")).await.unwrap();
    });
    let values: Map<_, _> =
        [("owner".to_owned(), json!("Bob")), ("due".to_owned(), json!("May"))].into_iter().collect();
    assert_eq!(second.task("t").update_with_trust(values, Trust::Model).await.unwrap(), 1);
    let values = second.task("t").to_map().await.unwrap();
    assert_eq!((&values["owner"], &values["due"]), (&json!("Anna"), &json!("May")));
}

// spec: M-19
#[tokio::test]
async fn concurrent_rewrite_survives_merge_and_evict() {
    for evict in [false, true] {
        let (first, store) = two();
        let mut important = note("b", "Tea at five");
        important.importance = Some(0.9);
        first.keep(vec![note("a", "Tea at five"), important]).await.unwrap();
        let renewed = first.clone();
        let second = overtaken(&store, async move {
            for id in ["a", "b"] {
                renewed.keep(vec![note(id, &format!("Coffee at six, says {id}"))]).await.unwrap();
            }
        });
        if evict {
            let counts = second.evict(&archon_memory::EvictionLimits::entries(1)).await.unwrap();
            assert_eq!(counts.evicted, 0);
        } else {
            assert_eq!(second.merge_similar().await.unwrap(), 0);
        }
        let texts: Vec<String> =
            all_entries(&*store, MemoryFilter::all()).await.into_iter().map(|entry| entry.content).collect();
        assert_eq!(texts, ["Coffee at six, says a", "Coffee at six, says b"]);
    }
}

// spec: M-29
#[tokio::test]
async fn learn_that_always_conflicts_fails_without_a_change() {
    struct Always(Arc<dyn MemoryStore>);
    impl MemoryStore for Always {
        fn scope(&self) -> &Collection {
            self.0.scope()
        }

        fn apply(&self, _: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
            Box::pin(async { Err(MemoryError::Changed) })
        }

        fn candidates<'a>(
            &'a self,
            search: &'a MemorySearch,
        ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
            self.0.candidates(search)
        }

        fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
            self.0.list(listing)
        }
    }
    let (_, store) = two();
    let memory = memory_of(Arc::new(Always(store.clone())), 3);
    let error = memory.knowledge().learn([lives("Bern", 1)]).await.unwrap_err();
    assert!(matches!(error, MemoryError::Changed), "{error}");
    assert_eq!(error.advice(), "read the memories and make the change again");
    assert_eq!(all_entries(&*store, MemoryFilter::all()).await, []);
}
