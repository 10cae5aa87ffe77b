//! The token endpoint of an authorization server (OAuth 2, RFC 6749, section 3.2).

use std::time::Duration;

use archon_types::{Json, Secret};
use reqwest::{Client, Url, header::CONTENT_TYPE};

use crate::{
    OpenApiError,
    hosts::client,
    style::Escape,
    text::{one_line, with_causes},
};

/// Time limit of a request for a token.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of an answer in bytes.
const LARGEST: usize = 64 << 10;

/// The time before the end of a token's validity at which it is replaced.
pub(crate) const MARGIN: Duration = Duration::from_secs(30);

/// The address for tokens, which a person named, and this program's id and secret there.
pub(crate) struct TokenEndpoint {
    pub(crate) address: Url,
    pub(crate) id: String,
    /// The secret; `None` for a program that has none.
    pub(crate) secret: Option<Secret>,
    client: Client,
}

/// The tokens of an answer.
pub(crate) struct Tokens {
    pub(crate) access: Secret,
    /// The validity of the token, if the server states it.
    pub(crate) validity: Option<Duration>,
    /// The token with which the next token is requested.
    pub(crate) refresh: Option<Secret>,
}

/// A request for a token failed.
pub(crate) struct NoToken {
    /// The reason, without secrets.
    pub(crate) why: String,
    /// True if the server refused the request, so that the same request fails again.
    pub(crate) is_refused: bool,
}

impl TokenEndpoint {
    /// # Errors
    /// [`OpenApiError::Setting`] if the address is neither `https` nor one of this machine, or if no client can be made.
    pub(crate) fn new(
        address: &str,
        id: impl Into<String>,
        secret: Option<Secret>,
    ) -> Result<Self, OpenApiError> {
        let address = encrypted(address, "token address")?;
        Ok(Self { address, id: id.into(), secret, client: client(true, LIMIT)? })
    }

    /// Requests tokens. `form` has the fields of the grant.
    pub(crate) async fn request(&self, form: &[(&str, &str)]) -> Result<Tokens, NoToken> {
        let escape = |text: &str| Escape::Strict.text(text);
        let mut fields: Vec<String> =
            form.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
        let mut request = self.client.post(self.address.clone());
        match &self.secret {
            Some(secret) => request = request.basic_auth(escape(&self.id), Some(escape(secret.expose()))),
            None => fields.push(format!("client_id={}", escape(&self.id))),
        }
        let request =
            request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(fields.join("&"));
        let failed = |why: String| NoToken { why, is_refused: false };
        let broken = |e: reqwest::Error| failed(with_causes(&e.without_url()));
        let mut response = request.send().await.map_err(broken)?;
        let (status, mut body) = (response.status(), Vec::new());
        while let Some(part) = response.chunk().await.map_err(broken)? {
            body.extend_from_slice(&part);
            if body.len() > LARGEST {
                return Err(failed("its answer is too large".to_owned()));
            }
        }
        let answer: Json = serde_json::from_slice(&body).unwrap_or_default();
        let text = |field: &str| answer[field].as_str().filter(|text| !text.is_empty());
        let Some(token) = text("access_token").filter(|_| status.is_success()) else {
            // Not the whole answer, which may repeat a secret.
            let code = one_line(text("error").unwrap_or("no token in the answer"), 100);
            let why = format!("status {}, {code}", status.as_u16());
            return Err(NoToken { why, is_refused: status.is_client_error() });
        };
        Ok(Tokens {
            access: Secret::from(token),
            validity: answer["expires_in"].as_u64().map(Duration::from_secs),
            refresh: text("refresh_token").map(Secret::from),
        })
    }

    /// Returns the host, for messages.
    pub(crate) fn host(&self) -> &str {
        self.address.host_str().unwrap_or_default()
    }
}

/// Returns an address that gets secrets or shows a person a page: `https`, or one of this machine. `what` names it in the
/// error.
pub(crate) fn encrypted(address: &str, what: &str) -> Result<Url, OpenApiError> {
    let refused = |why: &str| OpenApiError::Setting(format!("the {what} '{}' {why}", one_line(address, 200)));
    let url = Url::parse(address).map_err(|e| refused(&format!("is not a URL: {e}")))?;
    let is_here = url.host_str().is_some_and(archon_types::is_this_machine);
    match url.scheme() == "https" || url.scheme() == "http" && is_here {
        true => Ok(url),
        false => Err(refused("is not encrypted; use https")),
    }
}
