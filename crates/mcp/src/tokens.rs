//! The tokens of people's logins, kept in a credential store: for each server and each authorization server.

use std::sync::Arc;

use archon_types::{CredentialError, CredentialStore, TenantId};

use crate::McpServer;

/// Keeps the tokens of logins in a credential store, under the service [`SERVICE`](Self::SERVICE).
///
/// The name of an account is the server's address, a blank, and the issuer of the authorization server. So a
/// server that names another authorization server one day does not get the tokens of the first one.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_mcp::TokenStore;
/// use archon_types::CredentialStore;
///
/// fn tokens_of_anna(store: Arc<dyn CredentialStore>) -> TokenStore {
///     TokenStore::new(store, "anna".into())
/// }
/// ```
#[derive(Clone)]
pub struct TokenStore {
    store: Arc<dyn CredentialStore>,
    tenant: TenantId,
}

impl TokenStore {
    /// The name of the service under which the credential store keeps the tokens.
    pub const SERVICE: &str = "mcp";

    /// Keeps the tokens of `tenant` in `store`.
    pub fn new(store: Arc<dyn CredentialStore>, tenant: TenantId) -> Self {
        Self { store, tenant }
    }

    /// Deletes the tokens of a server, from all authorization servers: the person is logged out on this
    /// side. Returns `false` if there were none.
    ///
    /// # Errors
    /// The credential store failed.
    pub async fn log_out(&self, server: &McpServer) -> Result<bool, CredentialError> {
        let mut any = false;
        let start = format!("{} ", server.address());
        for entry in self.store.list(&self.tenant, Some(Self::SERVICE)).await? {
            if entry.key.account.starts_with(&start) {
                any |= self.store.delete(&entry.key).await?;
            }
        }
        Ok(any)
    }
}

archon_types::debug_fields!(TokenStore: tenant);

#[cfg(feature = "sign-in")]
pub(crate) use account::{Account, StoredLogin};

#[cfg(feature = "sign-in")]
mod account {
    use archon_types::{CredentialError, CredentialKey, Redactor, Secret};
    use async_trait::async_trait;
    use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
    use serde::{Deserialize, Serialize};

    use super::TokenStore;

    /// A login as it is stored, as JSON.
    #[derive(Serialize, Deserialize)]
    pub(crate) struct StoredLogin {
        pub(crate) credentials: StoredCredentials,
        /// The secret of a client that a login registered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) client_secret: Option<String>,
        /// Scopes without which the server refused a request. The next login asks for them too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub(crate) wanted: Vec<String>,
    }

    impl TokenStore {
        /// Returns the stored account of an MCP server at an authorization server. Secrets that the account
        /// reads are added to the redactor.
        pub(crate) fn account(&self, server: &str, issuer: &str, redactor: Redactor) -> Account {
            let key = CredentialKey::primary(self.tenant.clone(), Self::SERVICE);
            Account {
                tokens: self.clone(),
                key: key.named(format!("{server} {issuer}")),
                client_secret: None,
                redactor,
            }
        }
    }

    /// The tokens of one server from one authorization server.
    #[derive(Clone)]
    pub(crate) struct Account {
        tokens: TokenStore,
        key: CredentialKey,
        /// The secret of a client that a login registered; it is kept with the tokens.
        pub(crate) client_secret: Option<String>,
        redactor: Redactor,
    }

    impl Account {
        /// Returns the stored login, if there is one.
        pub(crate) async fn load_login(&self) -> Result<Option<StoredLogin>, AuthError> {
            let Some(found) = self.tokens.store.get(&self.key).await.map_err(unusable)? else {
                return Ok(None);
            };
            // The text of this error could show a part of a token.
            let login: StoredLogin = serde_json::from_value(found.expose().clone()).map_err(|_| {
                AuthError::CredentialStoreError("the stored login is damaged; log in again".to_owned())
            })?;
            self.hide(&login);
            Ok(Some(login))
        }

        /// Notes a scope without which the server refused a request.
        pub(crate) async fn want(&self, scopes: &str) -> Result<(), AuthError> {
            let Some(mut login) = self.load_login().await? else { return Ok(()) };
            let new: Vec<_> = scopes
                .split_whitespace()
                .map(str::to_owned)
                .filter(|scope| !login.wanted.contains(scope))
                .collect();
            match new.is_empty() {
                true => Ok(()),
                false => {
                    login.wanted.extend(new);
                    self.put(&login).await
                }
            }
        }

        async fn put(&self, login: &StoredLogin) -> Result<(), AuthError> {
            self.hide(login);
            let json =
                serde_json::to_value(login).map_err(|e| AuthError::CredentialStoreError(e.to_string()))?;
            self.tokens.store.save(&self.key, Secret::new(json)).await.map_err(unusable)
        }

        /// Adds the secrets of a login to the redactor.
        fn hide(&self, login: &StoredLogin) {
            let tokens = serde_json::to_value(&login.credentials.token_response).unwrap_or_default();
            let tokens = ["access_token", "refresh_token", "id_token"].map(|name| tokens[name].as_str());
            for secret in tokens.into_iter().flatten() {
                self.redactor.add_expiring(&Secret::from(secret));
            }
            if let Some(secret) = &login.client_secret {
                self.redactor.add(&Secret::from(secret.as_str()));
            }
        }
    }

    #[async_trait]
    impl CredentialStore for Account {
        async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
            Ok(self.load_login().await?.map(|login| login.credentials))
        }

        async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
            let mut wanted = match self.load_login().await {
                Ok(Some(before)) => before.wanted,
                // A damaged login is replaced by this one.
                _ => Vec::new(),
            };
            wanted.retain(|scope| !credentials.granted_scopes.contains(scope));
            self.put(&StoredLogin { credentials, client_secret: self.client_secret.clone(), wanted }).await
        }

        async fn clear(&self) -> Result<(), AuthError> {
            self.tokens.store.delete(&self.key).await.map(drop).map_err(unusable)
        }
    }

    fn unusable(error: CredentialError) -> AuthError {
        AuthError::CredentialStoreError(error.to_string())
    }
}
