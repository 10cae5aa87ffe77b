//! The pool's index in memory.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use archon_types::{BoxFuture, JournalError, PendingApproval, PoolFilter, PoolIndex, RunId, TenantId};

/// An index in memory. After a restart [`AgentPool::restore`](crate::AgentPool::restore) rebuilds it.
#[derive(Debug, Default)]
pub struct InMemoryPoolIndex(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tenants: HashMap<TenantId, HashMap<RunId, Vec<PendingApproval>>>,
    /// Tenant of each run.
    of_run: HashMap<RunId, TenantId>,
}

impl State {
    fn put(&mut self, run: &RunId, waiting: Vec<PendingApproval>) {
        if let Some(tenant) = self.of_run.remove(run)
            && let Some(runs) = self.tenants.get_mut(&tenant)
        {
            runs.remove(run);
            if runs.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        if let Some(tenant) = waiting.first().map(|entry| entry.tenant.clone()) {
            self.of_run.insert(run.clone(), tenant.clone());
            self.tenants.entry(tenant).or_default().insert(run.clone(), waiting);
        }
    }

    fn find(&self, filter: &PoolFilter) -> Vec<PendingApproval> {
        let run_tenant = filter.run.as_ref().map(|run| self.of_run.get(run));
        let tenant = match (&filter.tenant, run_tenant) {
            // The run is not in the index.
            (_, Some(None)) => return Vec::new(),
            (_, Some(Some(tenant))) => Some(tenant),
            (tenant, None) => tenant.as_ref(),
        };
        let groups: Box<dyn Iterator<Item = _>> = match tenant {
            Some(tenant) => Box::new(self.tenants.get(tenant).into_iter()),
            None => Box::new(self.tenants.values()),
        };
        let all = groups.flat_map(HashMap::values).flatten();
        let mut found: Vec<_> = all.filter(|entry| filter.fits(entry)).cloned().collect();
        found.sort_by_cached_key(|e| (e.created_at, e.run.clone(), e.request.request_id.clone()));
        found
    }
}

impl PoolIndex for InMemoryPoolIndex {
    fn put<'a>(
        &'a self,
        run: &'a RunId,
        waiting: Vec<PendingApproval>,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(run, waiting);
        Box::pin(std::future::ready(Ok(())))
    }

    fn find<'a>(
        &'a self,
        filter: &'a PoolFilter,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, JournalError>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).find(filter);
        Box::pin(std::future::ready(Ok(found)))
    }
}
