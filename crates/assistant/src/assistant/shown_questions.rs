//! The questions that each tenant was shown last. A plain yes answers these questions and no others.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use archon_types::{PendingApproval, RunId, TenantId};

/// The run and the id of each question, in the order in which they were shown.
type Shown = Vec<(RunId, String)>;

/// The questions of one run that were shown last to each tenant, in the memory of this process.
#[derive(Debug, Default)]
pub(super) struct ShownQuestions(Mutex<HashMap<TenantId, Shown>>);

impl ShownQuestions {
    /// Returns the questions that the tenant was shown last; none after a restart.
    pub(super) fn last(&self, tenant: &TenantId) -> Shown {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned().unwrap_or_default()
    }

    /// Records that these questions are shown to the tenant now.
    pub(super) fn show(&self, tenant: &TenantId, asked: &[PendingApproval]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.is_empty() {
            true => drop(all.remove(tenant)),
            false => drop(all.insert(tenant.clone(), ids_of(asked))),
        }
    }
}

/// Returns the run and the id of each question, in this order.
pub(super) fn ids_of(asked: &[PendingApproval]) -> Shown {
    asked.iter().map(|entry| (entry.run.clone(), entry.request.request_id.clone())).collect()
}
