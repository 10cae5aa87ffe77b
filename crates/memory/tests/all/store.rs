//! The store in this process.

use std::sync::Arc;

use archon_memory::InMemoryStore;
use archon_testkit::{check_memory_store, foreign_memories};
use archon_types::{Collection, MemoryStore};

use crate::support::{cases, seed};

fn open(store: &InMemoryStore) -> impl Fn(&Collection) -> Arc<dyn MemoryStore> + Send + Sync {
    let store = store.clone();
    move |name| Arc::new(store.collection(name.clone()).unwrap())
}

// spec: M-06, M-20, M-27, M-28
#[tokio::test]
async fn memory_store_passes_the_shared_checks() {
    check_memory_store(&open(&InMemoryStore::new())).await;
}

// spec: M-27
#[tokio::test]
async fn memory_store_random_queries_return_no_foreign_entries() {
    let store = InMemoryStore::new();
    assert_eq!(foreign_memories(&open(&store), seed(), cases(20_000, 1_000_000)).await, 0);
}

// spec: M-29
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_share_it() {
    use archon_types::{MemoryChange, MemoryEntry, MemoryFilter, MemorySearch, Timestamp};
    let store = InMemoryStore::new().collection(Collection::new("shared").unwrap()).unwrap();
    let work = |task: u64| {
        let store = store.clone();
        async move {
            for n in 0..50 {
                let entry =
                    MemoryEntry::new(format!("{task}-{n}"), "shared words", Timestamp::from_millis(n));
                store.apply(vec![MemoryChange::put(entry)]).await.unwrap();
                store.candidates(&MemorySearch::words("words", 3)).await.unwrap();
            }
        }
    };
    let tasks: Vec<_> = (0..8).map(|task| tokio::spawn(work(task))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let all = archon_testkit::all_entries(&store, MemoryFilter::all()).await;
    assert_eq!(all.len(), 400);
    assert!(all.windows(2).all(|pair| pair[0].position < pair[1].position));
}
