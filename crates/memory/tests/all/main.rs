//! What the memories promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod at_once;
mod compression;
mod hash_embedder;
mod knowledge;
mod moves;
mod nested;
mod recall;
mod rules;
mod store;
mod summarize;
mod support;
mod updates;
mod upkeep;
