//! Leases: the parts of the run's budget that calls with a child run get.

use archon_run::{GrantedLease, Ledger};
use archon_types::{CallId, Lease, RecordBody, Spending};

use crate::CallState;

use super::{Phase, ReactMachine};

impl ReactMachine {
    /// Returns the record of the lease for a call that starts a child run; `None` if no lease is due. All
    /// calls of the turn that start child runs get equal parts of the remaining budget.
    pub(crate) fn lease_due(&self, call: CallId) -> Option<RecordBody> {
        let waits = |c: &&CallState| {
            c.result().is_none() && self.lease(c.id).is_none() && self.is_agent(&c.call.name)
        };
        let shares = self.calls().iter().filter(waits).count() as u64;
        self.calls().iter().filter(waits).find(|c| c.id == call)?;
        let lease = self.meter.lease(shares, &self.config.limits);
        Some(RecordBody::LeaseGranted { call, child_run: self.run.of_call(call), lease })
    }

    /// Returns the lease of a call; `None` if the call has none.
    pub(crate) fn lease(&self, call: CallId) -> Option<Lease> {
        self.calls().iter().find_map(|state| state.lease.lease(call))
    }

    /// Returns the spending of a call's child run, if the spending is known.
    pub(crate) fn settled(&self, call: CallId) -> Option<Spending> {
        self.call(call)?.lease.settled()
    }

    fn is_agent(&self, tool: &str) -> bool {
        self.config.tool(tool).is_some_and(|tool| tool.annotations.agent)
    }

    /// Changes the lease of a call that has no result yet.
    pub(super) fn with_lease(&mut self, id: CallId, change: impl FnOnce(&mut Ledger, &mut GrantedLease)) {
        if let Phase::Acting { calls, .. } = &mut self.phase
            && let Some(call) = calls.iter_mut().find(|call| call.id == id && call.result().is_none())
        {
            change(&mut self.meter.ledger, &mut call.lease);
        }
    }

    /// Applies a record about the child run of a call.
    pub(super) fn child_noted(&mut self, body: &RecordBody) {
        match body {
            RecordBody::ChildRunCreated { call, .. } => self.with_call(*call, |call| call.is_begun = true),
            RecordBody::LeaseGranted { call, lease, .. } => {
                self.with_lease(*call, |ledger, granted| ledger.grant(granted, *call, *lease));
            }
            RecordBody::LeaseSettled { call, spent, .. } if self.lease(*call).is_some() => {
                self.with_lease(*call, |ledger, granted| ledger.settle(granted, *spent));
            }
            _ => {}
        }
    }
}
