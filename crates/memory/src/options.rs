//! Options of a memory, each with a default.

/// Options for finding, caching and showing memories.
///
/// ```
/// use archon_memory::{MemoryOptions, rank};
///
/// // Recent memories before older ones, for questions about the last days.
/// let mut weights = rank::Weights::default();
/// weights.recency = 0.2;
/// let mut options = MemoryOptions::default();
/// options.weights = weights;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// The maximum number of memories in a prompt. Default 40; the token budget is usually used up before.
    pub recalled: usize,
    /// The relevance, from 0 to 1, that the best memory must have: otherwise a prompt gets no memories, because the
    /// question is about something else. For a fact, or with at most 100 memories, five eighths of this value are
    /// enough. Default 0.36; with 0, any memory is relevant enough.
    pub threshold: f32,
    /// The maximum number of characters of a memory in a prompt. Of a longer memory, the prompt gets only the part that
    /// fits the question best. Default 600.
    pub part: usize,
    /// The weights of the ranking. Default: weights that were chosen by measurement.
    pub weights: crate::rank::Weights,
    /// The number of turns before and after a candidate that are ranked with it and may be in the answer.
    /// Default 2.
    pub neighbours: usize,
    /// The number of queries whose answers are cached. An answer is valid until the next write or the end of the
    /// clock's minute. Default 64; 0 turns the cache off.
    pub cached: usize,
    /// The maximum number of texts in one call of the embedder. Default 64.
    pub batch: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            recalled: 40,
            threshold: 0.36,
            part: 600,
            weights: crate::rank::Weights::default(),
            neighbours: 2,
            cached: 64,
            batch: 64,
        }
    }
}
