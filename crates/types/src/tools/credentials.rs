//! The credentials of the accounts that tools use, separate for each tenant.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    Json,
    messages::Redactor,
    values::{Secret, TenantId, Timestamp},
};

use super::tool_error::ToolError;

/// Identifies an account by its tenant, its service and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialKey {
    /// The tenant that owns the account.
    pub tenant: TenantId,
    /// The service, for instance `github`.
    pub service: String,
    /// The name of the account. Default `primary`.
    pub account: String,
}

impl CredentialKey {
    /// Creates the key of the tenant's `primary` account at a service.
    pub fn primary(tenant: TenantId, service: impl Into<String>) -> Self {
        Self { tenant, service: service.into(), account: PRIMARY.to_owned() }
    }

    /// Sets the name of the account. Default `primary`.
    ///
    /// ```
    /// use archon_types::CredentialKey;
    ///
    /// let key = CredentialKey::primary("anna".into(), "mail").named("work");
    /// assert_eq!(key.account, "work");
    /// ```
    pub fn named(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }
}

/// The default name of an account.
const PRIMARY: &str = "primary";

/// A stored account without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialEntry {
    /// The tenant, the service and the name of the account.
    pub key: CredentialKey,
    /// The time at which the account was first saved.
    pub created_at: Timestamp,
    /// The time at which the account was last saved.
    pub updated_at: Timestamp,
}

impl CredentialEntry {
    /// Creates an entry for a stored account.
    pub fn new(key: CredentialKey, created_at: Timestamp, updated_at: Timestamp) -> Self {
        Self { key, created_at, updated_at }
    }
}

/// Stores the credentials of accounts, such as API keys and tokens. The store does not interpret them: the
/// code that knows the service signs in, refreshes tokens and saves the new credentials.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{
///     BoxFuture, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret, TenantId,
/// };
///
/// /// A store that tools cannot change.
/// struct ReadOnly(Arc<dyn CredentialStore>);
///
/// impl CredentialStore for ReadOnly {
///     fn put<'a>(
///         &'a self,
///         _key: &'a CredentialKey,
///         _credentials: Option<Secret<Json>>,
///     ) -> BoxFuture<'a, Result<bool, CredentialError>> {
///         let refused = CredentialError::Storage("the store is read-only".to_owned());
///         Box::pin(std::future::ready(Err(refused)))
///     }
///
///     fn get<'a>(
///         &'a self,
///         key: &'a CredentialKey,
///     ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
///         self.0.get(key)
///     }
///
///     fn list<'a>(
///         &'a self,
///         tenant: &'a TenantId,
///         service: Option<&'a str>,
///     ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
///         self.0.list(tenant, service)
///     }
/// }
/// ```
pub trait CredentialStore: Send + Sync {
    /// Replaces the stored credentials, or deletes them for `None`. Returns true if there were any before.
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>>;

    /// Returns the credentials that are stored under the key; `None` if there are none.
    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>>;

    /// Returns the accounts of one tenant, at one service or at all services, ordered by service and name.
    /// Accounts of other tenants are never returned.
    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>>;

    /// Stores credentials under the key, in place of earlier ones.
    fn save<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Secret<Json>,
    ) -> BoxFuture<'a, Result<(), CredentialError>> {
        Box::pin(async move { self.put(key, Some(credentials)).await.map(drop) })
    }

    /// Deletes an account. Returns false if there was none.
    fn delete<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<bool, CredentialError>> {
        self.put(key, None)
    }
}

/// The error of a credential store. Its text never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The storage failed.
    #[error("credential storage failed: {0}")]
    Storage(String),
    /// The credentials are encrypted, and the encryption key is missing, invalid or a different one.
    #[error("the credentials cannot be decrypted: {0}")]
    Sealed(String),
    /// The stored data is damaged.
    #[error("the credentials of '{service}' ({account}) are damaged: {problem}; save them again")]
    Damaged {
        /// The service.
        service: String,
        /// The name of the account.
        account: String,
        /// The description of the damage.
        problem: String,
    },
    /// A newer version of Archon wrote the store.
    #[error("the credentials at {place} have format {found}; this version reads formats up to {supported}")]
    FutureStore {
        /// The location of the store, for instance a file or a database.
        place: String,
        /// The number of the format in which the credentials are written.
        found: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
}

/// The credentials of a tenant, as a tool gets them in
/// [`ToolContext::credentials`](crate::ToolContext::credentials). A tool cannot name another tenant. Secrets
/// that a call gets are redacted in everything that its run keeps or shows from then on.
#[derive(Clone)]
pub struct Credentials {
    store: Option<Arc<dyn CredentialStore>>,
    tenant: TenantId,
    redactor: Redactor,
}

impl Credentials {
    /// Creates the access to a tenant's credentials in a store. Without a store the tenant has no accounts.
    pub(crate) fn new(store: Option<Arc<dyn CredentialStore>>, tenant: TenantId, redactor: Redactor) -> Self {
        Self { store, tenant, redactor }
    }

    /// Returns the tenant that owns the credentials.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Returns the credentials of the `primary` account at a service.
    ///
    /// # Errors
    /// [`ToolError::NotFound`] if there is no such account, with a text that tells the model to ask the user
    /// to connect it; [`ToolError::Failed`] if the account cannot be read.
    pub async fn get(&self, service: &str) -> Result<Secret<Json>, ToolError> {
        self.account(service, PRIMARY).await
    }

    /// Returns the credentials of the account with the name `account` at a service.
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

    /// Returns the stored accounts of the tenant, at one service or at all services.
    ///
    /// # Errors
    /// [`ToolError::Failed`] if the accounts cannot be read.
    pub async fn list(&self, service: Option<&str>) -> Result<Vec<CredentialEntry>, ToolError> {
        match &self.store {
            Some(store) => {
                let listed = store.list(&self.tenant, service).await;
                listed.map_err(|e| unusable(service.unwrap_or("any service"), &e))
            }
            None => Ok(Vec::new()),
        }
    }

    /// Saves the credentials of an account, for instance after a refresh.
    ///
    /// # Errors
    /// [`ToolError::Failed`] if the credentials cannot be stored.
    pub async fn save(
        &self,
        service: &str,
        account: &str,
        credentials: Secret<Json>,
    ) -> Result<(), ToolError> {
        self.redactor.add_credentials(credentials.expose());
        let Some(store) = &self.store else {
            return Err(ToolError::Failed(format!(
                "The credentials of '{service}' cannot be stored, because the application has no credential store."
            )));
        };
        store.save(&self.key(service, account), credentials).await.map_err(|e| unusable(service, &e))
    }

    fn key(&self, service: &str, account: &str) -> CredentialKey {
        CredentialKey::primary(self.tenant.clone(), service).named(account)
    }
}

crate::debug_fields!(Credentials: tenant);

fn not_connected(service: &str, account: &str) -> ToolError {
    let which = if account == PRIMARY { String::new() } else { format!(" named '{account}'") };
    ToolError::NotFound(format!(
        "No '{service}' account{which} is connected. Tell the user to connect their '{service}' account, and go on \
         without it until then."
    ))
}

fn unusable(service: &str, error: &CredentialError) -> ToolError {
    ToolError::Failed(format!("The credentials of '{service}' cannot be read or stored: {error}"))
}
