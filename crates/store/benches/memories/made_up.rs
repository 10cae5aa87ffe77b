//! Texts and questions as large and as frequent as those of the LoCoMo conversations, for benches.
//!
//! Turns there have 26 words, and questions, after stop words, 5.7 on average. A question's words are drawn so that the
//! shares of turns that have them are as there (`SHARES`): half of the words are in more than 1 % of all turns, one in
//! twenty in more than 8 %.

use archon_types::{Collection, MemoryEntry, MemoryKind, Timestamp};

const WORDS: usize = 26;
const VOCABULARY: f64 = 30_000.0;
pub(crate) const DIMENSIONS: usize = 384;

/// Words of a question, at the quantiles 0, ¼, ½, ¾, 0.95 and 1 of LoCoMo's 1,986.
const LENGTHS: [(f64, f64); 6] = [(0.0, 1.0), (0.25, 4.0), (0.5, 5.0), (0.75, 7.0), (0.95, 9.0), (1.0, 13.0)];

/// The share of turns with a word of a question, at the same kind of quantiles.
const SHARES: [(f64, f64); 8] = [
    (0.0, 0.000_05),
    (0.1, 0.000_34),
    (0.25, 0.002_38),
    (0.5, 0.009_69),
    (0.75, 0.023_46),
    (0.9, 0.060_18),
    (0.95, 0.080_24),
    (1.0, 0.242_77),
];

/// Xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A value by its quantiles.
    fn of(&mut self, quantiles: &[(f64, f64)]) -> f64 {
        let at = self.unit();
        let to = quantiles.iter().position(|(quantile, _)| *quantile >= at).unwrap_or(1).max(1);
        let ((q0, low), (q1, high)) = (quantiles[to - 1], quantiles[to]);
        low + (high - low) * (at - q0) / (q1 - q0)
    }

    /// By Zipf's law, as in texts: the tenth most frequent word is in a tenth as many.
    fn text(&mut self) -> String {
        let word = |_| format!("w{}", VOCABULARY.powf(self.unit()) as u64);
        (0..WORDS).map(word).collect::<Vec<_>>().join(" ")
    }

    /// What would be asked.
    pub(crate) fn question(&mut self) -> String {
        let words = self.of(&LENGTHS).round() as usize;
        let word = |_| {
            // The word that so many texts have: of its rank is one in rank · ln(vocabulary) words.
            let of_words = -(1.0 - self.of(&SHARES)).ln() / WORDS as f64;
            format!("w{}", (1.0 / (of_words * VOCABULARY.ln())).round().max(1.0) as u64)
        };
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    }

    /// With a direction like no other's.
    pub(crate) fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| (self.unit() - 0.5) as f32).collect()
    }
}

/// A turn of one of 50 owners, without a vector.
pub(crate) fn entry(random: &mut Random, n: usize) -> MemoryEntry {
    let mut entry = MemoryEntry::new(format!("m{n}"), random.text(), Timestamp::from_millis(n as u64));
    entry.kind = MemoryKind::Turn;
    entry.metadata.insert("session".into(), format!("s{}", n / 50).into());
    entry.collection = Collection::new(format!("user:u{}", n % 50)).expect("a name");
    entry
}
