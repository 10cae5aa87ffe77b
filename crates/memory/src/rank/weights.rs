//! How much each part of the formula counts, and what the cosines of an embedder mean.

use archon_types::{Embedder, MemoryError, Timestamp};
use archon_vectors::cosine;

use crate::embedding::vectors;

/// How much each part of the formula counts. The default was chosen on the first five LoCoMo conversations
/// (`cargo xtask eval memory`, docs/benchmarks.md); a part with the weight 0 is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// The share of the question's words that a memory has. 0.8.
    pub words: f32,
    /// Cosine similarity of the vectors. 0.5.
    pub meaning: f32,
    /// What was said just before: a memory often answers it. 0.4.
    pub before: f32,
    /// What was said just after. 0.2.
    pub after: f32,
    /// What is left of these two for a neighbour one place farther. 0.5.
    pub farther: f32,
    /// The session as a whole. 0.15.
    pub session: f32,
    /// A time that the question names. 0.5.
    pub time: f32,
    /// The question names who said it. 0.1.
    pub speaker: f32,
    /// Taken off what asks instead of telling. 0.1.
    pub asks: f32,
    /// How young a memory is, if the question says when it is asked. 0.02.
    pub recency: f32,
    /// After how many days recency is halved. 30.
    pub recency_half_life_days: f32,
    /// How much a memory matters, against one of which nothing is known. 0.1.
    pub importance: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            words: 0.8,
            meaning: 0.5,
            before: 0.4,
            after: 0.2,
            farther: 0.5,
            session: 0.15,
            time: 0.5,
            speaker: 0.1,
            asks: 0.1,
            recency: 0.02,
            recency_half_life_days: 30.0,
            importance: 0.1,
        }
    }
}

impl Weights {
    /// 1 for what was just remembered, halved with each half-life. What is of the future counts as young.
    pub(super) fn recency_at(&self, now: Timestamp, at: Timestamp) -> f32 {
        let days = now.since(at).as_secs_f32() / 86_400.0;
        if self.recency_half_life_days > 0.0 { (-days / self.recency_half_life_days).exp2() } else { 0.0 }
    }
}

/// What the cosines of one embedder mean. They differ: what is close with one is far with another, so a threshold
/// belongs to the embedder that it was measured with.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// Cosines up to here say nothing.
    pub floor: f32,
    /// 99 of 100 memories that have nothing to do with a question are farther from it than this.
    pub relevant: f32,
}

impl Default for Calibration {
    /// For an embedder that nobody measured: as for MiniLM, which most sentence embedders are like.
    fn default() -> Self {
        MINILM
    }
}

/// Measured on the first five LoCoMo conversations, question against turn.
const MINILM: Calibration = Calibration { floor: 0.0, relevant: 0.45 };

/// 99 of 100 memories that have nothing to do with a question have less of its words than this.
const RELEVANT_COVERAGE: f32 = 0.3;

/// The relevance of what is just relevant: the threshold for prompts is 0.7 with every embedder.
const RELEVANT: f32 = 0.7;

impl Calibration {
    /// That of the embedder with this [`id`](archon_types::Embedder::id), by how the id begins; the default for an
    /// unknown one.
    pub fn of(embedder: &str) -> Self {
        let known = CALIBRATIONS.iter().find(|(start, _)| embedder.starts_with(start));
        known.map_or_else(Self::default, |(_, calibration)| *calibration)
    }

    /// Measures an embedder: how near texts are to each other that have nothing to do with one another. `texts` are
    /// about as many things as they are many; a hundred sentences of a program's own give 4,950 pairs, which is enough.
    ///
    /// ```
    /// use archon_memory::{HashEmbedder, MemoryOptions, rank::Calibration};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let texts = ["The build takes four minutes.", "Alice drinks tea.", "Paris is in France.", "It rained in May."];
    /// let mut options = MemoryOptions::default();
    /// options.calibration = Some(Calibration::measured(&HashEmbedder, &texts.map(str::to_owned)).await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The embedder's; and fewer than two texts, which have no pair.
    pub async fn measured(embedder: &dyn Embedder, texts: &[String]) -> Result<Self, MemoryError> {
        let vectors = vectors(embedder, texts).await?;
        let mut cosines = Vec::new();
        for (place, one) in vectors.iter().enumerate() {
            cosines.extend(vectors[place + 1..].iter().map(|other| cosine(one, other)));
        }
        cosines.retain(|cosine| cosine.is_finite());
        cosines.sort_by(f32::total_cmp);
        let at = |share: usize| cosines.get(cosines.len().saturating_sub(1) * share / 100).copied();
        let (Some(floor), Some(relevant)) = (at(5), at(99)) else {
            let problem = format!("it is measured with two texts or more, and {} came", texts.len());
            return Err(MemoryError::Embedding { embedder: embedder.id().to_owned(), problem });
        };
        // Texts that are all alike leave no room between what says nothing and what is relevant.
        let floor = floor.clamp(0.0, 1.0 - 3.0 * LEAST_ROOM);
        Ok(Self { floor, relevant: relevant.clamp(floor + LEAST_ROOM, 1.0 - LEAST_ROOM) })
    }

    /// What a cosine says, from 0 to 1.
    pub fn meaning(&self, cosine: f32) -> f32 {
        ((cosine - self.floor) / (1.0 - self.floor)).clamp(0.0, 1.0)
    }

    /// How far a memory is about the question by itself, from the share of its words and the cosine: 0.7 where one
    /// of the two says more than 99 of 100 memories that have nothing to do with it, 0 and 1 at their ends.
    pub fn relevance(&self, coverage: f32, cosine: Option<f32>) -> f32 {
        let meaning = cosine.filter(|cosine| cosine.is_finite()).map_or(0.0, |cosine| self.meaning(cosine));
        scaled(coverage, RELEVANT_COVERAGE).max(scaled(meaning, self.meaning(self.relevant))).clamp(0.0, 1.0)
    }
}

/// What lies at least between what says nothing and what is relevant, and between that and what is the same.
const LEAST_ROOM: f32 = 0.01;

/// In two straight lines: 0 at 0, [`RELEVANT`] at `relevant`, 1 at 1.
fn scaled(value: f32, relevant: f32) -> f32 {
    if value < relevant {
        RELEVANT * value / relevant
    } else {
        RELEVANT + (1.0 - RELEVANT) * (value - relevant) / (1.0 - relevant)
    }
}

/// The embedders that were measured, by how their ids begin.
const CALIBRATIONS: &[(&str, Calibration)] = &[("all-minilm-l6-v2", MINILM)];
