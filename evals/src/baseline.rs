//! Known ways to order the turns of a conversation, to compare with. Nothing in them was tuned.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use anyhow::Result;
use archon_memory::rank::{Analyzer, RankQuestion};
use archon_types::{Embedder, TokenCounter as _, TokenEstimate};

use crate::{
    measure::{Answer, ROOM, Told},
    talk::{Conversation, Turn},
};

/// A way to order turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Baseline {
    /// BM25 (k1 = 1.2, b = 0.75) over stemmed words, with the speaker and the date among them.
    Words,
    /// The cosine with the question, from which the speakers' names are left out; the vectors have the length 1.
    Meaning,
    /// The sum of the two, each scaled to 1 at most.
    Sum,
    /// The sum, and 0.5 and 0.25 of the two turns before, 0.2 and 0.1 of the two after.
    Neighbours,
}

impl Baseline {
    pub(crate) const ALL: [Self; 4] = [Self::Words, Self::Meaning, Self::Sum, Self::Neighbours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Words => "BM25 with speaker and date",
            Self::Meaning => "the embedder, without names",
            Self::Sum => "their sum",
            Self::Neighbours => "their sum with neighbours",
        }
    }
}

/// A conversation whose words and vectors are known.
struct Indexed<'a> {
    turns: &'a [Turn],
    /// For each term the turns that have it, with its count.
    terms: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    vectors: Vec<Vec<f32>>,
}

/// Answers to all questions of a conversation, by each baseline.
pub(crate) async fn answers(
    conversation: &Conversation,
    embedder: &Arc<dyn Embedder>,
) -> Result<Vec<[Answer; 4]>> {
    let texts: Vec<String> = conversation.turns.iter().map(|turn| turn.text.clone()).collect();
    let vectors = embedder.embed(&texts).await?;
    let indexed = Indexed::new(&conversation.turns, vectors);
    let analyzer = Analyzer::default();
    let mut answers = Vec::new();
    for question in &conversation.questions {
        let names = conversation.turns.iter().map(|turn| turn.speaker.as_str());
        let asked = RankQuestion::new(&analyzer, &question.text).with_speakers(names);
        let vector = embedder.embed(&[asked.meaning()]).await?.pop().unwrap_or_default();
        let (words, meaning) = (indexed.words(&analyzer.terms(&question.text)), indexed.meaning(&vector));
        answers.push(Baseline::ALL.map(|baseline| {
            let order = indexed.order(&indexed.scores(baseline, &words, &meaning));
            let ids: Vec<&str> = order.iter().map(|turn| conversation.turns[*turn].id.as_str()).collect();
            let recall = [5, 10].map(|count| question.share_of(ids.iter().take(count).copied()));
            let (told, tokens) = fill(&conversation.turns, &order);
            let share = question.share_of(told.iter().map(|turn| conversation.turns[*turn].id.as_str()));
            let told = Told { share, whole: 0.0, memories: told.len(), tokens };
            Answer { kind: question.kind.clone(), recall, told }
        }));
    }
    Ok(answers)
}

/// The turns that fit into the room in this order, each as one line with its date and speaker, cut like a line of
/// `Recall`; and their tokens.
fn fill(turns: &[Turn], order: &[usize]) -> (Vec<usize>, u64) {
    let (mut told, mut used) = (Vec::new(), 0);
    for turn in order {
        let Turn { text, speaker, .. } = &turns[*turn];
        let text: String =
            text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect();
        let tokens = TokenEstimate.count(&format!("[2026-01-01, {speaker}] {text}")) + 1;
        if used + tokens <= ROOM {
            used += tokens;
            told.push(*turn);
        }
    }
    (told, used)
}

/// The characters of a turn that a baseline tells.
const LONGEST: usize = 800;

impl<'a> Indexed<'a> {
    fn new(turns: &'a [Turn], vectors: Vec<Vec<f32>>) -> Self {
        let analyzer = Analyzer::default();
        let (mut terms, mut lengths): (HashMap<String, Vec<(usize, f64)>>, _) = (HashMap::new(), Vec::new());
        for (number, turn) in turns.iter().enumerate() {
            let own = analyzer.terms(&format!("{} {} {}", turn.speaker, turn.text, date(turn)));
            lengths.push(own.len() as f64);
            let mut counts: HashMap<String, f64> = HashMap::new();
            own.into_iter().for_each(|term| *counts.entry(term).or_default() += 1.0);
            for (term, count) in counts {
                terms.entry(term).or_default().push((number, count));
            }
        }
        Self { turns, terms, lengths, vectors }
    }

    fn words(&self, asked: &[String]) -> Vec<f64> {
        let all = self.turns.len() as f64;
        let average = self.lengths.iter().sum::<f64>() / all.max(1.0);
        let mut scores = vec![0.0; self.turns.len()];
        for term in asked {
            let Some(with) = self.terms.get(term) else { continue };
            let rarity = ((all - with.len() as f64 + 0.5) / (with.len() as f64 + 0.5)).ln_1p();
            for (turn, count) in with {
                let length = 0.25 + 0.75 * self.lengths[*turn] / average.max(1.0);
                scores[*turn] += rarity * count * 2.2 / (count + 1.2 * length);
            }
        }
        scores
    }

    fn meaning(&self, asked: &[f32]) -> Vec<f64> {
        let dot = |vector: &Vec<f32>| f64::from(vector.iter().zip(asked).map(|(a, b)| a * b).sum::<f32>());
        self.vectors.iter().map(dot).collect()
    }

    fn scores(&self, baseline: Baseline, words: &[f64], meaning: &[f64]) -> Vec<f64> {
        let to_one = |values: &[f64]| {
            let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            values.iter().map(|value| value.max(0.0) / most).collect::<Vec<f64>>()
        };
        let sum: Vec<f64> = to_one(words).iter().zip(to_one(meaning)).map(|(a, b)| a + b).collect();
        match baseline {
            Baseline::Words => words.to_vec(),
            Baseline::Meaning => meaning.to_vec(),
            Baseline::Sum => sum,
            Baseline::Neighbours => (0..sum.len()).map(|at| self.with_neighbours(at, &sum)).collect(),
        }
    }

    fn with_neighbours(&self, at: usize, own: &[f64]) -> f64 {
        let of = |offset: isize| {
            let other = at.checked_add_signed(offset).filter(|other| *other < own.len());
            other
                .filter(|other| self.turns[*other].session == self.turns[at].session)
                .map_or(0.0, |other| own[other])
        };
        own[at] + 0.5 * of(-1) + 0.25 * of(-2) + 0.2 * of(1) + 0.1 * of(2)
    }

    /// The turns with the best score first.
    fn order(&self, scores: &[f64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.turns.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(Reverse(*b).cmp(&Reverse(*a))));
        order
    }
}

/// `8 May 2023`.
fn date(turn: &Turn) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let iso = turn.at.to_string();
    let month = iso.get(5..7).and_then(|month| MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?));
    let day = iso.get(8..10).unwrap_or_default().trim_start_matches('0');
    format!("{day} {} {}", month.unwrap_or(&""), iso.get(..4).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_found_by_its_speaker_and_its_date() {
        let turn = |id: &str, speaker: &str, at: &str| Turn {
            id: id.to_owned(),
            session: "s".to_owned(),
            speaker: speaker.to_owned(),
            text: "We had soup".to_owned(),
            at: at.parse().unwrap(),
        };
        let turns = [turn("a", "Anna", "2023-05-08T10:00:00Z"), turn("b", "Ben", "2023-06-01T10:00:00Z")];
        let indexed = Indexed::new(&turns, vec![vec![1.0], vec![1.0]]);
        let first = |question: &str| indexed.order(&indexed.words(&Analyzer::default().terms(question)))[0];
        assert_eq!((first("What did Ben eat?"), first("Who ate soup on 1 June 2023?")), (1, 1));
        assert_eq!((first("What did Anna eat?"), first("Who ate soup on 8 May 2023?")), (0, 0));
        assert_eq!(indexed.scores(Baseline::Neighbours, &[1.0, 0.0], &[0.0, 0.0]), [1.0, 0.5]);
    }
}
