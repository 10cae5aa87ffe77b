//! Limits the accounts that an agent's tools can use to the services that the agent's file names. The tools ask only
//! for accounts of the tenant whose run it is.

use std::sync::Arc;

use archon::{
    Archon, Outcome,
    types::{
        Agent, BoxFuture, Context, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Journal,
        Json, RunConfig, RunId, Secret, Spending, TenantId,
    },
};

/// A view of a credential store that has only the accounts at these services.
pub(super) struct SomeAccounts {
    store: Arc<dyn CredentialStore>,
    services: Vec<String>,
}

impl SomeAccounts {
    pub(super) fn new(store: Arc<dyn CredentialStore>, services: Vec<String>) -> Self {
        Self { store, services }
    }

    fn has(&self, service: &str) -> bool {
        self.services.iter().any(|name| name == service)
    }
}

impl CredentialStore for SomeAccounts {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        if self.has(&key.service) {
            return self.store.put(key, credentials);
        }
        let refused = format!("the file of the agent does not name the account '{}'", key.service);
        Box::pin(std::future::ready(Err(CredentialError::Storage(refused))))
    }

    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        match self.has(&key.service) {
            true => self.store.get(key),
            false => Box::pin(std::future::ready(Ok(None))),
        }
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        Box::pin(async move {
            let mut entries = self.store.list(tenant, service).await?;
            entries.retain(|entry| self.has(&entry.key.service));
            Ok(entries)
        })
    }
}

/// An agent that uses its own accounts, and never those of its caller.
pub(super) struct WithAccounts {
    pub(super) agent: Archon,
    pub(super) accounts: Option<Arc<dyn CredentialStore>>,
}

impl Agent for WithAccounts {
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut own = context.clone();
            own.credentials.clone_from(&self.accounts);
            Agent::run(&self.agent, task, &own).await
        })
    }

    fn config(&self) -> Option<RunConfig> {
        self.agent.config()
    }

    fn spending_of<'a>(
        &'a self,
        run: &'a RunId,
        journal: &'a dyn Journal,
    ) -> BoxFuture<'a, Option<Spending>> {
        self.agent.spending_of(run, journal)
    }
}
