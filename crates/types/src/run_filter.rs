//! Which runs a list has: a filter, pages, and the states that a run can be in.

use serde::{Deserialize, Serialize};

use crate::{OutcomeStatus, RunHead, RunId, SessionId, TenantId, Timestamp};

/// How a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Nothing was asked yet: it was forked, for instance, and not resumed.
    Begun,
    /// Somebody works on it, as far as the journal can tell.
    Running,
    /// It has no end and nobody works on it: its process died, for instance.
    Interrupted,
    /// It waits, for a person for instance.
    Suspended,
    /// It has an answer.
    Finished,
    /// It ended without one.
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
    /// All there are.
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

    /// Its name, as in JSON.
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

    /// The status of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the run's log has an end.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Limit | Self::Cancelled)
    }

    /// Whether the run has more to say: somebody works on it, it waits, or it was interrupted and is to be resumed.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Running | Self::Suspended | Self::Interrupted)
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which runs are listed; the default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this session.
    pub session: Option<SessionId>,
    /// Only runs on behalf of this tenant.
    pub tenant: Option<TenantId>,
    /// Only runs that are one of these; any if there are none.
    pub status: Vec<RunStatus>,
    /// Only runs that no other run called.
    pub top_level: bool,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those behind this place: the place of the last run of the page before.
    pub after: Option<RunPlace>,
}

/// Where a run stands in a list: the last written first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunPlace {
    /// When its last record was written.
    pub updated_at: Timestamp,
    /// The run; the greater id first of those that were written at one time.
    pub run: RunId,
}

impl RunFilter {
    /// All runs.
    pub fn all() -> Self {
        Self::default()
    }

    /// The runs of a session.
    pub fn of_session(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    /// Those of them that are on behalf of this tenant.
    pub fn tenant(mut self, tenant: TenantId) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// Those of them that are one of these.
    pub fn status(mut self, status: impl IntoIterator<Item = RunStatus>) -> Self {
        self.status = status.into_iter().collect();
        self
    }

    /// Those of them that no other run called.
    pub fn top_level(mut self) -> Self {
        self.top_level = true;
        self
    }

    /// The first so many of them.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Those of them that come after this place.
    pub fn after(mut self, place: RunPlace) -> Self {
        self.after = Some(place);
        self
    }

    /// Whether a run is in the list, however long it may be.
    pub fn admits(&self, head: &RunHead) -> bool {
        self.session.as_ref().is_none_or(|session| head.session.as_ref() == Some(session))
            && self.tenant.as_ref().is_none_or(|tenant| head.tenant.as_ref() == Some(tenant))
            && (self.status.is_empty() || self.status.contains(&head.status))
            && !(self.top_level && head.called_by.is_some())
            && self.after.as_ref().is_none_or(|after| head.place() < *after)
    }

    /// The list, from all runs that may be in it.
    pub fn page(&self, mut heads: Vec<RunHead>) -> Vec<RunHead> {
        heads.retain(|head| self.admits(head));
        heads.sort_by_cached_key(|head| std::cmp::Reverse(head.place()));
        heads.truncate(self.limit.unwrap_or(usize::MAX));
        heads
    }
}
