//! The budget of a run whose work is done by child runs: its ledger and the remaining time. The budget is a
//! part of a machine, which updates it from records.

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
    /// The spending of the run, and the amounts that are reserved for its calls.
    #[serde(flatten)]
    pub ledger: Ledger,
}

impl Budget {
    /// Creates a budget without spending, which counts time from `at`.
    pub fn new(limits: ExecutionLimits, at: Timestamp) -> Self {
        Self { limits, last: at, active_ms: 0, ledger: Ledger::default() }
    }

    /// Raises each limit to the limit in `more`, if that is larger.
    pub fn raise(&mut self, more: &MoreLimits) {
        self.limits.raise(more);
    }

    /// Sets the present time to `at`. The time since the last `see` counts as used, unless `is_waiting` is true.
    pub fn see(&mut self, at: Timestamp, is_waiting: bool) {
        if !is_waiting {
            self.active_ms = self.active_ms.saturating_add(at.millis_since(self.last));
        }
        self.last = self.last.max(at);
    }

    /// Returns the time at which the run reaches its time limit, if it does not wait for people until then.
    pub fn deadline(&self) -> Timestamp {
        self.last + Duration::from_millis(self.remaining_ms())
    }

    /// Returns one of `shares` equal parts of the remaining budget, as a lease for one call.
    pub fn lease(&self, shares: u64) -> Lease {
        self.ledger.share(shares, &self.limits, self.ledger.spent(), self.remaining_ms())
    }

    /// Returns the remaining budget under the assumption that calls under way spend nothing of their open
    /// leases.
    pub fn unspent(&self) -> Lease {
        Ledger::default().share(1, &self.limits, self.ledger.spent(), self.remaining_ms())
    }

    /// Returns the limit (tokens or cost) under which nothing is left for a further call; `None` if something is
    /// left.
    pub fn dry(&self) -> Option<LimitReached> {
        let Lease { tokens, cost_micros: cost, .. } = self.lease(1);
        match (tokens, cost, self.limits.max_cost_micros) {
            (0, ..) => Some(LimitReached::Tokens { max: self.limits.max_total_tokens }),
            (_, Some(0), Some(max)) => Some(LimitReached::Cost { max_cost_micros: max }),
            _ => None,
        }
    }

    /// Returns the limit that was reached; `None` if there is none.
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
