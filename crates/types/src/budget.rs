//! The budget of a run: the spent amount, the amount reserved for calls, and the remaining time. It is a part
//! of a machine, which updates it from records.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CallId, ExecutionLimits, Lease, LimitReached, MoreLimits, Spending, Timestamp};

/// The remaining budget of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    limits: ExecutionLimits,
    last: Timestamp,
    active_ms: u64,
    spent: Spending,
    /// The most that open leases may take.
    held: Spending,
}

/// The lease of one call, and the spending of its child run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loan {
    granted: Option<(CallId, Lease)>,
    settled: Option<Spending>,
}

impl Loan {
    /// Returns the lease of this call.
    pub fn lease(&self, call: CallId) -> Option<Lease> {
        self.granted.filter(|(of, _)| *of == call).map(|(_, lease)| lease)
    }
}

impl Budget {
    /// Creates an unspent budget that counts time from `at`.
    pub fn new(limits: ExecutionLimits, at: Timestamp) -> Self {
        Self { limits, last: at, active_ms: 0, spent: Spending::default(), held: Spending::default() }
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
        self.last + Duration::from_millis(self.limits.max_duration_ms.saturating_sub(self.active_ms))
    }

    /// Returns the spending of settled calls and of the run itself.
    pub fn spent(&self) -> Spending {
        self.spent
    }

    /// Adds spending of the run itself.
    pub fn spend(&mut self, spent: Spending) {
        self.spent += spent;
    }

    /// Reserves a lease for a call. The same lease twice counts once; an earlier lease of this loan is
    /// closed.
    pub fn grant(&mut self, loan: &mut Loan, call: CallId, lease: Lease) {
        if loan.lease(call).is_none() {
            self.close(loan);
            *loan = Loan { granted: Some((call, lease)), settled: None };
            self.held += at_most(&lease);
        }
    }

    /// Records the total spending of the call's child run, and releases its lease.
    pub fn settle(&mut self, loan: &mut Loan, spent: Spending) {
        let before = loan.settled.replace(spent);
        if let (None, Some((_, lease))) = (before, &loan.granted) {
            self.held = less(self.held, at_most(lease));
        }
        self.spent += less(spent, before.unwrap_or_default());
    }

    /// Closes the lease of a call that has ended. If its spending is unknown, the whole lease counts as
    /// spent.
    pub fn close(&mut self, loan: &mut Loan) {
        if let (Some((_, lease)), None) = (loan.granted, loan.settled) {
            self.settle(loan, at_most(&lease));
        }
    }

    /// Returns one of `shares` equal parts of the remaining budget.
    pub fn lease(&self, shares: u64) -> Lease {
        let used = |spent: u64, held: u64| spent.saturating_add(held);
        let left = |max: u64, used: u64| max.saturating_sub(used) / shares.max(1);
        let tokens = left(self.limits.max_total_tokens, used(self.spent.tokens, self.held.tokens));
        let mut lease = Lease::new(tokens, self.limits.max_duration_ms.saturating_sub(self.active_ms));
        lease.cost = self.limits.max_cost.map(|max| left(max, used(self.spent.cost, self.held.cost)));
        lease
    }

    /// Returns the remaining budget if calls under way use nothing more of their leases.
    pub fn unspent(&self) -> Lease {
        let limits = &self.limits;
        let mut lease = self.lease(1);
        lease.tokens = limits.max_total_tokens.saturating_sub(self.spent.tokens);
        lease.cost = limits.max_cost.map(|max| max.saturating_sub(self.spent.cost));
        lease
    }

    /// Returns the limit of which nothing is left to lend, if there is one.
    pub fn dry(&self) -> Option<LimitReached> {
        let Lease { tokens, cost, .. } = self.lease(1);
        match (tokens, cost, self.limits.max_cost) {
            (0, ..) => Some(LimitReached::Tokens { max: self.limits.max_total_tokens }),
            (_, Some(0), Some(max)) => Some(LimitReached::Cost { max }),
            _ => None,
        }
    }

    /// Returns the limit that was reached, if one was.
    pub fn reached(&self) -> Option<LimitReached> {
        let limits = &self.limits;
        if self.active_ms >= limits.max_duration_ms {
            return Some(LimitReached::Duration { max_ms: limits.max_duration_ms });
        }
        if self.spent.tokens >= limits.max_total_tokens {
            return Some(LimitReached::Tokens { max: limits.max_total_tokens });
        }
        let max = limits.max_cost.filter(|max| self.spent.cost >= *max)?;
        Some(LimitReached::Cost { max })
    }
}

fn at_most(lease: &Lease) -> Spending {
    Spending::new(lease.tokens, lease.cost.unwrap_or_default())
}

fn less(all: Spending, part: Spending) -> Spending {
    Spending::new(all.tokens.saturating_sub(part.tokens), all.cost.saturating_sub(part.cost))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
