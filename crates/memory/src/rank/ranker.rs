//! Ranks candidates with the formula of the parent module.

use std::collections::{HashMap, HashSet};

use archon_types::{Candidate, MemoryEntry, Timestamp};

use super::{Analyzer, Calibration, RankQuestion, Weights, lexical::Counts};
use crate::words::normalized_words;

/// A memory to rank. A [`Candidate`] of a store becomes an item by `From`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Item<'a> {
    /// The text of the memory.
    pub text: &'a str,
    /// Additional words for the ranking, such as captions of pictures or labels. A store searches the
    /// contents alone, so these words change only the order of the candidates.
    pub labels: &'a str,
    /// The speaker of the text.
    pub speaker: Option<&'a str>,
    /// The session of the memory; without a session it has no neighbours.
    pub session: Option<&'a str>,
    /// The position in the session: the turn just before has a position that is less by 1.
    pub place: u64,
    /// The time at which the text was said.
    pub at: Timestamp,
    /// The cosine similarity with the question; `None` unless both have a vector.
    pub cosine: Option<f32>,
    /// The importance, from 0 to 1.
    pub importance: Option<f32>,
}

/// The metadata key for the session of a memory.
pub const SESSION: &str = "session";

/// The metadata key for additional words in the ranking of a memory; the search does not use them.
pub const LABELS: &str = "labels";

impl<'a> From<&'a Candidate> for Item<'a> {
    fn from(candidate: &'a Candidate) -> Self {
        Self { cosine: candidate.vector, ..Self::from(&candidate.entry) }
    }
}

impl<'a> From<&'a MemoryEntry> for Item<'a> {
    fn from(entry: &'a MemoryEntry) -> Self {
        let metadata = |name: &str| entry.metadata.get(name).and_then(|value| value.as_str());
        Self {
            text: &entry.content,
            labels: metadata(LABELS).unwrap_or_default(),
            speaker: entry.role(),
            session: metadata(SESSION),
            place: entry.position,
            at: entry.timestamp,
            cosine: None,
            importance: entry.importance,
        }
    }
}

/// The ranked candidates.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Ranking {
    /// All candidates, best first.
    pub hits: Vec<Ranked>,
}

/// A ranked candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ranked {
    /// Index of the item.
    pub item: usize,
    /// The score that determines the order. It is mostly between 0 and 2, and comparable within one ranking
    /// only.
    pub score: f32,
    /// The relevance of this memory to the question, from 0 to 1, comparable between questions and
    /// embedders: see [`Calibration::relevance`].
    pub relevance: f32,
}

impl Ranking {
    /// Returns the sessions of the hits, ordered by the best hit of each session.
    pub fn sessions<'a>(&self, items: &[Item<'a>]) -> Vec<&'a str> {
        let mut sessions = Vec::new();
        for session in self.hits.iter().filter_map(|hit| items[hit.item].session) {
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        sessions
    }

    /// Returns the first `limit` hits without those that repeat a better hit with the same words in the same
    /// order. Vectors cannot detect repetitions: `Anna pays Bob` and `Bob pays Anna` have similar vectors, as
    /// have sentences that differ in a `not` or a number. Trust levels are not considered.
    pub fn distinct(&self, items: &[Item<'_>], limit: usize) -> Vec<Ranked> {
        let mut said = HashSet::new();
        let first = self.hits.iter().filter(|hit| said.insert(normalized_words(items[hit.item].text)));
        first.take(limit).copied().collect()
    }
}

/// A ranker of candidates, which has no state between questions.
///
/// ```
/// use archon_memory::rank::{Ranker, Weights};
///
/// let mut weights = Weights::default();
/// weights.recency = 0.5;
/// let ranker = Ranker::new(None).with_weights(weights);
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Ranker {
    /// The analyzer that turns texts into terms.
    pub analyzer: Analyzer,
    /// The weights of the formula.
    pub weights: Weights,
    /// The calibration of the embedder's cosines.
    pub calibration: Calibration,
}

impl Ranker {
    /// Creates a ranker for vectors of the embedder with this [`id`](archon_types::Embedder::id), or, with
    /// `None`, for words alone.
    pub fn new(embedder: Option<&str>) -> Self {
        Self { calibration: Calibration::of(embedder.unwrap_or_default()), ..Self::default() }
    }

    /// Sets the weights.
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        self
    }

    /// Parses a question with this ranker's analyzer.
    pub fn question(&self, text: &str) -> RankQuestion {
        RankQuestion::new(&self.analyzer, text)
    }

    /// Ranks items by their score for the question. Items with equal scores keep their order.
    pub fn rank(&self, question: &RankQuestion, items: &[Item<'_>]) -> Ranking {
        let mut counts = Counts::new(&question.terms);
        for item in items {
            counts.add(&self.analyzer, &[item.speaker.unwrap_or_default(), item.text, item.labels]);
        }
        let coverage = counts.coverage();
        let meaning = self.meaning(items);
        let own: Vec<f32> =
            coverage.iter().zip(&meaning).map(|(words, meaning)| self.own(*words, *meaning)).collect();
        let around = self.with_neighbours(items, &own);
        let sessions = self.sessions(items, &counts, &meaning);
        let mut hits: Vec<Ranked> = (0..items.len())
            .map(|item| Ranked {
                item,
                score: around[item]
                    + self.weights.session * sessions[item]
                    + self.secondary_score(question, &items[item]),
                relevance: self.calibration.relevance(coverage[item], items[item].cosine),
            })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ranking { hits }
    }

    fn own(&self, words: f32, meaning: f32) -> f32 {
        self.weights.words * words + self.weights.meaning * meaning
    }

    /// Returns the meaning score of each item's cosine. An item without a cosine was not among the nearest
    /// vectors, so it gets the lowest cosine of those.
    fn meaning(&self, items: &[Item<'_>]) -> Vec<f32> {
        let cosines = items.iter().filter_map(|item| item.cosine).filter(|cosine| cosine.is_finite());
        let farthest = cosines.fold(f32::INFINITY, f32::min);
        let known = |item: &Item<'_>| item.cosine.filter(|cosine| cosine.is_finite()).unwrap_or(farthest);
        items
            .iter()
            .map(|item| if farthest.is_finite() { self.calibration.meaning(known(item)) } else { 0.0 })
            .collect()
    }

    /// Adds to each item's own score a share of the scores of its neighbours in the session.
    fn with_neighbours(&self, items: &[Item<'_>], own: &[f32]) -> Vec<f32> {
        let mut order: Vec<usize> = (0..items.len()).filter(|item| items[*item].session.is_some()).collect();
        order.sort_by_key(|item| (items[*item].session, items[*item].place));
        let mut sums = own.to_vec();
        for (at, &later) in order.iter().enumerate() {
            for &earlier in order[..at].iter().rev() {
                let distance = items[later].place.abs_diff(items[earlier].place);
                if items[later].session != items[earlier].session || distance > REACH {
                    break;
                }
                let share = match distance {
                    0 => continue,
                    1 => 1.0,
                    _ => self.weights.farther,
                };
                sums[later] += self.weights.before * share * own[earlier];
                sums[earlier] += self.weights.after * share * own[later];
            }
        }
        sums
    }

    /// Returns the score of each item's session as a whole, from 0 to 1; the best session has 1.
    fn sessions(&self, items: &[Item<'_>], counts: &Counts<'_>, meaning: &[f32]) -> Vec<f32> {
        let mut numbers: HashMap<Result<&str, usize>, usize> = HashMap::new();
        let mut session = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            // An item without a session is a session of its own.
            let next = numbers.len();
            session.push(*numbers.entry(item.session.ok_or(at)).or_insert(next));
        }
        let words = to_one(counts.coverage_of_sessions(&session, numbers.len()));
        let meaning = to_one(best_three(&session, meaning, numbers.len()));
        let whole = |session: &usize| {
            (words[*session] + SESSION_MEANING * meaning[*session]) / (1.0 + SESSION_MEANING)
        };
        session
            .iter()
            .zip(items)
            .map(|(session, item)| if item.session.is_some() { whole(session) } else { 0.0 })
            .collect()
    }

    /// Returns the sum of the parts `time`, `speaker`, `asks`, `recency` and `importance`, with their
    /// weights.
    fn secondary_score(&self, question: &RankQuestion, item: &Item<'_>) -> f32 {
        let closeness = question.times.iter().map(|time| time.closeness(item.at)).fold(0.0, f32::max);
        let named = item.speaker.is_some_and(|speaker| question.names(speaker));
        let asks = item.text.trim_end().ends_with(['?', '\u{ff1f}']);
        let recency = question.now.map_or(0.0, |now| self.weights.recency_at(now, item.at));
        self.weights.time * closeness + self.weights.speaker * f32::from(u8::from(named))
            - self.weights.asks * f32::from(u8::from(asks))
            + self.weights.recency * recency
            + self.weights.importance * (item.importance.unwrap_or(UNKNOWN_IMPORTANCE) - UNKNOWN_IMPORTANCE)
    }
}

/// The maximum distance, in positions within a session, at which an item counts as a neighbour.
const REACH: u64 = 2;

/// The weight of a session's meaning relative to its words.
const SESSION_MEANING: f32 = 0.5;

/// The importance of an entry without one.
const UNKNOWN_IMPORTANCE: f32 = 0.5;

/// Returns the mean of the three best values of each session.
fn best_three(session: &[usize], values: &[f32], sessions: usize) -> Vec<f32> {
    let mut best = vec![[0.0f32; 3]; sessions];
    for (session, value) in session.iter().zip(values) {
        let best = &mut best[*session];
        if *value > best[2] {
            best[2] = *value;
            best.sort_by(|a, b| b.total_cmp(a));
        }
    }
    best.into_iter().map(|best| best.iter().sum::<f32>() / 3.0).collect()
}

/// Scales the values so that the greatest value is 1.
fn to_one(mut values: Vec<f32>) -> Vec<f32> {
    let greatest = values.iter().copied().fold(0.0, f32::max);
    if greatest > 0.0 {
        values.iter_mut().for_each(|value| *value /= greatest);
    }
    values
}
