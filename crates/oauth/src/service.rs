//! A service: its addresses, its client, and the requests to it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use archon_types::{BoxFuture, Clock, Secret, TenantId};
use oauth2::{
    AuthUrl, ClientId, ClientSecret, DeviceAuthorizationUrl, EndpointSet, HttpRequest, HttpResponse,
    RequestTokenError, Scope, TokenUrl, basic::BasicClient,
};
use reqwest::{Client, Url, redirect};

use crate::error::OAuthError;

/// The time limit of a request.
const LIMIT: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
const MOST_BYTES: usize = 64 * 1024;

/// A service with OAuth 2, and the client that is registered there.
///
/// ```
/// use archon_oauth::OAuthService;
///
/// let mail = OAuthService::new("mail", "my-client", "https://mail.example.com/token")
///     .secret("the secret of the client")
///     .sign_in_address("https://mail.example.com/authorize")
///     .scope("mail.read");
/// # let _ = mail;
/// ```
#[derive(Clone, Debug)]
pub struct OAuthService {
    pub(crate) name: String,
    client: String,
    secret: Option<Secret>,
    token_address: String,
    sign_in_address: Option<String>,
    device_address: Option<String>,
    scopes: Vec<String>,
}

impl OAuthService {
    /// Creates a service. `name` is its name in the credential store, `client` is the id of the client, and
    /// `token_address` is the address that gives tokens.
    pub fn new(name: impl Into<String>, client: impl Into<String>, token_address: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            client: client.into(),
            secret: None,
            token_address: token_address.into(),
            sign_in_address: None,
            device_address: None,
            scopes: Vec::new(),
        }
    }

    /// Sets the secret of the client; a client without one is public.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the address at which people sign in with a browser.
    #[must_use]
    pub fn sign_in_address(mut self, address: impl Into<String>) -> Self {
        self.sign_in_address = Some(address.into());
        self
    }

    /// Sets the address that gives device codes.
    #[must_use]
    pub fn device_address(mut self, address: impl Into<String>) -> Self {
        self.device_address = Some(address.into());
        self
    }

    /// Adds a scope to ask for. Default: none.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }
}

/// Signs people in at a service, and gives tokens to its tools. Share one value for each service, so that the token of
/// an account is not refreshed twice at the same time.
pub struct OAuth {
    pub(crate) service: OAuthService,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) http: Client,
    refreshing: Mutex<BTreeMap<(TenantId, String), Weak<Turn>>>,
}

/// Held during the refresh of an account, since a refresh token may be valid once.
pub(crate) type Turn = tokio::sync::Mutex<()>;

/// A client with a token address.
pub(crate) type TokenClient = BasicClient<
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    EndpointSet,
>;

impl OAuth {
    /// Creates the sign-in at a service.
    ///
    /// # Errors
    /// An address is not https, and not of this machine; or the HTTP client cannot be created.
    pub fn new(service: OAuthService, clock: Arc<dyn Clock>) -> Result<Self, OAuthError> {
        let client = Client::builder().timeout(LIMIT).redirect(redirect::Policy::none()).build();
        let http = client.map_err(|error| OAuthError::Unavailable {
            service: service.name.clone(),
            problem: format!("the HTTP client cannot be created: {}", error.without_url()),
        })?;
        let oauth = Self { service, clock, http, refreshing: Mutex::default() };
        oauth.check("token address", &oauth.service.token_address)?;
        if let Some(address) = &oauth.service.sign_in_address {
            oauth.check("sign-in address", address)?;
        }
        if let Some(address) = &oauth.service.device_address {
            oauth.check("device address", address)?;
        }
        Ok(oauth)
    }

    /// Returns the turn of an account: its refreshes go one after the other, and wait for no other account.
    pub(crate) fn turn_of(&self, tenant: &TenantId, account: &str) -> Arc<Turn> {
        let mut turns = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        let of_account = turns.entry((tenant.clone(), account.to_owned())).or_default();
        of_account.upgrade().unwrap_or_else(|| {
            let turn = Arc::default();
            *of_account = Arc::downgrade(&turn);
            turn
        })
    }

    fn check(&self, what: &'static str, address: &str) -> Result<(), OAuthError> {
        let wrong = |problem: &str| self.wrong_address(what, problem);
        let url: Url = address.parse().map_err(|_| wrong("it is no URL; write https://HOST/PATH"))?;
        let is_here = url.host_str().is_some_and(archon_types::is_this_machine);
        match url.scheme() {
            "https" if cfg!(feature = "tls") => Ok(()),
            "https" => Err(wrong("https needs the cargo feature `tls`, which is off in this build")),
            "http" if is_here => Ok(()),
            _ => Err(wrong("it must begin with https://, or name this machine")),
        }
    }

    pub(crate) fn wrong_address(&self, what: &'static str, problem: &str) -> OAuthError {
        OAuthError::Address { service: self.service.name.clone(), what, problem: problem.to_owned() }
    }

    /// Returns the client of the requests for tokens.
    pub(crate) fn client(&self) -> Result<TokenClient, OAuthError> {
        let url = TokenUrl::new(self.service.token_address.clone());
        let url = url.map_err(|error| self.wrong_address("token address", &error.to_string()))?;
        let client = BasicClient::new(ClientId::new(self.service.client.clone())).set_token_uri(url);
        Ok(match &self.service.secret {
            Some(secret) => client.set_client_secret(ClientSecret::new(secret.expose().clone())),
            None => client,
        })
    }

    pub(crate) fn sign_in_url(&self) -> Result<AuthUrl, OAuthError> {
        let missing =
            || self.wrong_address("sign-in address", "it is missing; set `OAuthService::sign_in_address`");
        let address = self.service.sign_in_address.clone().ok_or_else(missing)?;
        AuthUrl::new(address).map_err(|error| self.wrong_address("sign-in address", &error.to_string()))
    }

    pub(crate) fn device_url(&self) -> Result<DeviceAuthorizationUrl, OAuthError> {
        let missing =
            || self.wrong_address("device address", "it is missing; set `OAuthService::device_address`");
        let address = self.service.device_address.clone().ok_or_else(missing)?;
        DeviceAuthorizationUrl::new(address)
            .map_err(|error| self.wrong_address("device address", &error.to_string()))
    }

    pub(crate) fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.service.scopes.iter().cloned().map(Scope::new)
    }

    /// Sends a request, and reads a small answer.
    pub(crate) fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpFailure>> {
        let http = self.http.clone();
        Box::pin(async move {
            let failure = |error: reqwest::Error| HttpFailure(error.without_url().to_string());
            let request = reqwest::Request::try_from(request).map_err(failure)?;
            let mut answer = http.execute(request).await.map_err(failure)?;
            let (status, mut bytes) = (answer.status(), Vec::new());
            let kind = answer.headers().get(http::header::CONTENT_TYPE).cloned();
            while let Some(chunk) = answer.chunk().await.map_err(failure)? {
                bytes.extend_from_slice(&chunk);
                if bytes.len() > MOST_BYTES {
                    return Err(HttpFailure(format!("the answer has more than {MOST_BYTES} bytes")));
                }
            }
            let mut response = http::Response::new(bytes);
            *response.status_mut() = status;
            if let Some(kind) = kind {
                response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
            }
            Ok(response)
        })
    }

    /// Returns the error of a request for tokens, without what was sent or came back.
    pub(crate) fn failure<T: oauth2::ErrorResponse + std::fmt::Display>(
        &self,
        error: RequestTokenError<HttpFailure, T>,
    ) -> OAuthError {
        let service = self.service.name.clone();
        match error {
            RequestTokenError::ServerResponse(refusal) => {
                OAuthError::Refused { service, problem: refusal.to_string() }
            }
            RequestTokenError::Request(failure) => OAuthError::Unavailable { service, problem: failure.0 },
            RequestTokenError::Parse(..) => {
                OAuthError::Unavailable { service, problem: "its answer is not an OAuth answer".to_owned() }
            }
            RequestTokenError::Other(problem) => OAuthError::Unavailable { service, problem },
        }
    }
}

impl std::fmt::Debug for OAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuth").field("service", &self.service.name).finish_non_exhaustive()
    }
}

/// A request that failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HttpFailure(String);
