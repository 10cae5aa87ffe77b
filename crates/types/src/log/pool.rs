//! The pool: an index of suspended runs by tenant, which saves reading all logs. The index can be rebuilt
//! from the logs at any time.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    tools::QuestionKind,
    values::{RunId, TenantId, Timestamp},
};

use super::{
    journal_error::JournalError,
    outcome::OutcomeStatus,
    pending::{PendingApproval, pending_approvals},
    record::{Record, RecordBody},
};

/// An index of the open questions of suspended runs, so that nobody must read all logs to find them.
///
/// An entry is one open question, as [`pending_approvals`] reads it from the run's log.
///
/// ```
/// use std::{collections::BTreeMap, sync::Mutex};
///
/// use archon_types::{BoxFuture, JournalError, PendingApproval, PoolFilter, PoolIndex, RunId};
///
/// /// An index in memory.
/// #[derive(Default)]
/// struct Index(Mutex<BTreeMap<RunId, Vec<PendingApproval>>>);
///
/// impl PoolIndex for Index {
///     fn put<'a>(
///         &'a self,
///         run: &'a RunId,
///         waiting: Vec<PendingApproval>,
///     ) -> BoxFuture<'a, Result<(), JournalError>> {
///         self.0.lock().expect("no panic").insert(run.clone(), waiting);
///         Box::pin(std::future::ready(Ok(())))
///     }
///
///     fn find<'a>(
///         &'a self,
///         filter: &'a PoolFilter,
///     ) -> BoxFuture<'a, Result<Vec<PendingApproval>, JournalError>> {
///         let runs = self.0.lock().expect("no panic");
///         let found = runs.values().flatten().filter(|entry| filter.fits(entry));
///         let mut found: Vec<PendingApproval> = found.cloned().collect();
///         found.sort_by_key(|entry| entry.created_at);
///         Box::pin(std::future::ready(Ok(found)))
///     }
/// }
/// ```
pub trait PoolIndex: Send + Sync {
    /// Replaces the entries of a run. Without entries, the run is removed from the index.
    fn put<'a>(
        &'a self,
        run: &'a RunId,
        waiting: Vec<PendingApproval>,
    ) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Returns the entries that match a filter, oldest first.
    fn find<'a>(
        &'a self,
        filter: &'a PoolFilter,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, JournalError>>;
}

/// A filter of the entries of a [`PoolIndex`]; all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolFilter {
    /// Only entries of this tenant.
    pub tenant: Option<TenantId>,
    /// Only entries of this run.
    pub run: Option<RunId>,
    /// Only questions that expire at this time or before. A question of a paused agent does not expire.
    pub due: Option<Timestamp>,
}

impl PoolFilter {
    /// Creates a filter for the questions of one tenant.
    pub fn tenant(tenant: &TenantId) -> Self {
        Self { tenant: Some(tenant.clone()), ..Self::default() }
    }

    /// Creates a filter for the questions of one run.
    pub fn run(run: &RunId) -> Self {
        Self { run: Some(run.clone()), ..Self::default() }
    }

    /// Creates a filter for the questions of all tenants that have expired at the time `now`.
    pub fn due(now: Timestamp) -> Self {
        Self { due: Some(now), ..Self::default() }
    }

    /// Returns true if an entry matches all conditions.
    pub fn fits(&self, entry: &PendingApproval) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| entry.tenant == *tenant)
            && self.run.as_ref().is_none_or(|run| entry.run == *run)
            && self.due.is_none_or(|now| entry.request.is_expired(now))
    }
}

/// The status of an agent that may wait for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum AgentStatus {
    /// The agent works, or its process died while the agent worked.
    Running,
    /// The agent has a final answer.
    Completed,
    /// The agent waits for a person's input.
    WaitingForInput,
    /// The agent waits for a person's approval.
    WaitingForApproval,
    /// The agent is paused: nobody is asked until it is resumed.
    Paused,
    /// The agent was cancelled.
    Cancelled,
    /// The agent failed, or reached a limit.
    Error,
}

impl AgentStatus {
    /// Returns the status of a run's agent from the records of the run.
    pub fn of(records: &[Arc<Record>]) -> Self {
        if let Some(RecordBody::RunFinished(outcome)) = records.last().map(|last| &last.body) {
            return match outcome.status {
                OutcomeStatus::Finished => Self::Completed,
                OutcomeStatus::Cancelled => Self::Cancelled,
                OutcomeStatus::Suspended => Self::WaitingForApproval,
                OutcomeStatus::Failed | OutcomeStatus::Limit(_) => Self::Error,
            };
        }
        match pending_approvals(records).first() {
            Some(entry) => entry.status(),
            None => Self::Running,
        }
    }
}

impl PendingApproval {
    /// Returns the status of the agent that waits for an answer to this question.
    pub fn status(&self) -> AgentStatus {
        match (self.request.paused_at, self.request.kind) {
            (Some(_), _) => AgentStatus::Paused,
            (None, QuestionKind::Input) => AgentStatus::WaitingForInput,
            (None, _) => AgentStatus::WaitingForApproval,
        }
    }
}
