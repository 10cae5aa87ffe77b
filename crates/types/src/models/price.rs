//! Prices of models and costs of calls, in whole numbers, so that sums are exact and equal on every machine.

use serde::{Deserialize, Serialize};

use crate::messages::Usage;

/// The prices of a model, in millionths of a currency unit per million tokens: three dollars per million
/// tokens are 3,000,000. The program chooses the currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ModelPrice {
    /// The price of prompt tokens that the model processed.
    pub input: u64,
    /// The price of tokens that the model produced.
    pub output: u64,
    /// The price of prompt tokens that came from a cache.
    pub cache_read: u64,
    /// The price of prompt tokens that were written to a cache.
    pub cache_write: u64,
    /// The prices for all tokens of a call with a long prompt; `None` if a long prompt costs the same per
    /// token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPromptPrice>,
}

/// The prices of calls with long prompts, in the unit of [`ModelPrice`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct LongPromptPrice {
    /// The maximum number of prompt tokens, cached ones included, at normal prices.
    pub above: u64,
    /// The price of prompt tokens that the model processed.
    pub input: u64,
    /// The price of tokens that the model produced.
    pub output: u64,
    /// The price of prompt tokens that came from a cache.
    pub cache_read: u64,
    /// The price of prompt tokens that were written to a cache.
    pub cache_write: u64,
}

impl LongPromptPrice {
    /// Creates prices for prompts with more than `above` tokens, in the unit of [`ModelPrice`]. Cached tokens
    /// cost as much as input.
    pub fn new(above: u64, input: u64, output: u64) -> Self {
        Self { above, input, output, cache_read: input, cache_write: input }
    }
}

impl ModelPrice {
    /// Creates prices for input and output, in millionths of a currency unit per million tokens. Cached
    /// tokens cost as much as input.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, cache_read: input, cache_write: input, long: None }
    }

    /// Sets other prices for calls whose prompts have more than [`above`](LongPromptPrice::above) tokens.
    ///
    /// ```
    /// use archon_types::{LongPromptPrice, ModelPrice};
    ///
    /// // 3 and 15 dollars for a million tokens; twice as much for input above 200,000 tokens.
    /// let price = ModelPrice::new(3_000_000, 15_000_000);
    /// let price = price.with_long(LongPromptPrice::new(200_000, 6_000_000, 22_500_000));
    /// ```
    pub fn with_long(mut self, long: LongPromptPrice) -> Self {
        self.long = Some(long);
        self
    }

    /// Returns the prices for a prompt of `tokens` tokens.
    fn of_prompt(&self, tokens: u64) -> Self {
        match self.long.filter(|long| tokens > long.above) {
            Some(LongPromptPrice { input, output, cache_read, cache_write, .. }) => {
                Self { input, output, cache_read, cache_write, long: None }
            }
            None => Self { long: None, ..*self },
        }
    }

    /// Returns the cost of one call, in millionths of a currency unit, rounded up. The price depends on the
    /// length of each prompt, so do not pass the summed usage of several calls: add up their costs.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let price = self.of_prompt(prompt);
        let parts = [
            (usage.input, price.input),
            (usage.output, price.output),
            (usage.cache_read, price.cache_read),
            (usage.cache_write, price.cache_write),
        ];
        let sum = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens) * u128::from(*price))
        });
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// Returns the highest cost of a call with `input` prompt tokens and `output` answer tokens, in
    /// millionths of a currency unit.
    pub fn at_most(&self, input: u64, output: u64) -> u64 {
        let price = self.of_prompt(input);
        let dearest = price.input.max(price.cache_read).max(price.cache_write);
        Self::new(dearest, price.output).cost(&Usage { input, output, ..Usage::default() })
    }
}

/// Formats an amount of money in whole currency units, without trailing zeros; `micros` is the amount in
/// millionths of a currency unit.
///
/// ```
/// use archon_types::format_money;
///
/// assert_eq!((format_money(250_000), format_money(2_000_000)), ("0.25".to_owned(), "2".to_owned()));
/// ```
pub fn format_money(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_money_drops_trailing_zeros() {
        for (micros, text) in [(250_000, "0.25"), (2_000_000, "2"), (0, "0"), (1_234_567, "1.234567")] {
            assert_eq!(format_money(micros), text);
        }
    }

    // spec: P-40
    #[test]
    fn model_price_of_a_long_prompt_applies_to_all_tokens_of_the_call() {
        let mut long = LongPromptPrice::new(200_000, 2_000_000, 30_000_000);
        long.cache_read = 200_000;
        let mut price = ModelPrice::new(1_000_000, 10_000_000).with_long(long);
        price.cache_read = 100_000;
        let usage = |input, cache_read| Usage { input, output: 1_000, cache_read, ..Usage::default() };
        assert_eq!(price.cost(&usage(100_000, 100_000)), 100_000 + 10_000 + 10_000);
        // One token more, from any source.
        assert_eq!(price.cost(&usage(100_000, 100_001)), 200_000 + 20_001 + 30_000);
        assert_eq!(price.at_most(200_000, 1_000), 200_000 + 10_000);
        assert_eq!(price.at_most(200_001, 1_000), 400_002 + 30_000);
    }

    #[test]
    fn prices_without_long_prompts_are_written_as_ever() {
        let price = ModelPrice::new(1, 2);
        let json = serde_json::to_string(&price).unwrap();
        assert_eq!(json, r#"{"input":1,"output":2,"cache_read":1,"cache_write":1}"#);
        assert_eq!(serde_json::from_str::<ModelPrice>(&json).unwrap(), price);
        let price = price.with_long(LongPromptPrice::new(3, 4, 5));
        assert_eq!(
            serde_json::from_str::<ModelPrice>(&serde_json::to_string(&price).unwrap()).unwrap(),
            price
        );
    }
}
