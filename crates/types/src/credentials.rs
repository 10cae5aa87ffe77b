//! Accounts that tools act with, kept apart by tenant.

use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;

use crate::{Json, Secret, TenantId, Timestamp, ToolError};

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
/// cannot name another tenant, and what a call was given is blacked out in whatever it says.
#[derive(Clone)]
pub struct Credentials {
    store: Option<Arc<dyn CredentialStore>>,
    tenant: TenantId,
    handed: Handed,
}

impl Credentials {
    /// The tenant's accounts in a store.
    pub(crate) fn new(
        store: Option<Arc<dyn CredentialStore>>,
        tenant: TenantId,
        handed: Option<Handed>,
    ) -> Self {
        Self { store, tenant, handed: handed.unwrap_or_default() }
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
        self.handed.note(found.expose());
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
        self.handed.note(credentials.expose());
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

/// What a call was given that nobody may read: every text in it of some length.
#[derive(Clone, Default)]
pub(crate) struct Handed(Arc<Mutex<Vec<String>>>);

/// Shorter texts are words, such as the name of a scheme, and would be blacked out where they mean something else.
const SHORTEST: usize = 8;

impl Handed {
    fn note(&self, credentials: &Json) {
        let mut handed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collect(credentials, &mut handed);
        // The longest first, so that no part of one is left when it holds another.
        handed.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        handed.dedup();
    }

    /// The text with everything blacked out that was handed out; `None` if there is nothing of it.
    pub(crate) fn blacked_out(&self, text: &str) -> Option<String> {
        let handed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut clean = None;
        for secret in handed.iter() {
            let seen = clean.as_deref().unwrap_or(text);
            if seen.contains(secret.as_str()) {
                clean = Some(seen.replace(secret.as_str(), "****"));
            }
        }
        clean
    }
}

fn collect(value: &Json, into: &mut Vec<String>) {
    match value {
        Json::String(text) if text.len() >= SHORTEST => {
            into.push(text.clone());
            // As it stands inside of JSON.
            let quoted = Json::from(text.as_str()).to_string();
            if quoted.len() > text.len() + 2 {
                into.push(quoted[1..quoted.len() - 1].to_owned());
            }
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, into)),
        Json::Object(entries) => entries.values().for_each(|item| collect(item, into)),
        _ => {}
    }
}
