//! The questions that each tenant was shown last. A plain yes answers these questions and no others.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use archon_types::{PendingApproval, RunId, TenantId};

/// The questions that were shown last to each tenant, in the memory of this process.
#[derive(Debug, Default)]
pub(super) struct ShownQuestions(Mutex<HashMap<TenantId, Shown>>);

/// The shown questions of one run, in the order in which they were shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) run: RunId,
    ids: Vec<String>,
}

impl ShownQuestions {
    /// Returns the questions that the tenant was shown last. `None` if no question was open then, or
    /// after a restart.
    pub(super) fn last(&self, tenant: &TenantId) -> Option<Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned()
    }

    /// Records that these questions of one run are shown to the tenant now.
    pub(super) fn show(&self, tenant: &TenantId, asked: &[PendingApproval]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.first() {
            Some(first) => {
                drop(all.insert(tenant.clone(), Shown { run: first.run.clone(), ids: ids(asked) }));
            }
            None => drop(all.remove(tenant)),
        }
    }
}

impl Shown {
    /// Returns whether exactly these questions were shown, in this order.
    pub(super) fn is(&self, asked: &[PendingApproval]) -> bool {
        asked.iter().all(|entry| entry.run == self.run) && self.ids == ids(asked)
    }
}

fn ids(asked: &[PendingApproval]) -> Vec<String> {
    asked.iter().map(|entry| entry.request.request_id.clone()).collect()
}
