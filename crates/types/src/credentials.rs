//! Accounts that tools act with, kept apart by tenant.

use futures_core::future::BoxFuture;

use crate::{Json, Secret, TenantId};

/// Which account: whose, at which service, under which name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        Self { tenant, service: service.into(), account: "primary".to_owned() }
    }
}

/// Keeps credentials. What is inside one is the tool's business, not the store's.
pub trait CredentialStore: Send + Sync {
    /// Saves, or replaces what was there.
    fn save<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Secret<Json>,
    ) -> BoxFuture<'a, Result<(), CredentialError>>;

    /// What was saved under the key.
    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>>;

    /// The keys of one tenant, never those of another.
    fn list<'a>(&'a self, tenant: &'a TenantId)
    -> BoxFuture<'a, Result<Vec<CredentialKey>, CredentialError>>;
}

/// Why credentials could not be read or kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The storage failed.
    #[error("credential storage failed: {0}")]
    Storage(String),
}
