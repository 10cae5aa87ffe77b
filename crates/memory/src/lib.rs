//! Memories: what was said, what is at hand, and what is kept for good.
//!
//! A store (`archon_types::MemoryStore`) holds entries and gives back candidates with raw scores. All else is here:
//!
//! | to | there is |
//! |---|---|
//! | keep entries in this process | [`InMemoryStore`] |
//! | order candidates of words and of meaning into one list | [`rank`] |

mod in_memory;
pub mod rank;
mod words;

pub use in_memory::InMemoryStore;
