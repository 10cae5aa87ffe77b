//! Options of a memory, each with a default.

use crate::rank::Calibration;

/// Options for finding, caching and showing memories.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Most memories in a prompt. Default 3.
    pub recalled: usize,
    /// The relevance threshold for prompts, from 0 to 1; the same for every embedder. Default 0.7.
    pub threshold: f32,
    /// Meaning of the embedder's cosines; [`Calibration::measured`] measures it. Default: the known values
    /// for the embedder's id, or those of MiniLM.
    pub calibration: Option<Calibration>,
    /// Amount by which the threshold is lowered for a second search if the first found nothing. Default 0.2.
    pub second_look: f32,
    /// Candidates that are ranked for each memory that is wanted. Default 10, at least 50 in all.
    pub pool: usize,
    /// Weights of the ranking. Default: measured ones.
    pub weights: crate::rank::Weights,
    /// Turns before and after a candidate that are ranked with it and may be in the answer. Default 2.
    pub neighbours: usize,
    /// Number of queries whose answers are cached until the next write. Default 64; 0 turns the cache off.
    pub cached: usize,
    /// Most texts in one call of the embedder. Default 64.
    pub batch: usize,
    /// Details shown with a memory in a prompt. Default: the text alone.
    pub show: Shown,
}

/// The details shown with a memory in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// Its text alone.
    #[default]
    Text,
    /// Also the time at which it was stored, and its relevance.
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
