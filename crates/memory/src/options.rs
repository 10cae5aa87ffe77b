//! The choices of a memory, each with a default.

use std::time::Duration;

use crate::HashEmbedder;

/// How memories are found, kept and thrown away.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Most memories that a prompt is given. Default 3.
    pub recalled: usize,
    /// Cosine similarity that a memory must have to be found by its vector; what suits the embedder if unset
    /// ([`default_threshold`]).
    pub threshold: Option<f32>,
    /// How much lower a second look goes if the first found nothing. Default 0.2.
    pub second_look: f32,
    /// Texts that are this alike are the same memory: cosine similarity, or share of common words. Default 0.95.
    pub near_duplicate: f32,
    /// How long until a memory's recency counts half. Default 30 days.
    pub half_life: Duration,
    /// How much recency and importance may add to a score of at most 1. Default 0.1 each.
    pub recency_weight: f32,
    /// See [`recency_weight`](Self::recency_weight).
    pub importance_weight: f32,
    /// Turns before and after a remembered turn that come with it. Default 0.
    pub neighbours: usize,
    /// Questions whose answers are kept until something is written. Default 64; 0 keeps none.
    pub cached: usize,
    /// Texts that an embedder is given at once. Default 64.
    pub batch: usize,
    /// Whether a prompt shows when a memory is from. Default: it does not.
    pub show: Shown,
}

/// What stands beside a memory in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// Its text alone.
    #[default]
    Text,
    /// When it was remembered, and how well it fits.
    TimeAndScore,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            recalled: 3,
            threshold: None,
            second_look: 0.2,
            near_duplicate: 0.95,
            half_life: Duration::from_secs(30 * 24 * 3600),
            recency_weight: 0.1,
            importance_weight: 0.1,
            neighbours: 0,
            cached: 64,
            batch: 64,
            show: Shown::Text,
        }
    }
}

/// The cosine similarity from which on texts are related, by embedder: 0.7 unless known better.
pub fn default_threshold(embedder: &str) -> f32 {
    match embedder {
        // Shares of common words and word parts: unrelated texts stay below 0.1 on the whole.
        HashEmbedder::ID => 0.15,
        _ => 0.7,
    }
}
