//! Journals: where the logs of runs are kept.
//!
//! | journal | keeps logs | for |
//! |---|---|---|
//! | [`MemoryJournal`] | in this process, unserialised | tests, short-lived runs, benchmarks |
//! | [`JsonlJournal`] (feature `jsonl`, a default) | one file per run, one line per record | everything that must survive |
//!
//! Both hold to the same rules: one writer per run, records numbered from 0 without gaps, ids that
//! could be file names, and a log without records is a run that does not exist.

#[cfg(feature = "jsonl")]
mod blocking;
#[cfg(feature = "jsonl")]
mod jsonl;
mod memory;
mod rules;

#[cfg(feature = "jsonl")]
pub use jsonl::{JsonlJournal, Salvaged};
pub use memory::MemoryJournal;
