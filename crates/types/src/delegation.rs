//! Delegation: a run that works for a call of another run, and the part of that run's budget that it has.
//!
//! A caller grants a [`Lease`] before the run starts and takes back what was not spent after it has
//! ended. Leases of runs that work side by side never overlap, so together they cannot spend more than
//! there was, but for what the calls that are in flight cost more than anybody knew before.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use futures_core::future::BoxFuture;

use crate::{CallId, ExecutionLimits, Journal, RunId};

/// The part of its caller's budget that a run may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Lease {
    /// Tokens of all model calls, those of the runs that it calls itself included.
    pub tokens: u64,
    /// Money in millionths of a currency unit; none where the caller's money has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Active time in milliseconds.
    pub duration_ms: u64,
}

impl Lease {
    /// A lease of tokens and time, without a limit on money.
    pub fn new(tokens: u64, duration_ms: u64) -> Self {
        Self { tokens, cost: None, duration_ms }
    }

    /// The limits of a run that has this lease.
    pub fn narrow(&self, mut limits: ExecutionLimits) -> ExecutionLimits {
        limits.max_total_tokens = limits.max_total_tokens.min(self.tokens);
        limits.max_duration_ms = limits.max_duration_ms.min(self.duration_ms);
        limits.max_cost = match (limits.max_cost, self.cost) {
            (Some(own), Some(granted)) => Some(own.min(granted)),
            (own, granted) => own.or(granted),
        };
        limits
    }
}

/// What runs used of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct Spending {
    /// Tokens.
    pub tokens: u64,
    /// Money in millionths of a currency unit, as far as prices are known.
    pub cost: u64,
}

impl Spending {
    /// So many tokens, which cost so much.
    pub fn new(tokens: u64, cost: u64) -> Self {
        Self { tokens, cost }
    }

    /// Whether nothing was spent.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Spending {
    fn add_assign(&mut self, more: Self) {
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost = self.cost.saturating_add(more.cost);
    }
}

/// A call that starts a run: who calls, what the run is named, and how far it may go.
///
/// Whoever carries out such a call finds it in [`Context::delegation`](crate::Context::delegation), and
/// hands it on in the context of the run that it starts.
#[derive(Clone)]
#[non_exhaustive]
pub struct Delegation {
    /// The run that calls.
    pub caller: RunId,
    /// Its call.
    pub call: CallId,
    /// The run that is called: [`RunId::of_call`]. It may be there already, from before a crash.
    pub child: RunId,
    /// The part of the caller's budget that it may use.
    pub lease: Lease,
    /// Turns that it may take, if the call says.
    pub max_turns: Option<u32>,
    /// The deepest that runs below it may be.
    pub max_depth: u32,
    /// Where the caller is kept, and the called run with it.
    pub journal: Arc<dyn Journal>,
    /// Notes in the caller's log that the called run has a log.
    pub caller_log: Option<Arc<dyn CallerLog>>,
}

/// The log of a run that calls others, as far as those it calls write to it.
pub trait CallerLog: Send + Sync {
    /// Appends [`RecordBody::ChildBegun`](crate::RecordBody::ChildBegun), unless the log has one for this call. Returns
    /// when it is there, and also when nobody appends to the log any more.
    fn child_begun<'a>(&'a self, call: CallId, child: &'a RunId) -> BoxFuture<'a, ()>;
}

impl Delegation {
    /// The run that `call` of `caller` starts.
    pub fn new(caller: RunId, call: CallId, lease: Lease, max_depth: u32, journal: Arc<dyn Journal>) -> Self {
        let child = caller.of_call(call);
        Self { caller, call, child, lease, max_turns: None, max_depth, journal, caller_log: None }
    }

    /// The same, with the caller's log: the run says there that it has a log of its own before it does anything. Without
    /// it a run whose log is lost is begun again after a crash.
    pub fn with_caller_log(mut self, log: Arc<dyn CallerLog>) -> Self {
        self.caller_log = Some(log);
        self
    }

    /// The limits of the called run, at `depth`: its own, and no more than what it was granted.
    pub fn narrow(&self, limits: ExecutionLimits, depth: u32) -> ExecutionLimits {
        let mut limits = self.lease.narrow(limits);
        limits.max_turns = self.max_turns.map_or(limits.max_turns, |most| most.min(limits.max_turns));
        // Its own limit counts from where it stands.
        limits.max_depth = depth.saturating_add(limits.max_depth).min(self.max_depth);
        limits
    }
}

impl std::fmt::Debug for Delegation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delegation")
            .field("caller", &self.caller)
            .field("call", &self.call)
            .field("child", &self.child)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
