//! OAuth 2 tokens for a program that acts for itself, not for a person: the grant `client_credentials`.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use archon_types::{BoxFuture, Secret, Timestamp, ToolContext, ToolError};

use crate::{
    ApiTokens, OpenApiError,
    token_endpoint::{MARGIN, TokenEndpoint},
};

/// The validity of a token if the server does not state it.
const USUAL: Duration = Duration::from_secs(300);

/// A source of tokens that signs the program in with its own id and secret (OAuth 2, RFC 6749, section 4.4). A token
/// is kept in memory until shortly before it expires.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_openapi::{ClientCredentials, OpenApiAuth};
///
/// # fn main() -> Result<(), archon_openapi::OpenApiError> {
/// let tokens = ClientCredentials::new("https://login.example.com/oauth/token", "my-program", "its-secret")?
///     .with_scope("orders:read orders:write");
/// let auth = OpenApiAuth::Token(Arc::new(tokens));
/// # Ok(())
/// # }
/// ```
pub struct ClientCredentials {
    endpoint: TokenEndpoint,
    scope: Option<String>,
    /// The token, and the time at which it is replaced.
    kept: Mutex<Option<(Secret, Timestamp)>>,
}

impl ClientCredentials {
    /// Creates a source of tokens from the address of the token endpoint, and the program's id and secret at that
    /// endpoint. The address must come from a person, never from an OpenAPI document, because it receives the secret.
    ///
    /// # Errors
    /// [`OpenApiError::Setting`] if the address is neither `https` nor one of this machine, or if no client can be made.
    pub fn new(
        address: &str,
        id: impl Into<String>,
        secret: impl Into<Secret>,
    ) -> Result<Self, OpenApiError> {
        let endpoint = TokenEndpoint::new(address, id, Some(secret.into()))?;
        Ok(Self { endpoint, scope: None, kept: Mutex::new(None) })
    }

    /// Sets the scope that is requested: names with spaces between them. Default: none, so the server chooses.
    #[must_use]
    pub fn with_scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    fn lock_token(&self) -> MutexGuard<'_, Option<(Secret, Timestamp)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

archon_types::debug_fields!(ClientCredentials: id = endpoint.id, secret = endpoint.secret, scope);

impl ApiTokens for ClientCredentials {
    fn token<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Secret, ToolError>> {
        Box::pin(async move {
            if let Some(secret) = &self.endpoint.secret {
                context.run.redactor.add(secret);
            }
            let now = context.run.clock.now();
            if let Some((token, _)) = self.lock_token().as_ref().filter(|(_, until)| now < *until) {
                return Ok(token.clone());
            }
            let mut form = vec![("grant_type", "client_credentials")];
            form.extend(self.scope.as_deref().map(|scope| ("scope", scope)));
            let tokens = self.endpoint.request(&form).await.map_err(|failed| {
                ToolError::Failed(format!(
                    "No token from {}: {}. Tell the user to check the id and the secret of this program there.",
                    self.endpoint.host(),
                    failed.why
                ))
            })?;
            let until = now + tokens.validity.unwrap_or(USUAL).saturating_sub(MARGIN);
            *self.lock_token() = Some((tokens.access.clone(), until));
            Ok(tokens.access)
        })
    }

    fn forget(&self, token: &Secret) {
        let mut kept = self.lock_token();
        if kept.as_ref().is_some_and(|(known, _)| known == token) {
            *kept = None;
        }
    }
}
