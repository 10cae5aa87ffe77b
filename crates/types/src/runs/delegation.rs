//! Delegation: a child run that works for a call of another run, with a lease, a part of that run's budget.
//!
//! A calling run grants a [`Lease`] before the child run starts, and gets the unused part back after the
//! child run has ended. Leases of parallel runs never overlap, so together they cannot exceed the budget,
//! except by the amount by which requests under way cost more than expected.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    config::{ExecutionLimits, Lease},
    log::Journal,
    values::{CallId, RunId},
};

/// A call that starts a child run: the caller, the id of the child run, and its limits.
///
/// The code that executes the call gets the delegation in
/// [`Context::delegation`](crate::Context::delegation), and passes it on in the context of the child run.
#[derive(Clone)]
#[non_exhaustive]
pub struct Delegation {
    /// The calling run.
    pub caller: RunId,
    /// The id of the call in the calling run.
    pub call: CallId,
    /// The id of the child run; see [`RunId::of_call`]. The child run may exist from before a crash.
    pub child: RunId,
    /// The lease: the part of the caller's budget that the child run may use.
    pub lease: Lease,
    /// The maximum number of turns of the child run, if the call sets one.
    pub max_turns: Option<u32>,
    /// The maximum [depth](crate::Context::depth) that the caller allows for all runs below the child run: its child
    /// runs, their child runs and so on.
    pub max_depth: u32,
    /// The journal that has both the log of the caller and the log of the child run.
    pub journal: Arc<dyn Journal>,
    /// The access to the caller's log, where the child run records that its own log was created.
    pub caller_log: Option<Arc<dyn CallerLog>>,
}

/// The access of child runs to the log of their caller.
///
/// ```
/// use archon_types::{BoxFuture, CallId, CallerLog, RunId};
///
/// /// Prints child runs, for a caller without a log.
/// struct Printed;
///
/// impl CallerLog for Printed {
///     fn child_run_created<'a>(&'a self, call: CallId, child: &'a RunId) -> BoxFuture<'a, ()> {
///         println!("call {call} started {child}");
///         Box::pin(std::future::ready(()))
///     }
/// }
/// ```
pub trait CallerLog: Send + Sync {
    /// Appends [`RecordBody::ChildRunCreated`](crate::RecordBody::ChildRunCreated), unless the log already
    /// has one for this call. Returns when the record is in the log, or when no more records can be appended.
    fn child_run_created<'a>(&'a self, call: CallId, child: &'a RunId) -> BoxFuture<'a, ()>;
}

impl Delegation {
    /// Creates the delegation of the child run that `call` of `caller` starts. It sets no maximum number of turns
    /// and has no access to the caller's log.
    pub fn new(caller: RunId, call: CallId, lease: Lease, max_depth: u32, journal: Arc<dyn Journal>) -> Self {
        let child = caller.of_call(call);
        Self { caller, call, child, lease, max_turns: None, max_depth, journal, caller_log: None }
    }

    /// Sets the access to the caller's log, where the child run records that its own log was created, before
    /// it does anything else. Without this record, a child run whose log was lost is started again after a
    /// crash.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_types::{CallerLog, Delegation};
    ///
    /// fn with_log(delegation: Delegation, log: Arc<dyn CallerLog>) -> Delegation {
    ///     delegation.with_caller_log(log)
    /// }
    /// ```
    pub fn with_caller_log(mut self, log: Arc<dyn CallerLog>) -> Self {
        self.caller_log = Some(log);
        self
    }

    /// Returns the limits of the child run at `depth`: its own `limits`, lowered to what the caller granted.
    pub fn narrow(&self, limits: ExecutionLimits, depth: u32) -> ExecutionLimits {
        let mut limits = self.lease.narrow(limits);
        limits.max_turns = self.max_turns.map_or(limits.max_turns, |most| most.min(limits.max_turns));
        // The child run's own limit counts from the depth of the child run.
        limits.max_depth = depth.saturating_add(limits.max_depth).min(self.max_depth);
        limits
    }
}

crate::debug_fields!(Delegation: caller, call, child, lease);
