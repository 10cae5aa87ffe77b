//! Leases: the parts of a run's budget that the runs it calls may use, and what became of them.

use archon_types::{CallId, Lease, Spending};
use serde::{Deserialize, Serialize};

/// The leases of the turn under way, and what all runs that were called used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Leases {
    /// Of the turn that is under way.
    granted: Vec<Granted>,
    /// What runs used whose leases were settled.
    pub(crate) spent: Spending,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Granted {
    call: CallId,
    lease: Lease,
    /// What its run used, once that is known.
    settled: Option<Spending>,
}

impl Leases {
    /// The lease of a call of this turn, whether it is open or settled.
    pub(crate) fn of(&self, call: CallId) -> Option<Lease> {
        self.granted.iter().find(|g| g.call == call).map(|g| g.lease)
    }

    /// What a call's run is known to have used.
    pub(crate) fn settled(&self, call: CallId) -> Option<Spending> {
        self.granted.iter().find(|g| g.call == call).and_then(|g| g.settled)
    }

    /// What is set aside and not settled.
    pub(crate) fn held(&self) -> Spending {
        let mut held = Spending::default();
        for open in self.granted.iter().filter(|g| g.settled.is_none()) {
            held += at_most(&open.lease);
        }
        held
    }

    /// A part of the budget was set aside; a call has one lease.
    pub(crate) fn grant(&mut self, call: CallId, lease: Lease) {
        if self.of(call).is_none() {
            self.granted.push(Granted { call, lease, settled: None });
        }
    }

    /// A call's run used this, all in all.
    pub(crate) fn settle(&mut self, call: CallId, spent: Spending) {
        let Some(granted) = self.granted.iter_mut().find(|g| g.call == call) else { return };
        let before = granted.settled.replace(spent).unwrap_or_default();
        // It was counted once already, before the run went on.
        self.spent +=
            Spending::new(spent.tokens.saturating_sub(before.tokens), spent.cost.saturating_sub(before.cost));
    }

    /// The call has its result. Where nobody said what its run used, it used all that it could.
    pub(crate) fn ended(&mut self, call: CallId) {
        if let (Some(lease), None) = (self.of(call), self.settled(call)) {
            self.settle(call, at_most(&lease));
        }
    }

    /// All calls of the turn have their results.
    pub(crate) fn turn_over(&mut self) {
        self.granted.clear();
    }
}

fn at_most(lease: &Lease) -> Spending {
    Spending::new(lease.tokens, lease.cost.unwrap_or_default())
}

#[cfg(test)]
mod tests;
