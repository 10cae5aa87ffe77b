//! Access tokens that expire: each request gets one that is valid when it is sent.

use std::sync::Arc;

use archon_types::{BoxFuture, ProviderError, Secret};
use reqwest::{Request, header::AUTHORIZATION};

use crate::http::{Transport, sensitive};

/// Returns an access token, without the word `Bearer`. It is called before every request, so it should cache
/// a token while it is valid and then fetch another; its error becomes the error of the request.
pub type TokenSource = Arc<dyn Fn() -> BoxFuture<'static, Result<Secret, ProviderError>> + Send + Sync>;

/// Adds a freshly requested token to the request.
pub(crate) async fn with_token(
    mut request: Request,
    token: TokenSource,
    transport: Arc<Transport>,
) -> Result<Request, ProviderError> {
    let token = Secret::from(token().await?.expose().trim());
    transport.redactor.add_expiring(&token);
    let bearer = sensitive(&Secret::new(format!("Bearer {}", token.expose())));
    let bearer =
        bearer.ok_or_else(|| ProviderError::Auth("the access token holds what cannot be sent".into()))?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    Ok(request)
}
