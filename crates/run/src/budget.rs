//! The budget of a run whose work child runs do: its ledger and the remaining time. It is a part of a
//! machine, which updates it from records.

use std::time::Duration;

use archon_types::{ExecutionLimits, Lease, LimitReached, MoreLimits, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Ledger;

/// The remaining budget of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    limits: ExecutionLimits,
    last: Timestamp,
    active_ms: u64,
    /// The spending, and what is lent to calls.
    #[serde(flatten)]
    pub ledger: Ledger,
}

impl Budget {
    /// Creates an unspent budget that counts time from `at`.
    pub fn new(limits: ExecutionLimits, at: Timestamp) -> Self {
        Self { limits, last: at, active_ms: 0, ledger: Ledger::default() }
    }

    /// Raises the limits.
    pub fn raise(&mut self, more: &MoreLimits) {
        self.limits.raise(more);
    }

    /// Advances the time to `at`. Time in which the run waits for people does not count.
    pub fn see(&mut self, at: Timestamp, is_waiting: bool) {
        if !is_waiting {
            self.active_ms = self.active_ms.saturating_add(millis(at.since(self.last)));
        }
        self.last = self.last.max(at);
    }

    /// Returns the time at which the time limit is reached, if the run does not wait.
    pub fn deadline(&self) -> Timestamp {
        self.last + Duration::from_millis(self.remaining_ms())
    }

    /// Returns one of `shares` equal parts of the remaining budget.
    pub fn lease(&self, shares: u64) -> Lease {
        self.ledger.share(shares, &self.limits, self.ledger.spent(), self.remaining_ms())
    }

    /// Returns the remaining budget if calls under way use nothing more of their leases.
    pub fn unspent(&self) -> Lease {
        Ledger::default().share(1, &self.limits, self.ledger.spent(), self.remaining_ms())
    }

    /// Returns the limit of which nothing is left to lend, if there is one.
    pub fn dry(&self) -> Option<LimitReached> {
        let Lease { tokens, cost_micros: cost, .. } = self.lease(1);
        match (tokens, cost, self.limits.max_cost_micros) {
            (0, ..) => Some(LimitReached::Tokens { max: self.limits.max_total_tokens }),
            (_, Some(0), Some(max)) => Some(LimitReached::Cost { max_cost_micros: max }),
            _ => None,
        }
    }

    /// Returns the limit that was reached, if one was.
    pub fn reached(&self) -> Option<LimitReached> {
        let (limits, spent) = (&self.limits, self.ledger.spent());
        if self.active_ms >= limits.max_duration_ms {
            return Some(LimitReached::Duration { max_ms: limits.max_duration_ms });
        }
        if spent.tokens >= limits.max_total_tokens {
            return Some(LimitReached::Tokens { max: limits.max_total_tokens });
        }
        let max = limits.max_cost_micros.filter(|max| spent.cost_micros >= *max)?;
        Some(LimitReached::Cost { max_cost_micros: max })
    }

    fn remaining_ms(&self) -> u64 {
        self.limits.max_duration_ms.saturating_sub(self.active_ms)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
