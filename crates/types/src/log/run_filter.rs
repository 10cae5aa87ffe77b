//! Filters and pages for lists of runs.

use crate::values::{SessionId, TenantId};

use super::{
    run_head::{RunHead, RunPlace},
    run_status::RunStatus,
};

/// A filter for lists of runs. The default matches all runs.
///
/// ```
/// use archon_types::{RunFilter, RunPlace, RunStatus};
///
/// /// A page of the runs of a customer that wait for a person.
/// fn page(after: RunPlace) -> RunFilter {
///     let filter = RunFilter::all().tenant("anna".into()).status([RunStatus::Suspended]);
///     filter.top_level().limit(50).after(after)
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this session; `None` for all sessions.
    pub session: Option<SessionId>,
    /// Only runs on behalf of this tenant; `None` for all tenants.
    pub tenant: Option<TenantId>,
    /// Only runs with one of these statuses; runs of every status if empty.
    pub status: Vec<RunStatus>,
    /// If true, only runs that are not child runs. Default false.
    pub top_level: bool,
    /// The maximum number of runs to return; `None` for no maximum.
    pub limit: Option<usize>,
    /// Only runs after this position in the list, which is the position of the last run on the previous page.
    pub after: Option<RunPlace>,
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

    /// Restricts the list to runs that are not child runs.
    pub fn top_level(mut self) -> Self {
        self.top_level = true;
        self
    }

    /// Returns true if a run matches the filter. The limit is ignored.
    pub fn admits(&self, head: &RunHead) -> bool {
        self.session.as_ref().is_none_or(|session| head.session.as_ref() == Some(session))
            && self.tenant.as_ref().is_none_or(|tenant| head.tenant.as_ref() == Some(tenant))
            && (self.status.is_empty() || self.status.contains(&head.status))
            && !(self.top_level && head.called_by.is_some())
            && self.after.as_ref().is_none_or(|after| head.place() < *after)
    }

    /// Returns the heads that match the filter, the last written run first, and at most `limit` heads.
    pub fn page(&self, mut heads: Vec<RunHead>) -> Vec<RunHead> {
        heads.retain(|head| self.admits(head));
        heads.sort_by_cached_key(|head| std::cmp::Reverse(head.place()));
        heads.truncate(self.limit.unwrap_or(usize::MAX));
        heads
    }
}

crate::setters! {
impl RunFilter {
    /// Restricts the list to runs of this tenant.
    pub fn tenant(self, tenant: TenantId) -> Self { self.tenant = Some(tenant) }

    /// Restricts the list to runs with one of these statuses.
    pub fn status(self, status: impl IntoIterator<Item = RunStatus>) -> Self {
        self.status = status.into_iter().collect()
    }

    /// Restricts the list to the `limit` last written runs.
    pub fn limit(self, limit: usize) -> Self { self.limit = Some(limit) }

    /// Restricts the list to runs after this position in the list.
    pub fn after(self, place: RunPlace) -> Self { self.after = Some(place) }
}
}
