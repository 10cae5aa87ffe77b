//! Access tokens that expire: each request asks for one that is valid when it is sent.

use std::sync::Arc;

use archon_types::{BoxFuture, ProviderError, Secret};
use reqwest::{Request, header::AUTHORIZATION};

use crate::http::{Transport, sensitive};

/// Gives an access token, without the word `Bearer`. Asked before every request, so it keeps a token for as
/// long as it is valid and fetches another then; its error is the error of the request.
pub type TokenSource = Arc<dyn Fn() -> BoxFuture<'static, Result<Secret, ProviderError>> + Send + Sync>;

/// The request with a token that was asked for now.
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
