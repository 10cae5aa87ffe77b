//! Who asks: a key of the resource, or a token of Microsoft Entra, which expires.

use std::{fmt, sync::Arc};

use archon_types::{BoxFuture, ProviderError, Secret};
use reqwest::{Request, header::AUTHORIZATION};

use crate::{
    error::SetupError,
    http::{Transport, sensitive},
};

/// How requests are authorised.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum AzureAuth {
    /// By nothing but the headers of the options.
    #[default]
    Headers,
    /// By a key of the resource, in the header `api-key`.
    ApiKey(Secret),
    /// By a token that does not expire while it is used.
    Bearer(Secret),
    /// By a token that is asked for before each request.
    BearerFrom(Arc<dyn TokenSource>),
}

/// Gives a token that is valid now. It should keep one until it expires.
///
/// A function that returns a future is one.
pub trait TokenSource: Send + Sync {
    /// The token, without the word `Bearer`.
    fn token(&self) -> BoxFuture<'_, Result<Secret, ProviderError>>;
}

impl<F> TokenSource for F
where
    F: Fn() -> BoxFuture<'static, Result<Secret, ProviderError>> + Send + Sync,
{
    fn token(&self) -> BoxFuture<'_, Result<Secret, ProviderError>> {
        self()
    }
}

impl AzureAuth {
    /// Adds what is known from the start.
    pub(super) fn prepare(&self, transport: &mut Transport) -> Result<(), SetupError> {
        match self {
            // Keys are often read from files, with their line ends.
            Self::ApiKey(key) => transport.set_header("api-key", &Secret::from(key.expose().trim())),
            Self::Bearer(token) => transport.set_bearer(token),
            Self::Headers | Self::BearerFrom(_) => Ok(()),
        }
    }
}

/// The request with a token that was asked for now.
pub(super) async fn authorized(
    source: Arc<dyn TokenSource>,
    transport: Arc<Transport>,
    mut request: Request,
) -> Result<Request, ProviderError> {
    let token = source.token().await?;
    let token = Secret::from(token.expose().trim());
    transport.redactor.add_later(&token);
    let bearer = sensitive(&Secret::new(format!("Bearer {}", token.expose())));
    let bearer =
        bearer.ok_or_else(|| ProviderError::Auth("the token holds what cannot be sent".to_owned()))?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    Ok(request)
}

impl fmt::Debug for AzureAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headers => f.write_str("Headers"),
            Self::ApiKey(key) => f.debug_tuple("ApiKey").field(key).finish(),
            Self::Bearer(token) => f.debug_tuple("Bearer").field(token).finish(),
            Self::BearerFrom(_) => f.debug_tuple("BearerFrom").finish_non_exhaustive(),
        }
    }
}
