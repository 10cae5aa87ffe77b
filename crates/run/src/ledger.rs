//! The ledger of a run: the amounts that are spent, and the amounts that are reserved for calls under way.

use archon_types::{CallId, ExecutionLimits, Lease, Spending};
use serde::{Deserialize, Serialize};

/// The spending of a run, and the maximum that its calls under way may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    spent: Spending,
    /// The maximum that open leases may spend.
    held: Spending,
}

/// The lease of one call (the part of the budget reserved for the call), and the spending of its child run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GrantedLease {
    granted: Option<(CallId, Lease)>,
    settled: Option<Spending>,
    /// True if the child run is suspended: the rest of its lease stays reserved until it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_rest_held: bool,
}

impl GrantedLease {
    /// Returns the lease of `call`; `None` if this value has no lease, or the lease of another call.
    pub fn lease(&self, call: CallId) -> Option<Lease> {
        self.granted.filter(|(of, _)| *of == call).map(|(_, lease)| lease)
    }

    /// Returns the spending of the child run; `None` before [`Ledger::settle`] recorded it.
    pub fn settled(&self) -> Option<Spending> {
        self.settled
    }

    /// Returns the amount that is reserved for the call.
    fn held(&self) -> Spending {
        let Some((_, lease)) = &self.granted else { return Spending::default() };
        match self.settled {
            None => at_most(lease),
            Some(spent) if self.is_rest_held => less(at_most(lease), spent),
            Some(_) => Spending::default(),
        }
    }

    /// Returns true if no lease was granted.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Ledger {
    /// Returns the spending of the run itself and of those child runs whose spending is known.
    pub fn spent(&self) -> Spending {
        self.spent
    }

    /// Returns the amount that is reserved for calls under way.
    pub fn held(&self) -> Spending {
        self.held
    }

    /// Adds spending of the run itself.
    pub fn spend(&mut self, spent: Spending) {
        self.spent += spent;
    }

    /// Reserves a lease for a call and stores the lease in `call_lease`. Does nothing if `call_lease` already has a
    /// lease of this call. A lease of another call is closed first.
    pub fn grant(&mut self, call_lease: &mut GrantedLease, call: CallId, lease: Lease) {
        if call_lease.lease(call).is_none() {
            self.close(call_lease);
            *call_lease = GrantedLease { granted: Some((call, lease)), ..GrantedLease::default() };
            self.held += at_most(&lease);
        }
    }

    /// Records the total spending of a call's child run, and releases the rest of its lease. Spending that
    /// was recorded before the child run was resumed is not counted again.
    pub fn settle(&mut self, call_lease: &mut GrantedLease, spent: Spending) {
        self.held = less(self.held, call_lease.held());
        let before = call_lease.settled.replace(spent);
        call_lease.is_rest_held = false;
        self.spent += less(spent, before.unwrap_or_default());
    }

    /// Reserves the rest of a settled lease again, because the child run is suspended and will be resumed.
    pub fn hold_rest(&mut self, call_lease: &mut GrantedLease) {
        if call_lease.settled.is_some() && !call_lease.is_rest_held {
            call_lease.is_rest_held = true;
            self.held += call_lease.held();
        }
    }

    /// Releases the rest of the lease of a suspended child run that will not be resumed.
    pub fn release_rest(&mut self, call_lease: &mut GrantedLease) {
        if call_lease.is_rest_held {
            self.held = less(self.held, call_lease.held());
            call_lease.is_rest_held = false;
        }
    }

    /// Closes the lease of a call that has ended. With unknown spending, the whole lease counts as spent.
    pub fn close(&mut self, call_lease: &mut GrantedLease) {
        if let Some((_, lease)) = call_lease.granted
            && (call_lease.settled.is_none() || call_lease.is_rest_held)
        {
            self.settle(call_lease, at_most(&lease));
        }
    }

    /// Returns a lease for `duration_ms` milliseconds. Its tokens and money are one of `shares` equal parts of the
    /// rest of `limits`, after `spent` and the open leases are subtracted.
    pub fn share(&self, shares: u64, limits: &ExecutionLimits, spent: Spending, duration_ms: u64) -> Lease {
        let mut used = spent;
        used += self.held;
        let part = |most: u64, used: u64| most.saturating_sub(used) / shares.max(1);
        let mut lease = Lease::new(part(limits.max_total_tokens, used.tokens), duration_ms);
        lease.cost_micros = limits.max_cost_micros.map(|most| part(most, used.cost_micros));
        lease
    }
}

fn at_most(lease: &Lease) -> Spending {
    Spending::new(lease.tokens, lease.cost_micros.unwrap_or_default())
}

fn less(all: Spending, part: Spending) -> Spending {
    Spending::new(all.tokens.saturating_sub(part.tokens), all.cost_micros.saturating_sub(part.cost_micros))
}

#[cfg(test)]
mod tests {
    use archon_types::CommandId;

    use super::*;

    fn call(index: u32) -> CallId {
        CallId::new(CommandId(0), index)
    }

    #[test]
    fn ledger_holds_a_lease_until_it_is_settled_and_counts_it_once() {
        let (mut ledger, mut one, mut two) =
            (Ledger::default(), GrantedLease::default(), GrantedLease::default());
        ledger.grant(&mut one, call(0), Lease::new(100, 1));
        ledger.grant(&mut two, call(1), Lease::new(50, 1));
        ledger.grant(&mut one, call(0), Lease::new(9_999, 1));
        assert_eq!(ledger.held(), Spending::new(150, 0));
        ledger.settle(&mut one, Spending::new(30, 7));
        assert_eq!((ledger.held(), ledger.spent()), (Spending::new(50, 0), Spending::new(30, 7)));
        // The child run was resumed after a crash: its spending is the total.
        ledger.settle(&mut one, Spending::new(40, 9));
        assert_eq!((one.settled(), ledger.spent()), (Some(Spending::new(40, 9)), Spending::new(40, 9)));
        ledger.close(&mut one);
        ledger.close(&mut two);
        assert_eq!((ledger.held(), ledger.spent()), (Spending::default(), Spending::new(90, 9)));
    }

    #[test]
    fn lease_of_a_child_run_that_rests_stays_reserved_until_it_is_settled_released_or_closed() {
        type End = fn(&mut Ledger, &mut GrantedLease);
        let cases: [(End, u64, u64); 4] = [
            (Ledger::hold_rest, 70, 30),
            (|ledger, call_lease| ledger.settle(call_lease, Spending::new(40, 0)), 0, 40),
            (Ledger::release_rest, 0, 30),
            // It was resumed, and its spending is unknown.
            (Ledger::close, 0, 100),
        ];
        for (end, held, spent) in cases {
            let (mut ledger, mut call_lease) = (Ledger::default(), GrantedLease::default());
            ledger.grant(&mut call_lease, call(0), Lease::new(100, 1));
            ledger.hold_rest(&mut call_lease);
            assert_eq!(ledger.held(), Spending::new(100, 0), "nothing is settled");
            ledger.settle(&mut call_lease, Spending::new(30, 0));
            ledger.hold_rest(&mut call_lease);
            assert_eq!((ledger.held(), ledger.spent()), (Spending::new(70, 0), Spending::new(30, 0)));
            end(&mut ledger, &mut call_lease);
            assert_eq!((ledger.held(), ledger.spent()), (Spending::new(held, 0), Spending::new(spent, 0)));
        }
    }

    #[test]
    fn share_is_an_equal_part_of_what_is_neither_spent_nor_reserved() {
        let (mut ledger, mut call_lease) = (Ledger::default(), GrantedLease::default());
        ledger.grant(&mut call_lease, call(0), Lease::new(100, 1));
        let mut limits = ExecutionLimits::default();
        (limits.max_total_tokens, limits.max_cost_micros) = (1_000, Some(30));
        let lease = ledger.share(2, &limits, Spending::new(300, 10), 7);
        assert_eq!((lease.tokens, lease.cost_micros, lease.duration_ms), (300, Some(10), 7));
        assert_eq!(ledger.share(0, &limits, Spending::new(2_000, 31), 7).tokens, 0);
    }
}
