//! The choices of a memory, each with a default.

use crate::rank::Calibration;

/// How memories are found, kept and thrown away.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Most memories that a prompt is given. Default 3.
    pub recalled: usize,
    /// How relevant a memory must be to come into a prompt, from 0 to 1; the same for every embedder. Default 0.7.
    pub threshold: f32,
    /// What the embedder's cosines mean; [`Calibration::measured`] finds it out. Default: as known for the embedder's
    /// id, and as for MiniLM where it is not known.
    pub calibration: Option<Calibration>,
    /// How much lower a second look goes if the first found nothing. Default 0.2.
    pub second_look: f32,
    /// Candidates that are ordered for each memory that is wanted. Default 10, at least 50 in all.
    pub pool: usize,
    /// How much each part of the order counts. Default: as measured.
    pub weights: crate::rank::Weights,
    /// Turns before and after a candidate that are looked at with it, and may come into the answer. Default 2.
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
