//! Chooses the next token: the most likely one that the grammar allows, or a random one of the most likely.

use crate::matcher::Matcher;
use crate::vocabulary::{Token, Vocabulary};

/// The number of most likely allowed tokens from which a random one is chosen.
const DRAW_FROM: usize = 40;

/// The number of tokens that are ranked at first. Only if none of them is allowed, the whole vocabulary is
/// ranked.
const RANKED_FIRST: usize = 256;

/// Chooses tokens by their logits, with a temperature and a seed.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    temperature: f32,
    state: u64,
}

impl Sampler {
    /// Creates a sampler. With temperature 0 it always chooses the most likely token. The same seed chooses
    /// the same tokens.
    pub(crate) fn new(temperature: f32, seed: u64) -> Self {
        Self { temperature, state: seed }
    }

    /// Returns the next token; `None` if the grammar allows no token of the vocabulary.
    pub(crate) fn choose(
        &mut self,
        logits: &[f32],
        vocabulary: &Vocabulary,
        matcher: Option<&Matcher>,
    ) -> Option<Token> {
        let allowed = |token: Token| allows(token, vocabulary, matcher);
        let greedy = self.temperature <= 0.0;
        if greedy {
            // In most cases the model's first choice is allowed, and nothing need be ranked.
            let first = likeliest(logits)?;
            if allowed(first) {
                return Some(first);
            }
        }
        let wanted = if greedy { 1 } else { DRAW_FROM };
        let mut found = Vec::new();
        for width in [RANKED_FIRST, logits.len()] {
            found = ranked(logits, width).into_iter().filter(|token| allowed(*token)).take(wanted).collect();
            if !found.is_empty() {
                break;
            }
        }
        if greedy { found.first().copied() } else { self.draw(logits, &found) }
    }

    /// Returns a random token; more likely tokens are returned more often.
    fn draw(&mut self, logits: &[f32], tokens: &[Token]) -> Option<Token> {
        let scores: Vec<_> = tokens.iter().map(|token| logits[*token as usize]).collect();
        tokens.get(self.choose_score(&scores)).copied()
    }

    /// Returns the index of the highest score. If the temperature is above 0, returns a random index, with
    /// the scores as log-probabilities.
    pub(crate) fn choose_score(&mut self, scores: &[f32]) -> usize {
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
        if self.temperature <= 0.0 || scores.is_empty() {
            return best;
        }
        let weight = |score: &f32| f64::from((score - scores[best]) / self.temperature).exp();
        let weights: Vec<f64> = scores.iter().map(weight).collect();
        let mut point = self.uniform() * weights.iter().sum::<f64>();
        for (at, weight) in weights.iter().enumerate() {
            point -= weight;
            if point <= 0.0 {
                return at;
            }
        }
        best
    }

    /// Returns a random number from 0 to 1, by SplitMix64 (Steele, Lea, Flood 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn allows(token: Token, vocabulary: &Vocabulary, matcher: Option<&Matcher>) -> bool {
    match matcher {
        None => vocabulary.ends_text(token) || !vocabulary.bytes(token).is_empty(),
        Some(matcher) if vocabulary.ends_text(token) => matcher.may_end(),
        Some(matcher) => matcher.accepts(vocabulary.bytes(token)),
    }
}

fn likeliest(logits: &[f32]) -> Option<Token> {
    let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]))?;
    Token::try_from(best).ok()
}

/// Returns the `width` most likely tokens, most likely first.
fn ranked(logits: &[f32], width: usize) -> Vec<Token> {
    let mut tokens: Vec<Token> = (0..Token::try_from(logits.len()).unwrap_or(Token::MAX)).collect();
    let order = |a: &Token, b: &Token| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    if width < tokens.len() {
        tokens.select_nth_unstable_by(width, order);
        tokens.truncate(width);
    }
    tokens.sort_unstable_by(order);
    tokens
}
