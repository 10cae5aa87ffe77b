//! Credentials in memory, lost with the process: for tests and short-lived programs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    BoxFuture, Clock, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret,
    TenantId,
};

type Entries = BTreeMap<CredentialKey, (CredentialEntry, Secret<Json>)>;

/// A store that keeps credentials in memory. Clones share the credentials.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_store::InMemoryCredentials;
/// use archon_testkit::VirtualClock;
/// use archon_types::{CredentialKey, CredentialStore, Secret};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon_types::CredentialError> {
/// let store = InMemoryCredentials::new(Arc::new(VirtualClock::new()));
/// let key = CredentialKey::primary("anna".into(), "mail");
/// store.save(&key, Secret::new(serde_json::json!({ "password": "secret" }))).await?;
/// assert!(store.get(&key).await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct InMemoryCredentials {
    entries: Arc<Mutex<Entries>>,
    clock: Arc<dyn Clock>,
}

impl InMemoryCredentials {
    /// Creates a store without credentials. `clock` gives the times at which credentials are saved.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { entries: Arc::default(), clock }
    }

    // No code that can panic runs under the lock, so a poisoned lock holds valid data.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialStore for InMemoryCredentials {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        let now = self.clock.now();
        let mut entries = self.lock();
        let before = entries.remove(key);
        if let Some(credentials) = credentials {
            let since = before.as_ref().map_or(now, |(entry, _)| entry.created_at);
            entries.insert(key.clone(), (CredentialEntry::new(key.clone(), since, now), credentials));
        }
        Box::pin(std::future::ready(Ok(before.is_some())))
    }

    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        let found = self.lock().get(key).map(|(_, credentials)| credentials.clone());
        Box::pin(std::future::ready(Ok(found)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        let is_meant = |key: &CredentialKey| {
            key.tenant == *tenant && service.is_none_or(|service| key.service == service)
        };
        let entries = self.lock();
        let found =
            entries.values().map(|(entry, _)| entry).filter(|entry| is_meant(&entry.key)).cloned().collect();
        Box::pin(std::future::ready(Ok(found)))
    }
}

archon_types::debug_fields!(InMemoryCredentials);
