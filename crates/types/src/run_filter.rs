//! Filters and pages for lists of runs, and the status of a run.

use serde::{Deserialize, Serialize};

use crate::{OutcomeStatus, RunHead, RunId, SessionId, TenantId, Timestamp};

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// It has started but done nothing yet, for instance a fork that was not resumed.
    Begun,
    /// A process works on it, as far as the journal can tell.
    Running,
    /// It has not ended and no process works on it, for instance because its process died.
    Interrupted,
    /// It waits for a person or a timer.
    Suspended,
    /// It has an answer.
    Finished,
    /// It ended without an answer.
    Failed,
    /// It met one of its limits.
    Limit,
    /// It was cancelled.
    Cancelled,
    /// Its log is damaged, or is of a newer version.
    Unreadable,
}

impl From<OutcomeStatus> for RunStatus {
    fn from(status: OutcomeStatus) -> Self {
        match status {
            OutcomeStatus::Finished => Self::Finished,
            OutcomeStatus::Failed => Self::Failed,
            OutcomeStatus::Limit(_) => Self::Limit,
            OutcomeStatus::Cancelled => Self::Cancelled,
            OutcomeStatus::Suspended => Self::Suspended,
        }
    }
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [Self; 9] = [
        Self::Begun,
        Self::Running,
        Self::Interrupted,
        Self::Suspended,
        Self::Finished,
        Self::Failed,
        Self::Limit,
        Self::Cancelled,
        Self::Unreadable,
    ];

    /// Returns the name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Suspended => "suspended",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::Cancelled => "cancelled",
            Self::Unreadable => "unreadable",
        }
    }

    /// Returns the status with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Returns true if the run has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Limit | Self::Cancelled)
    }

    /// Returns true if the run may go on: a process works on it, it waits, or it was interrupted.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Running | Self::Suspended | Self::Interrupted)
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A filter for lists of runs; the default matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this session.
    pub session: Option<SessionId>,
    /// Only runs on behalf of this tenant.
    pub tenant: Option<TenantId>,
    /// Only runs with one of these statuses; if empty, any.
    pub status: Vec<RunStatus>,
    /// Only runs that are no child runs.
    pub top_level: bool,
    /// The most runs to return.
    pub limit: Option<usize>,
    /// Only runs after this place: that of the last run on the page before.
    pub after: Option<RunPlace>,
}

/// The position of a run in a list, in which the last written run comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunPlace {
    /// The time of its last record.
    pub updated_at: Timestamp,
    /// The run; of runs written at the same time, the greater id comes first.
    pub run: RunId,
}

impl RunFilter {
    /// Creates a filter that matches all runs.
    pub fn all() -> Self {
        Self::default()
    }

    /// Creates a filter for the runs of a session.
    pub fn of_session(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    /// Restricts it to runs of this tenant.
    pub fn tenant(mut self, tenant: TenantId) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// Restricts it to runs with one of these statuses.
    pub fn status(mut self, status: impl IntoIterator<Item = RunStatus>) -> Self {
        self.status = status.into_iter().collect();
        self
    }

    /// Restricts it to runs that are no child runs.
    pub fn top_level(mut self) -> Self {
        self.top_level = true;
        self
    }

    /// Restricts it to the first `limit` runs.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Restricts it to runs after this place.
    pub fn after(mut self, place: RunPlace) -> Self {
        self.after = Some(place);
        self
    }

    /// Returns true if a run matches; ignores the limit.
    pub fn admits(&self, head: &RunHead) -> bool {
        self.session.as_ref().is_none_or(|session| head.session.as_ref() == Some(session))
            && self.tenant.as_ref().is_none_or(|tenant| head.tenant.as_ref() == Some(tenant))
            && (self.status.is_empty() || self.status.contains(&head.status))
            && !(self.top_level && head.called_by.is_some())
            && self.after.as_ref().is_none_or(|after| head.place() < *after)
    }

    /// Returns the page, from the heads of all runs that may be on it.
    pub fn page(&self, mut heads: Vec<RunHead>) -> Vec<RunHead> {
        heads.retain(|head| self.admits(head));
        heads.sort_by_cached_key(|head| std::cmp::Reverse(head.place()));
        heads.truncate(self.limit.unwrap_or(usize::MAX));
        heads
    }
}
