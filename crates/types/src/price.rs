//! Money: what a model's tokens cost. Whole numbers, so that sums are exact and equal everywhere.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Prices of a model in millionths of a currency unit for a million tokens: three dollars for a million
/// tokens are 3,000,000. Which currency, the program decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ModelPrice {
    /// Prompt tokens that were processed.
    pub input: u64,
    /// Tokens that the model produced.
    pub output: u64,
    /// Prompt tokens that came from a cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to a cache.
    pub cache_write: u64,
}

impl ModelPrice {
    /// Prices for input and output; cached tokens cost as much as any.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, cache_read: input, cache_write: input }
    }

    /// What `usage` costs in millionths of a currency unit, rounded up.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let sum = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens) * u128::from(*price))
        });
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The most that a call with these many tokens in and out may cost.
    pub fn at_most(&self, input: u64, output: u64) -> u64 {
        let dearest = self.input.max(self.cache_read).max(self.cache_write);
        Self::new(dearest, self.output).cost(&Usage { input, output, ..Usage::default() })
    }
}
