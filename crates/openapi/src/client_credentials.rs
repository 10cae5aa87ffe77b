//! OAuth 2 tokens for a program that acts for itself, not for a person: the grant `client_credentials`.

use std::time::Duration;

use archon_types::{BoxFuture, Json, Secret, Timestamp, ToolContext, ToolError};
use reqwest::{Client, Url, header::CONTENT_TYPE};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    ApiTokens, OpenApiError,
    hosts::client,
    style::Escape,
    text::{one_line, with_causes},
};

/// Time limit of a request for a token.
const LIMIT: Duration = Duration::from_secs(30);
/// Time before its expiry at which a token is replaced.
const MARGIN: Duration = Duration::from_secs(30);
/// The validity of a token if the server does not state it.
const USUAL: Duration = Duration::from_secs(300);
/// Maximum size of an answer in bytes.
const LARGEST: usize = 64 << 10;

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
    address: Url,
    id: String,
    secret: Secret,
    scope: Option<String>,
    client: Client,
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
        let refused = |why: &str| {
            OpenApiError::Setting(format!("the token address '{}' {why}", one_line(address, 200)))
        };
        let url = Url::parse(address).map_err(|e| refused(&format!("is not a URL: {e}")))?;
        let is_here = url.host_str().is_some_and(archon_types::is_this_machine);
        if url.scheme() != "https" && !(url.scheme() == "http" && is_here) {
            return Err(refused("is not encrypted; use https"));
        }
        let client = client(true, LIMIT)?;
        let kept = Mutex::new(None);
        Ok(Self { address: url, id: id.into(), secret: secret.into(), scope: None, client, kept })
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

    /// Requests a token, and returns it with its validity.
    async fn request(&self) -> Result<(Secret, Duration), String> {
        let escape = |text: &str| Escape::Strict.text(text);
        let mut form = "grant_type=client_credentials".to_owned();
        if let Some(scope) = &self.scope {
            form.push_str(&format!("&scope={}", escape(scope)));
        }
        let request = self
            .client
            .post(self.address.clone())
            .basic_auth(escape(&self.id), Some(escape(self.secret.expose())))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let failed = |e: reqwest::Error| with_causes(&e.without_url());
        let mut response = request.send().await.map_err(failed)?;
        let (status, mut body) = (response.status(), Vec::new());
        while let Some(part) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&part);
            if body.len() > LARGEST {
                return Err("its answer is too large".to_owned());
            }
        }
        let answer: Json = serde_json::from_slice(&body).unwrap_or_default();
        let token = answer["access_token"].as_str().filter(|token| status.is_success() && !token.is_empty());
        let Some(token) = token else {
            // Not the whole answer, which may repeat a secret.
            let code = one_line(answer["error"].as_str().unwrap_or("no token in the answer"), 100);
            return Err(format!("status {}, {code}", status.as_u16()));
        };
        let validity = answer["expires_in"].as_u64().map_or(USUAL, Duration::from_secs);
        Ok((Secret::new(token.to_owned()), validity))
    }
}

archon_types::debug_fields!(ClientCredentials: id, secret, scope);

impl ApiTokens for ClientCredentials {
    fn token<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Secret, ToolError>> {
        Box::pin(async move {
            context.run.redactor.add(&self.secret);
            let now = context.run.clock.now();
            if let Some((token, _)) = self.lock_token().as_ref().filter(|(_, until)| now < *until) {
                return Ok(token.clone());
            }
            let (token, validity) = self.request().await.map_err(|why| {
                let host = self.address.host_str().unwrap_or_default();
                ToolError::Failed(format!(
                    "No token from {host}: {why}. Tell the user to check the id and the secret of this program there."
                ))
            })?;
            let until = now + validity.saturating_sub(MARGIN);
            *self.lock_token() = Some((token.clone(), until));
            Ok(token)
        })
    }

    fn forget(&self, token: &Secret) {
        let mut kept = self.lock_token();
        if kept.as_ref().is_some_and(|(known, _)| known == token) {
            *kept = None;
        }
    }
}
