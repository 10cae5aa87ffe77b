//! Memories, their collections, and the traits of stores and embedders.
//!
//! Imports only `values`, `messages`, `bus` and `tools`.

mod collection;
mod memory_entry;
mod memory_store;

pub use collection::{Collection, MemoryError};
pub use memory_entry::{
    Embedder, Episodic, LongTerm, MemoryEntry, MemoryKind, MemoryQuery, Recalled, Working,
};
pub use memory_store::{
    Candidate, Damaged, Listing, MemoryCandidates, MemoryChange, MemoryFilter, MemoryOrder, MemoryPage,
    MemorySearch, MemoryStore, Validity,
};
