//! The pool of agents that wait: an index of suspended runs, by tenant. The logs of the runs are the truth; what the index
//! says can be made from them again at any time, and is looked at so that nobody has to read all logs for one tenant.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    JournalError, OutcomeStatus, PendingApproval, QuestionKind, Record, RecordBody, RunId, TenantId,
    Timestamp, pending_approvals,
};

/// Where the index of suspended runs is kept.
///
/// An entry is the open question of a run, as [`pending_approvals`] reads it from the log.
pub trait PoolIndex: Send + Sync {
    /// Replaces all that is known of a run by what it waits for now; a run that waits for nothing is not in the index.
    fn put<'a>(
        &'a self,
        run: &'a RunId,
        waiting: Vec<PendingApproval>,
    ) -> BoxFuture<'a, Result<(), JournalError>>;

    /// What is in the index and fits, oldest first.
    fn find<'a>(
        &'a self,
        filter: &'a PoolFilter,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, JournalError>>;
}

/// Which entries of a pool are meant: those that fit all that is said here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolFilter {
    /// Of this tenant.
    pub tenant: Option<TenantId>,
    /// Of this run.
    pub run: Option<RunId>,
    /// Those that expire at this time or before. What is paused does not expire.
    pub due: Option<Timestamp>,
}

impl PoolFilter {
    /// Everything of one tenant.
    pub fn tenant(tenant: &TenantId) -> Self {
        Self { tenant: Some(tenant.clone()), ..Self::default() }
    }

    /// Everything of one run.
    pub fn run(run: &RunId) -> Self {
        Self { run: Some(run.clone()), ..Self::default() }
    }

    /// Everything that has expired at `now`, of all tenants.
    pub fn due(now: Timestamp) -> Self {
        Self { due: Some(now), ..Self::default() }
    }

    /// Whether an entry is meant.
    pub fn fits(&self, entry: &PendingApproval) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| entry.tenant == *tenant)
            && self.run.as_ref().is_none_or(|run| entry.run == *run)
            && self.due.is_none_or(|now| entry.request.is_expired(now))
    }
}

/// How an agent stands that may wait for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum AgentStatus {
    /// It works, or was cut off while it did.
    Running,
    /// It has an answer.
    Completed,
    /// It waits for something that only a person knows.
    WaitingForInput,
    /// It waits for a person's consent.
    WaitingForApproval,
    /// It waits, and is not to be asked about until it is resumed.
    Paused,
    /// It was cancelled.
    Cancelled,
    /// It failed, or reached a limit.
    Error,
}

impl AgentStatus {
    /// How the agent of a run stands, by its log.
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
    /// How the agent stands that waits for this.
    pub fn status(&self) -> AgentStatus {
        match (self.request.paused_at, self.request.kind) {
            (Some(_), _) => AgentStatus::Paused,
            (None, QuestionKind::Input) => AgentStatus::WaitingForInput,
            (None, _) => AgentStatus::WaitingForApproval,
        }
    }
}
