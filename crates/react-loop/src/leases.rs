//! Leases: the parts of a run's budget that its child runs may use, and what they used of them.

use archon_types::{CallId, Lease, Spending};
use serde::{Deserialize, Serialize};

/// The leases of the current turn, and the spending of all child runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Leases {
    /// Leases of the current turn.
    granted: Vec<Granted>,
    /// Spending of the child runs whose leases were settled.
    pub(crate) spent: Spending,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Granted {
    call: CallId,
    lease: Lease,
    /// Spending of the child run, once it is known.
    settled: Option<Spending>,
}

impl Leases {
    /// Returns the lease of a call of this turn, open or settled.
    pub(crate) fn of(&self, call: CallId) -> Option<Lease> {
        self.granted.iter().find(|g| g.call == call).map(|g| g.lease)
    }

    /// Returns the spending of a call's child run, if it is known.
    pub(crate) fn settled(&self, call: CallId) -> Option<Spending> {
        self.granted.iter().find(|g| g.call == call).and_then(|g| g.settled)
    }

    /// Returns the sum of the open leases.
    pub(crate) fn held(&self) -> Spending {
        let mut held = Spending::default();
        for open in self.granted.iter().filter(|g| g.settled.is_none()) {
            held += at_most(&open.lease);
        }
        held
    }

    /// Notes a lease of a call. A call has one lease; a second one is ignored.
    pub(crate) fn grant(&mut self, call: CallId, lease: Lease) {
        if self.of(call).is_none() {
            self.granted.push(Granted { call, lease, settled: None });
        }
    }

    /// Notes the total spending of a call's child run.
    pub(crate) fn settle(&mut self, call: CallId, spent: Spending) {
        let Some(granted) = self.granted.iter_mut().find(|g| g.call == call) else { return };
        let before = granted.settled.replace(spent).unwrap_or_default();
        // Counts only the difference if the child run was settled before and then went on.
        self.spent +=
            Spending::new(spent.tokens.saturating_sub(before.tokens), spent.cost.saturating_sub(before.cost));
    }

    /// Notes that the call has its result. If the spending of its child run is unknown, the whole lease
    /// counts as spent.
    pub(crate) fn ended(&mut self, call: CallId) {
        if let (Some(lease), None) = (self.of(call), self.settled(call)) {
            self.settle(call, at_most(&lease));
        }
    }

    /// Forgets the leases of a turn whose calls all have results.
    pub(crate) fn turn_over(&mut self) {
        self.granted.clear();
    }
}

fn at_most(lease: &Lease) -> Spending {
    Spending::new(lease.tokens, lease.cost.unwrap_or_default())
}

#[cfg(test)]
mod tests;
