//! Options of a memory, each with a default.

use crate::rank::Calibration;

/// Options for finding, caching and showing memories.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// The maximum number of memories in a prompt. Default 3.
    pub recalled: usize,
    /// The relevance threshold for prompts, from 0 to 1, with the same meaning for every embedder. Default
    /// 0.7.
    pub threshold: f32,
    /// The calibration of the embedder's cosines; [`Calibration::measured`] measures it. Default: the known
    /// values for the embedder's id, or those of MiniLM.
    pub calibration: Option<Calibration>,
    /// The amount by which the threshold is lowered for a second search if the first search found nothing.
    /// Default 0.2.
    pub second_look: f32,
    /// The number of candidates that are ranked for each requested memory. Default 10, and at least 50
    /// candidates in all.
    pub pool: usize,
    /// The weights of the ranking. Default: measured weights.
    pub weights: crate::rank::Weights,
    /// The number of turns before and after a candidate that are ranked with it and may be in the answer.
    /// Default 2.
    pub neighbours: usize,
    /// The number of queries whose answers are cached until the next write. Default 64; 0 turns the cache
    /// off.
    pub cached: usize,
    /// The maximum number of texts in one call of the embedder. Default 64.
    pub batch: usize,
    /// The details that a prompt shows with a memory. Default: the text alone.
    pub show: Shown,
}

/// The details that a prompt shows with a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// The text alone.
    #[default]
    Text,
    /// The text, the time at which the memory was stored, and its relevance.
    TimeAndScore,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            recalled: 3,
            threshold: 0.7,
            calibration: None,
            second_look: 0.2,
            pool: 10,
            weights: crate::rank::Weights::default(),
            neighbours: 2,
            cached: 64,
            batch: 64,
            show: Shown::Text,
        }
    }
}
