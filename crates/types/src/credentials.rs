//! Accounts that tools act with, kept apart by tenant.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{Json, Redactor, Secret, TenantId, Timestamp, ToolError};

/// Which account: whose, at which service, under which name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialKey {
    /// Whose account it is.
    pub tenant: TenantId,
    /// For instance `github`.
    pub service: String,
    /// For people with several; `primary` unless said otherwise.
    pub account: String,
}

impl CredentialKey {
    /// The tenant's `primary` account at a service.
    pub fn primary(tenant: TenantId, service: impl Into<String>) -> Self {
        Self { tenant, service: service.into(), account: PRIMARY.to_owned() }
    }

    /// One of several accounts at a service.
    pub fn named(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }
}

/// The account that is meant where none is named.
const PRIMARY: &str = "primary";

/// An account that is kept, without what is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialEntry {
    /// Which account.
    pub key: CredentialKey,
    /// When it was saved first.
    pub created_at: Timestamp,
    /// When it was saved last.
    pub updated_at: Timestamp,
}

impl CredentialEntry {
    /// An account that is kept.
    pub fn new(key: CredentialKey, created_at: Timestamp, updated_at: Timestamp) -> Self {
        Self { key, created_at, updated_at }
    }
}

/// Keeps credentials. What is inside one is the tool's business, not the store's: signing in and refreshing tokens is
/// done by whoever knows the service, and saved again.
pub trait CredentialStore: Send + Sync {
    /// Puts these credentials in the place of what was there, or takes away what was there. Says whether there was
    /// anything.
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>>;

    /// What was saved under the key.
    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>>;

    /// The accounts of one tenant, never those of another, at one service or at all; in the order of services and names.
    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>>;

    /// Saves, or replaces what was there.
    fn save<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Secret<Json>,
    ) -> BoxFuture<'a, Result<(), CredentialError>> {
        Box::pin(async move { self.put(key, Some(credentials)).await.map(drop) })
    }

    /// Forgets an account; false if there was none.
    fn delete<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<bool, CredentialError>> {
        self.put(key, None)
    }
}

/// Why credentials could not be read or kept. No text of it holds what is secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The storage failed.
    #[error("credential storage failed: {0}")]
    Storage(String),
    /// They are sealed, and there is no key, or another than they were sealed with.
    #[error("credentials are sealed: {0}")]
    Sealed(String),
    /// What is kept is not what was saved.
    #[error("the credentials of '{service}' ({account}) are damaged: {problem}; save them again")]
    Damaged {
        /// The service.
        service: String,
        /// The account.
        account: String,
        /// What is wrong with them.
        problem: String,
    },
    /// The store was written by a newer version.
    #[error("the credentials at {place} have format {found}; this version knows up to {supported}")]
    FutureStore {
        /// Where they are.
        place: String,
        /// Their format.
        found: u32,
        /// The newest that is known.
        supported: u32,
    },
}

/// A tenant's accounts as a tool reaches them: [`ToolContext::credentials`](crate::ToolContext::credentials). A tool
/// cannot name another tenant, and what a call was given is blacked out in whatever its run keeps or shows from then on.
#[derive(Clone)]
pub struct Credentials {
    store: Option<Arc<dyn CredentialStore>>,
    tenant: TenantId,
    redactor: Redactor,
}

impl Credentials {
    /// The tenant's accounts in a store.
    pub(crate) fn new(store: Option<Arc<dyn CredentialStore>>, tenant: TenantId, redactor: Redactor) -> Self {
        Self { store, tenant, redactor }
    }

    /// The `primary` account at a service.
    ///
    /// # Errors
    /// [`ToolError::NotFound`] tells the model to let the user connect the account; [`ToolError::Failed`] if it
    /// cannot be read.
    pub async fn get(&self, service: &str) -> Result<Secret<Json>, ToolError> {
        self.account(service, PRIMARY).await
    }

    /// One of several accounts at a service.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn account(&self, service: &str, account: &str) -> Result<Secret<Json>, ToolError> {
        let key = self.key(service, account);
        let found = match &self.store {
            Some(store) => store.get(&key).await.map_err(|e| unusable(service, &e))?,
            None => None,
        };
        let found = found.ok_or_else(|| not_connected(service, account))?;
        self.redactor.add_credentials(found.expose());
        Ok(found)
    }

    /// The accounts that there are, at one service or at all.
    ///
    /// # Errors
    /// [`ToolError::Failed`] if they cannot be read.
    pub async fn list(&self, service: Option<&str>) -> Result<Vec<CredentialEntry>, ToolError> {
        match &self.store {
            Some(store) => {
                let listed = store.list(&self.tenant, service).await;
                listed.map_err(|e| unusable(service.unwrap_or("any service"), &e))
            }
            None => Ok(Vec::new()),
        }
    }

    /// Saves an account, or what it became when it was refreshed.
    ///
    /// # Errors
    /// [`ToolError::Failed`] if it cannot be kept.
    pub async fn save(
        &self,
        service: &str,
        account: &str,
        credentials: Secret<Json>,
    ) -> Result<(), ToolError> {
        self.redactor.add_credentials(credentials.expose());
        let Some(store) = &self.store else {
            return Err(ToolError::Failed(format!(
                "The credentials of '{service}' cannot be kept: the application keeps none."
            )));
        };
        store.save(&self.key(service, account), credentials).await.map_err(|e| unusable(service, &e))
    }

    fn key(&self, service: &str, account: &str) -> CredentialKey {
        CredentialKey::primary(self.tenant.clone(), service).named(account)
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

fn not_connected(service: &str, account: &str) -> ToolError {
    let which = if account == PRIMARY { String::new() } else { format!(" named '{account}'") };
    ToolError::NotFound(format!(
        "No '{service}' account{which} is connected. Tell the user to connect their '{service}' account, and go on \
         without it until then."
    ))
}

fn unusable(service: &str, error: &CredentialError) -> ToolError {
    ToolError::Failed(format!("The credentials for '{service}' cannot be used: {error}"))
}
