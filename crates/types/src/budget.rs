//! The budget of a run that lends to others: what was spent, what is set aside for calls under way, and how much time
//! is left. A machine keeps it and tells it what its records say.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CallId, ExecutionLimits, Lease, LimitReached, MoreLimits, Spending, Timestamp};

/// What is left of the run's limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    limits: ExecutionLimits,
    last: Timestamp,
    active_ms: u64,
    spent: Spending,
    /// What open leases may take at most.
    held: Spending,
}

/// What one call was lent, and what its run used of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loan {
    granted: Option<(CallId, Lease)>,
    settled: Option<Spending>,
}

impl Loan {
    /// The lease of this call.
    pub fn lease(&self, call: CallId) -> Option<Lease> {
        self.granted.filter(|(of, _)| *of == call).map(|(_, lease)| lease)
    }
}

impl Budget {
    /// A budget of which nothing is spent, from a time on.
    pub fn new(limits: ExecutionLimits, at: Timestamp) -> Self {
        Self { limits, last: at, active_ms: 0, spent: Spending::default(), held: Spending::default() }
    }

    /// There may be more from now on.
    pub fn raise(&mut self, more: &MoreLimits) {
        self.limits.raise(more);
    }

    /// The time now. While the run waits for people it does not count.
    pub fn see(&mut self, at: Timestamp, is_waiting: bool) {
        if !is_waiting {
            self.active_ms = self.active_ms.saturating_add(millis(at.since(self.last)));
        }
        self.last = self.last.max(at);
    }

    /// When the time is up, if the run does not wait.
    pub fn deadline(&self) -> Timestamp {
        self.last + Duration::from_millis(self.limits.max_duration_ms.saturating_sub(self.active_ms))
    }

    /// What calls have used that are settled, and what was spent besides.
    pub fn spent(&self) -> Spending {
        self.spent
    }

    /// The run itself spent this, without a loan.
    pub fn spend(&mut self, spent: Spending) {
        self.spent += spent;
    }

    /// A call was lent this. Said twice it counts once; what the call was lent before is closed.
    pub fn grant(&mut self, loan: &mut Loan, call: CallId, lease: Lease) {
        if loan.lease(call).is_none() {
            self.close(loan);
            *loan = Loan { granted: Some((call, lease)), settled: None };
            self.held += at_most(&lease);
        }
    }

    /// The call's run used this, all in all.
    pub fn settle(&mut self, loan: &mut Loan, spent: Spending) {
        let before = loan.settled.replace(spent);
        if let (None, Some((_, lease))) = (before, &loan.granted) {
            self.held = less(self.held, at_most(lease));
        }
        self.spent += less(spent, before.unwrap_or_default());
    }

    /// The call has ended. Where nobody said what its run used, it used all that it could.
    pub fn close(&mut self, loan: &mut Loan) {
        if let (Some((_, lease)), None) = (loan.granted, loan.settled) {
            self.settle(loan, at_most(&lease));
        }
    }

    /// One of so many equal shares of what is left.
    pub fn lease(&self, shares: u64) -> Lease {
        let used = |spent: u64, held: u64| spent.saturating_add(held);
        let left = |max: u64, used: u64| max.saturating_sub(used) / shares.max(1);
        let tokens = left(self.limits.max_total_tokens, used(self.spent.tokens, self.held.tokens));
        let mut lease = Lease::new(tokens, self.limits.max_duration_ms.saturating_sub(self.active_ms));
        lease.cost = self.limits.max_cost.map(|max| left(max, used(self.spent.cost, self.held.cost)));
        lease
    }

    /// What is left if no call that is under way uses more of what it was lent.
    pub fn unspent(&self) -> Lease {
        let limits = &self.limits;
        let mut lease = self.lease(1);
        lease.tokens = limits.max_total_tokens.saturating_sub(self.spent.tokens);
        lease.cost = limits.max_cost.map(|max| max.saturating_sub(self.spent.cost));
        lease
    }

    /// The limit of which nothing is left that could be lent, if there is one.
    pub fn dry(&self) -> Option<LimitReached> {
        let Lease { tokens, cost, .. } = self.lease(1);
        match (tokens, cost, self.limits.max_cost) {
            (0, ..) => Some(LimitReached::Tokens { max: self.limits.max_total_tokens }),
            (_, Some(0), Some(max)) => Some(LimitReached::Cost { max }),
            _ => None,
        }
    }

    /// The limit that was reached, if one was.
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
