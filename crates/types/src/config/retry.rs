//! The delays between retries of failed calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::values::Ids;

/// The retries after a failure. The delay before each retry is exponential, with jitter: `delay = min(initial
/// × multiplierⁿ, max) × (1 ± 0.2)`, where n is the number of earlier retries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RetryConfig {
    /// The maximum number of retries after the first attempt; 0 disables retries. Default 3.
    pub max_retries: u32,
    /// The delay before the first retry, in milliseconds. Default 1000.
    pub initial_delay_ms: u64,
    /// The factor by which the delay grows with each retry. Default 2.0.
    pub backoff_multiplier: f64,
    /// The maximum delay before jitter, in milliseconds. Default 30,000.
    pub max_delay_ms: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { max_retries: 3, initial_delay_ms: 1000, backoff_multiplier: 2.0, max_delay_ms: 30_000 }
    }
}

/// The maximum share of a delay by which jitter lengthens or shortens it.
const JITTER: f64 = 0.2;

impl RetryConfig {
    /// Returns a configuration without retries.
    pub fn none() -> Self {
        Self { max_retries: 0, ..Self::default() }
    }

    /// Draws the jitter of a delay, from -1.0 to 1.0. The jitter is derived from a new id, so that seeded ids
    /// (in tests) give the same jitter every time.
    pub fn draw_jitter(ids: &dyn Ids) -> f64 {
        let seed = ids.fresh("jitter");
        let sum = seed.bytes().fold(0u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(b)));
        f64::from(sum % 2001) / 1000.0 - 1.0
    }

    /// Returns the delay before the retry with the index `attempt`, from 0. `jitter`, from -1.0 to 1.0,
    /// changes the delay by up to 20 %; [`draw_jitter`](Self::draw_jitter) draws such a value.
    pub fn delay_for_attempt(&self, attempt: u32, jitter: f64) -> Duration {
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        // The growth is bounded, because zero times infinity is not a number.
        let growth = self.backoff_multiplier.powi(exponent).min(f64::MAX);
        let grown = self.initial_delay_ms as f64 * growth;
        let capped = grown.min(self.max_delay_ms as f64);
        Duration::from_millis((capped * (1.0 + JITTER * jitter.clamp(-1.0, 1.0))).round() as u64)
    }
}
