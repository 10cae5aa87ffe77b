//! Ranks candidates with the formula of the parent module.

use archon_types::{Candidate, MemoryEntry, Timestamp};

use crate::{Analyzer, RankQuestion, Weights, lexical::Counts, question::is_name, weights};

/// A memory to rank. A [`Candidate`] of a store becomes an item by `From`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Item<'a> {
    /// The text of the memory.
    pub text: &'a str,
    /// The speaker of the text: a person's name, or a role such as `user` and `assistant`.
    pub speaker: Option<&'a str>,
    /// The session of the memory; without a session it has no neighbours.
    pub session: Option<&'a str>,
    /// The position in the session: the turn just before has a position that is less by 1.
    pub place: u64,
    /// The time at which the text was said.
    pub at: Timestamp,
    /// The cosine similarity with the question; `None` unless both have a vector.
    pub cosine: Option<f32>,
}

/// The metadata key for the session of a memory.
pub const SESSION: &str = "session";

impl<'a> From<&'a Candidate> for Item<'a> {
    fn from(candidate: &'a Candidate) -> Self {
        Self { cosine: candidate.vector, ..Self::from(&candidate.entry) }
    }
}

impl<'a> From<&'a MemoryEntry> for Item<'a> {
    fn from(entry: &'a MemoryEntry) -> Self {
        Self {
            text: &entry.content,
            speaker: entry.role(),
            session: entry.metadata.get(SESSION).and_then(|session| session.as_str()),
            place: entry.position,
            at: entry.timestamp,
            cosine: None,
        }
    }
}

/// A ranked candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Index of the item in the slice that was ranked, from 0.
    pub item: usize,
    /// The score that determines the order. It is mostly between 0 and 2, and comparable within one ranking
    /// only.
    pub score: f32,
    /// The relevance of this memory to the question, from 0 to 1, comparable between questions. It is the greater of
    /// two values: the cosine similarity, and the share of the question's words in the memory, where rare words count
    /// more.
    pub relevance: f32,
}

/// A ranker of candidates, which has no state between questions.
///
/// ```
/// use archon_memory_rank::{Ranker, Weights};
///
/// let mut weights = Weights::default();
/// weights.recency = 0.5;
/// let ranker = Ranker::default().with_weights(weights);
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Ranker {
    /// The analyzer that turns texts into terms.
    pub analyzer: Analyzer,
    /// The weights of the formula.
    pub weights: Weights,
}

impl Ranker {
    /// Sets the weights of the ranking formula. Default: `Weights::default`.
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        self
    }

    /// Parses a question with this ranker's analyzer.
    pub fn question(&self, text: &str) -> RankQuestion {
        RankQuestion::new(&self.analyzer, text)
    }

    /// Ranks items by their score for the question, best first. Items with equal scores keep their order.
    pub fn rank(&self, question: &RankQuestion, items: &[Item<'_>]) -> Vec<Ranked> {
        let mut counts = Counts::new(&question.terms);
        for item in items {
            let name = item.speaker.filter(|speaker| is_name(speaker)).unwrap_or_default();
            counts.add(&self.analyzer, &[name, item.text]);
        }
        let (coverage, shares) = counts.coverage();
        let meaning = meaning(items).into_iter().map(|meaning| self.weights.meaning * meaning);
        let own: Vec<f32> = coverage.iter().zip(meaning).map(|(words, meaning)| words + meaning).collect();
        let around = self.with_neighbours(items, &own);
        let lateness = lateness(items);
        let mut hits: Vec<Ranked> = (0..items.len())
            .map(|item| Ranked {
                item,
                score: around[item]
                    + self.circumstances(question, &items[item])
                    + self.weights.time * TOWARD * question.toward * lateness[item],
                relevance: weights::relevance(shares[item], items[item].cosine),
            })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits
    }

    /// Adds to each item's own score a share of the scores of its neighbours in the session. An assistant's answer
    /// repeats the words of its question, so assistants and tools neither give nor get a share.
    fn with_neighbours(&self, items: &[Item<'_>], own: &[f32]) -> Vec<f32> {
        let is_of_person = |item: &usize| items[*item].session.is_some() && !is_of_program(&items[*item]);
        let mut order: Vec<usize> = (0..items.len()).filter(is_of_person).collect();
        order.sort_by_key(|item| (items[*item].session, items[*item].place));
        let mut sums = own.to_vec();
        for (at, &later) in order.iter().enumerate() {
            for &earlier in order[..at].iter().rev() {
                let distance = items[later].place.abs_diff(items[earlier].place);
                if items[later].session != items[earlier].session || distance > REACH {
                    break;
                }
                if distance > 0 {
                    let share = self.weights.neighbours / distance as f32;
                    sums[later] += share * own[earlier];
                    sums[earlier] += share * own[later];
                }
            }
        }
        sums
    }

    /// Returns the sum of the parts `time`, `speaker` and `recency`, with their weights.
    fn circumstances(&self, question: &RankQuestion, item: &Item<'_>) -> f32 {
        let closeness = question.times.iter().map(|time| time.closeness(item.at)).fold(0.0, f32::max);
        let named = item.speaker.is_some_and(|speaker| question.names(speaker));
        let speaker = f32::from(u8::from(named)) - f32::from(u8::from(is_of_program(item)));
        let recency = question.now.map_or(0.0, |now| weights::recency(now, item.at));
        self.weights.time * closeness + self.weights.speaker * speaker + self.weights.recency * recency
    }
}

/// The maximum distance, in positions within a session, at which an item counts as a neighbour.
const REACH: u64 = 2;

/// The share of the weight of times for the order in time, if a question asks for the first or the latest.
const TOWARD: f32 = 0.4;

/// Returns the place of each item in time, from 0 for the oldest to 1 for the latest.
fn lateness(items: &[Item<'_>]) -> Vec<f32> {
    let times = || items.iter().map(|item| item.at.as_millis());
    let (first, last) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
    let share = |at: u64| (at - first) as f64 / last.abs_diff(first).max(1) as f64;
    times().map(|at| share(at) as f32).collect()
}

/// Returns true if an assistant or a tool said it.
fn is_of_program(item: &Item<'_>) -> bool {
    matches!(item.speaker, Some("assistant" | "tool" | "agent"))
}

/// Returns the cosine of each item, from 0 to 1. An item without a cosine was not among the nearest vectors, so it
/// gets the lowest cosine of those.
fn meaning(items: &[Item<'_>]) -> Vec<f32> {
    let known = |item: &Item<'_>| item.cosine.filter(|cosine| cosine.is_finite());
    let farthest = items.iter().filter_map(known).fold(f32::INFINITY, f32::min);
    let farthest = if farthest.is_finite() { farthest } else { 0.0 };
    items.iter().map(|item| known(item).unwrap_or(farthest).clamp(0.0, 1.0)).collect()
}
