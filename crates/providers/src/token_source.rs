//! Access tokens that expire: each request gets a token that is valid when the request is sent.

use std::sync::Arc;

use archon_types::{BoxFuture, ProviderError, Secret};
use reqwest::{Request, header::AUTHORIZATION};

use crate::http::{Transport, sensitive};

/// A callback that returns an access token, without the word `Bearer`. The provider calls it before every
/// request, so the callback should cache a token while it is valid. Its error becomes the error of the
/// request.
pub type TokenSource = Arc<dyn Fn() -> BoxFuture<'static, Result<Secret, ProviderError>> + Send + Sync>;

/// Adds a token from the token source to the request.
pub(crate) async fn with_token(
    mut request: Request,
    token: TokenSource,
    transport: Arc<Transport>,
) -> Result<Request, ProviderError> {
    let token = Secret::from(token().await?.expose().trim());
    transport.redactor.add_expiring(&token);
    let bearer = sensitive(&Secret::new(format!("Bearer {}", token.expose())));
    let bearer = bearer.ok_or_else(|| {
        ProviderError::Auth("the access token contains characters that cannot be sent in a header".into())
    })?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    Ok(request)
}
