//! The weights of the ranking formula, and the calibration of an embedder's cosines.

use archon_types::{Embedder, MemoryError, Timestamp};
use archon_vectors::cosine;

use crate::embedding::vectors;

/// The weights of the parts of the ranking formula. The defaults were chosen on the first five LoCoMo
/// conversations (`cargo xtask eval memory`, docs/benchmarks.md). A part with the weight 0 is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// The weight of the share of the question's words that a memory has. Default 0.8.
    pub words: f32,
    /// The weight of the cosine similarity of the vectors. Default 0.5.
    pub meaning: f32,
    /// The weight of the score of the turn just before, which a memory often answers. Default 0.4.
    pub before: f32,
    /// The weight of the score of the turn just after. Default 0.2.
    pub after: f32,
    /// The factor on `before` and `after` for a neighbour that is one position farther away. Default 0.5.
    pub farther: f32,
    /// The weight of the session as a whole. Default 0.15.
    pub session: f32,
    /// The weight of the closeness to a time in the question. Default 0.5.
    pub time: f32,
    /// The weight of the speaker's name in the question. Default 0.1.
    pub speaker: f32,
    /// The amount that is subtracted if the memory is itself a question. Default 0.1.
    pub asks: f32,
    /// The weight of recency, if the question has a time of asking. Default 0.02.
    pub recency: f32,
    /// The number of days that halves the recency. Default 30.
    pub recency_half_life_days: f32,
    /// The weight of the importance, relative to the default importance. Default 0.1.
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
    /// Returns 1 for a memory of this moment, halved with each half-life. A time in the future counts as
    /// now.
    pub(super) fn recency_at(&self, now: Timestamp, at: Timestamp) -> f32 {
        let days = now.since(at).as_secs_f32() / 86_400.0;
        if self.recency_half_life_days > 0.0 { (-days / self.recency_half_life_days).exp2() } else { 0.0 }
    }
}

/// The calibration of one embedder's cosines. The same cosine can mean similar texts for one embedder and
/// unrelated texts for another, so a threshold for cosines is valid for one embedder only.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// Cosines up to this value count as 0.
    pub floor: f32,
    /// The cosine that only 1 % of the memories unrelated to a question reach.
    pub relevant: f32,
}

impl Default for Calibration {
    /// Returns the calibration for embedders that were not measured: the values of MiniLM, since most sentence
    /// embedders are similar to MiniLM.
    fn default() -> Self {
        MINILM
    }
}

/// The calibration of MiniLM, measured on questions and turns of the first five LoCoMo conversations.
const MINILM: Calibration = Calibration { floor: 0.0, relevant: 0.45 };

/// The [coverage](crate::rank) that only 1 % of the memories unrelated to a question reach.
const RELEVANT_COVERAGE: f32 = 0.3;

/// The relevance at the cosine [`Calibration::relevant`] and at the coverage [`RELEVANT_COVERAGE`], so that
/// the threshold for prompts is 0.7 with every embedder.
const RELEVANT: f32 = 0.7;

impl Calibration {
    /// Returns the calibration of the embedder with this [`id`](archon_types::Embedder::id), matched by
    /// prefix; the default for an unknown embedder.
    pub fn of(embedder: &str) -> Self {
        let known = CALIBRATIONS.iter().find(|(start, _)| embedder.starts_with(start));
        known.map_or_else(Self::default, |(_, calibration)| *calibration)
    }

    /// Measures the calibration of an embedder from the cosines of all pairs of `texts`, which must be about
    /// different subjects. A hundred sentences give 4,950 pairs, which is enough.
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
    /// The embedder's errors, and [`MemoryError::Embedding`] for fewer than two texts.
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
            let problem = format!("a calibration needs at least two texts, but got {}", texts.len());
            return Err(MemoryError::Embedding { embedder: embedder.id().to_owned(), problem });
        };
        // If all texts are alike, leave some distance between the two limits.
        let floor = floor.clamp(0.0, 1.0 - 3.0 * LEAST_ROOM);
        Ok(Self { floor, relevant: relevant.clamp(floor + LEAST_ROOM, 1.0 - LEAST_ROOM) })
    }

    /// Maps a cosine to a meaning score from 0 to 1.
    pub fn meaning(&self, cosine: f32) -> f32 {
        ((cosine - self.floor) / (1.0 - self.floor)).clamp(0.0, 1.0)
    }

    /// Computes the relevance of a memory, from 0 to 1, from its [coverage](crate::rank) and its cosine; the
    /// better of the two counts. The relevance is 0.7 at the value that only 1 % of unrelated memories reach.
    pub fn relevance(&self, coverage: f32, cosine: Option<f32>) -> f32 {
        let meaning = cosine.filter(|cosine| cosine.is_finite()).map_or(0.0, |cosine| self.meaning(cosine));
        scaled(coverage, RELEVANT_COVERAGE).max(scaled(meaning, self.meaning(self.relevant))).clamp(0.0, 1.0)
    }
}

/// The minimum distance between `floor` and `relevant`, and between `relevant` and 1.
const LEAST_ROOM: f32 = 0.01;

/// Maps a value by two straight lines: 0 to 0, `relevant` to [`RELEVANT`], 1 to 1.
fn scaled(value: f32, relevant: f32) -> f32 {
    if value < relevant {
        RELEVANT * value / relevant
    } else {
        RELEVANT + (1.0 - RELEVANT) * (value - relevant) / (1.0 - relevant)
    }
}

/// The measured embedders, by the prefix of their ids.
const CALIBRATIONS: &[(&str, Calibration)] =
    &[("all-minilm-l6-v2", MINILM), ("wordllama-256", Calibration { floor: 0.0, relevant: 0.27 })];
