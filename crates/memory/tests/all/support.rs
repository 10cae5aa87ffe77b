//! What the tests share.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use archon_memory::{HashEmbedder, InMemoryStore, Memory};
use archon_testkit::{SeededIds, VirtualClock};
pub(crate) use archon_testkit::{cases, first_seed as seed};
use archon_types::{BoxFuture, Collection, Embedder, MemoryEntry, MemoryError, Timestamp, Trust};

/// A memory of one owner, in a store of this process, with a clock that tests move.
pub(crate) fn memory(of: &str) -> (Memory, VirtualClock) {
    let clock = VirtualClock::new();
    let store = InMemoryStore::new().collection(Collection::new(of).unwrap()).unwrap();
    let memory = Memory::new(Arc::new(store), Arc::new(clock.clone()), Arc::new(SeededIds::new(1)));
    (memory.with_embedder(Arc::new(HashEmbedder)), clock)
}

pub(crate) fn entry(role: &str, text: &str) -> MemoryEntry {
    let mut entry = MemoryEntry::of_message("", role, text, Timestamp::default());
    entry.trust = match role {
        "user" => Trust::Trusted,
        "assistant" => Trust::Model,
        _ => Trust::Untrusted,
    };
    entry
}

pub(crate) fn contents<'a>(entries: impl IntoIterator<Item = &'a MemoryEntry>) -> Vec<&'a str> {
    entries.into_iter().map(|entry| entry.content.as_str()).collect()
}

/// An embedder that fails until it is told not to, and counts its calls.
#[derive(Default)]
pub(crate) struct Moody {
    pub(crate) works: AtomicBool,
    pub(crate) calls: AtomicUsize,
}

impl Embedder for Moody {
    fn id(&self) -> &str {
        "moody:384"
    }

    fn dimensions(&self) -> usize {
        384
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            if self.works.load(Ordering::SeqCst) {
                return HashEmbedder.embed(texts).await;
            }
            Err(MemoryError::Embedding { embedder: "moody".into(), problem: "not today".into() })
        })
    }
}
