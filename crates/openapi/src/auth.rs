//! Credentials of calls. They are sent to the server of the document, or to the configured one, and nowhere else.

use std::{fmt, sync::Arc};

use archon_types::{BoxFuture, Json, Secret, ToolContext, ToolError};

/// The credentials that calls send. Secrets are printed as `****`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum OpenApiAuth {
    /// No credentials.
    #[default]
    None,
    /// The header `Authorization: Bearer TOKEN`.
    Bearer(Secret),
    /// A key in a header.
    ApiKey {
        /// The name of the header, such as `X-API-Key`.
        header: String,
        /// The key.
        value: Secret,
    },
    /// A key in the query. Results, messages and logs never contain it.
    QueryKey {
        /// The name of the parameter, such as `api_key`.
        name: String,
        /// The key.
        value: Secret,
    },
    /// A user name and a password (HTTP Basic).
    Basic {
        /// The user name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token for the header `Authorization: Bearer TOKEN`, which a source provides for each call, such as a token
    /// of OAuth 2.
    Token(Arc<dyn ApiTokens>),
}

/// Provides tokens for calls: [`ClientCredentials`](crate::ClientCredentials),
/// [`AuthorizationCode`](crate::AuthorizationCode), [`StoredToken`], or your own.
///
/// ```
/// use archon_openapi::ApiTokens;
/// use archon_types::{BoxFuture, Secret, ToolContext, ToolError};
///
/// /// A token that another program keeps in a file.
/// struct FromFile;
///
/// impl ApiTokens for FromFile {
///     fn token<'a>(&'a self, _context: &'a ToolContext) -> BoxFuture<'a, Result<Secret, ToolError>> {
///         Box::pin(async { Ok(Secret::new(std::fs::read_to_string("shop-token")?.trim().to_owned())) })
///     }
/// }
/// ```
pub trait ApiTokens: Send + Sync {
    /// Returns the token for a call. `context` has the clock, the tenant and the credentials of the call's run.
    ///
    /// # Errors
    /// There is no token. The error text must tell the model and the person what to do.
    fn token<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Secret, ToolError>>;

    /// Forgets a token that the server refused (status 401), so that the next call gets another one. Default: nothing.
    fn forget(&self, token: &Secret) {
        let _ = token;
    }
}

impl fmt::Debug for dyn ApiTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiTokens")
    }
}

/// Reads the token from the tenant's account in the credential store of the run: from the field `access_token`,
/// otherwise `token`, otherwise `api_key`. Another part of the program must sign in and renew the token;
/// [`AuthorizationCode`](crate::AuthorizationCode) does both.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_openapi::{OpenApiAuth, StoredToken};
///
/// let auth = OpenApiAuth::Token(Arc::new(StoredToken::new("github")));
/// ```
#[derive(Clone, Debug)]
pub struct StoredToken {
    service: String,
}

impl StoredToken {
    /// Creates a source that reads the token of the account `primary` at this service.
    pub fn new(service: impl Into<String>) -> Self {
        Self { service: service.into() }
    }
}

impl ApiTokens for StoredToken {
    fn token<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Secret, ToolError>> {
        Box::pin(async move {
            let stored = context.credentials().get(&self.service).await?;
            let fields = ["access_token", "token", "api_key"];
            let token = fields.iter().find_map(|field| stored.expose().get(field).and_then(Json::as_str));
            token.map(|token| Secret::new(token.to_owned())).ok_or_else(|| {
                ToolError::Failed(format!(
                    "The stored credentials of '{}' have no token. Tell the user to connect this account again.",
                    self.service
                ))
            })
        })
    }
}
