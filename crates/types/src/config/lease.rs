//! The lease, which is the part of a budget that a run gives to a child run, and the spending of a run.

use serde::{Deserialize, Serialize};

use super::limits::ExecutionLimits;

/// A lease: the part of a run's budget that a child run may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Lease {
    /// The maximum number of tokens of all model calls, including those of the child run's own child runs.
    pub tokens: u64,
    /// The maximum cost in millionths of a currency unit; `None` if the calling run has no cost limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The maximum active time in milliseconds.
    pub duration_ms: u64,
}

impl Lease {
    /// Creates a lease for at most `tokens` tokens and `duration_ms` milliseconds of active time, without a
    /// cost limit.
    pub fn new(tokens: u64, duration_ms: u64) -> Self {
        Self { tokens, cost_micros: None, duration_ms }
    }

    /// Returns `limits` with the tokens, the active time and the cost limited to this lease: the smaller
    /// value applies. A cost limit that only one of the two sets applies too.
    pub fn narrow(&self, mut limits: ExecutionLimits) -> ExecutionLimits {
        limits.max_total_tokens = limits.max_total_tokens.min(self.tokens);
        limits.max_duration_ms = limits.max_duration_ms.min(self.duration_ms);
        limits.max_cost_micros = match (limits.max_cost_micros, self.cost_micros) {
            (Some(own), Some(granted)) => Some(own.min(granted)),
            (own, granted) => own.or(granted),
        };
        limits
    }
}

/// The number of tokens and the amount of money that runs used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct Spending {
    /// The number of tokens.
    pub tokens: u64,
    /// The cost in millionths of a currency unit, as far as prices are known.
    pub cost_micros: u64,
}

impl Spending {
    /// Creates the value for this number of tokens and this cost, in millionths of a currency unit.
    pub fn new(tokens: u64, cost: u64) -> Self {
        Self { tokens, cost_micros: cost }
    }

    /// Returns true if no tokens and no money were spent.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Spending {
    fn add_assign(&mut self, more: Self) {
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost_micros = self.cost_micros.saturating_add(more.cost_micros);
    }
}
