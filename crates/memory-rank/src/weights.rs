//! The weights of the ranking formula.

use archon_types::Timestamp;

/// The weights of the parts of the ranking formula, relative to the words of the question, whose weight is 1. The
/// defaults were chosen on conversations of people and of a person with an assistant (`cargo xtask eval memory`,
/// docs/benchmarks.md). A part with the weight 0 is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// The weight of the cosine similarity of the vectors. Default 1.
    pub meaning: f32,
    /// The weight of the scores of the turns just before and just after. The turns one place farther away get half of
    /// this weight. Default 0.2.
    pub neighbours: f32,
    /// The weight of the closeness to a time in the question. Default 0.5.
    pub time: f32,
    /// The amount that is added if the question contains the speaker's name, and subtracted if an assistant or a
    /// tool is the speaker. Default 0.2.
    pub speaker: f32,
    /// The weight of recency. Recency is 1 now and halves every 30 days; it counts only if the question has a time of
    /// asking. Default 0.02.
    pub recency: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { meaning: 1.0, neighbours: 0.2, time: 0.5, speaker: 0.2, recency: 0.02 }
    }
}

/// The number of days that halves the recency.
const HALF_LIFE_DAYS: f32 = 30.0;

/// Returns 1 for a memory of this moment, halved with each half-life. A time in the future counts as now.
pub(super) fn recency(now: Timestamp, at: Timestamp) -> f32 {
    (-now.since(at).as_secs_f32() / 86_400.0 / HALF_LIFE_DAYS).exp2()
}

/// Returns the relevance of a memory to a question, from 0 to 1: the greater one of its cosine and of the share of the
/// question's words that it has. Both are below 0.36 for most memories that have nothing to do with a question.
pub(super) fn relevance(share: f32, cosine: Option<f32>) -> f32 {
    let cosine = cosine.filter(|cosine| cosine.is_finite()).unwrap_or(0.0);
    share.max(cosine).clamp(0.0, 1.0)
}
