//! OAuth 2 tokens of a person: the sign-in with a browser (authorization code with PKCE), and the renewal of tokens.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    BoxFuture, Clock, CredentialError, CredentialKey, CredentialStore, Json, Redactor, Secret, TenantId,
    Timestamp, ToolContext, ToolError,
};
use data_encoding::BASE64URL_NOPAD;
use hmac_sha256::Hash;
use reqwest::Url;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    ApiTokens, OpenApiError, redirect,
    text::one_line,
    token_endpoint::{MARGIN, TokenEndpoint, Tokens, encrypted},
};

/// A source of tokens of people, who sign in with a browser (OAuth 2, authorization code with PKCE, RFC 7636). The tokens
/// are in a credential store, for each tenant. A token is renewed shortly before it expires, and after the server refused
/// it. If it cannot be renewed, the error of the tool says that the person has to sign in again.
///
/// Both addresses must come from a person, never from an OpenAPI document. A stored sign-in is used only with the token
/// address that it came from.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use archon_openapi::{AuthorizationCode, OpenApiAuth, OpenApiError};
/// use archon_types::{Clock, CredentialStore};
///
/// # async fn run(store: Arc<dyn CredentialStore>, clock: &dyn Clock) -> Result<(), OpenApiError> {
/// let (authorize, token) = ("https://login.example.com/authorize", "https://login.example.com/token");
/// let tokens = AuthorizationCode::new(store, "shop", authorize, token, "my-program")?.with_scope("orders:read");
/// let sign_in = tokens.begin("anna".into()).await?;
/// println!("Open this address in a browser: {}", sign_in.url());
/// sign_in.wait(clock).await?;
/// let auth = OpenApiAuth::Token(Arc::new(tokens));
/// # Ok(())
/// # }
/// ```
pub struct AuthorizationCode {
    store: Arc<dyn CredentialStore>,
    service: String,
    account: Option<String>,
    authorize: Url,
    endpoint: TokenEndpoint,
    scope: Option<String>,
    /// The advice for a person who has to sign in.
    advice: String,
    /// The token that the API refused last, although it may not have expired.
    refused: Mutex<Option<Secret>>,
    /// Held while a token is renewed, because a server may accept a token for renewals only once.
    renewal: tokio::sync::Mutex<()>,
}

archon_types::debug_fields!(AuthorizationCode: service, id = endpoint.id);

impl AuthorizationCode {
    /// Creates a source of tokens. `service` is the service in the credential store; `authorize` and `token` are the
    /// addresses of the authorization server; `client` is the id under which this program is registered there.
    ///
    /// # Errors
    /// [`OpenApiError::Setting`] if an address is neither `https` nor one of this machine, or if no client can be made.
    pub fn new(
        store: Arc<dyn CredentialStore>,
        service: impl Into<String>,
        authorize: &str,
        token: &str,
        client: impl Into<String>,
    ) -> Result<Self, OpenApiError> {
        Ok(Self {
            store,
            service: service.into(),
            account: None,
            authorize: encrypted(authorize, "sign-in address")?,
            endpoint: TokenEndpoint::new(token, client, None)?,
            scope: None,
            advice: "sign in again".to_owned(),
            refused: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        })
    }

    /// Sets the secret of this program at the authorization server. Default: none, as for a program that is installed on
    /// people's machines.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<Secret>) -> Self {
        self.endpoint.secret = Some(secret.into());
        self
    }

    /// Begins the sign-in of a tenant's person: opens a port of this machine for the browser's answer.
    ///
    /// # Errors
    /// [`OpenApiError::SignIn`] if no port can be opened, or if there are no random numbers.
    pub async fn begin(&self, tenant: TenantId) -> Result<ApiSignIn<'_>, OpenApiError> {
        let random = || {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes)
                .map_err(|e| self.failed(format!("there are no random numbers: {e}")))?;
            Ok(BASE64URL_NOPAD.encode(&bytes))
        };
        let (state, verifier) = (random()?, random()?);
        let (listener, redirect) = redirect::listen().await.map_err(|e| {
            self.failed(format!("no port of this machine can be opened for the browser's answer: {e}"))
        })?;
        let mut url = self.authorize.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.endpoint.id)
            .append_pair("redirect_uri", &redirect)
            .append_pair("state", &state)
            .append_pair("code_challenge", &BASE64URL_NOPAD.encode(&Hash::hash(verifier.as_bytes())))
            .append_pair("code_challenge_method", "S256")
            .extend_pairs(self.scope.iter().map(|scope| ("scope", scope)));
        Ok(ApiSignIn { tokens: self, tenant, url, state, verifier, redirect, listener })
    }

    /// Deletes the tokens of a tenant. Returns false if there were none.
    ///
    /// # Errors
    /// The credential store failed.
    pub async fn sign_out(&self, tenant: TenantId) -> Result<bool, CredentialError> {
        self.store.delete(&self.key(tenant)).await
    }

    fn key(&self, tenant: TenantId) -> CredentialKey {
        let key = CredentialKey::primary(tenant, &self.service);
        self.account.iter().fold(key, |key, account| key.named(account))
    }

    fn failed(&self, problem: impl Into<String>) -> OpenApiError {
        OpenApiError::SignIn { service: one_line(&self.service, 60), problem: problem.into() }
    }

    fn lock_refused(&self) -> MutexGuard<'_, Option<Secret>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stored sign-in; `None` if there is none from this token address.
    async fn load(&self, key: &CredentialKey, redactor: &Redactor) -> Result<Option<Stored>, ToolError> {
        let found = self.store.get(key).await.map_err(|e| {
            ToolError::Failed(format!("The sign-in at '{}' cannot be read: {e}", self.service))
        })?;
        let stored = found.and_then(|found| Stored::of(found.expose(), self.endpoint.address.as_str()));
        if let Some(Stored { access, refresh, .. }) = &stored {
            redactor.add_expiring(access);
            refresh.iter().for_each(|refresh| redactor.add_expiring(refresh));
        }
        Ok(stored)
    }

    async fn save(&self, key: &CredentialKey, stored: &Stored) -> Result<(), CredentialError> {
        let json = json!({
            "access_token": stored.access.expose(),
            "refresh_token": stored.refresh.as_ref().map(Secret::expose),
            "expires_at": stored.until.map(Timestamp::as_millis),
            "token_url": self.endpoint.address.as_str(),
        });
        self.store.save(key, Secret::new(json)).await
    }

    /// Returns true if a token can be sent at this time.
    fn is_usable(&self, stored: &Stored, now: Timestamp) -> bool {
        stored.until.is_none_or(|until| now < until) && self.lock_refused().as_ref() != Some(&stored.access)
    }

    /// Renews a token, and stores the new one.
    async fn renewed(
        &self,
        key: &CredentialKey,
        old: &Stored,
        context: &ToolContext,
    ) -> Result<Secret, ToolError> {
        let (redactor, now) = (&context.run.redactor, context.run.clock.now());
        let Some(refresh) = &old.refresh else { return Err(self.not_signed_in("has expired")) };
        self.endpoint.secret.iter().for_each(|secret| redactor.add(secret));
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose().as_str())];
        let tokens = match self.endpoint.request(&form).await {
            Ok(tokens) => tokens,
            Err(failed) if failed.is_refused => {
                // Another process may have renewed it meanwhile.
                return match self.load(key, redactor).await? {
                    Some(stored) if self.is_usable(&stored, now) => Ok(stored.access),
                    _ => Err(self.not_signed_in(&format!("is no longer valid ({})", failed.why))),
                };
            }
            Err(failed) => {
                let (host, why) = (self.endpoint.host(), failed.why);
                return Err(ToolError::Failed(format!("No token from {host}: {why}. Try again later.")));
            }
        };
        let mut stored = Stored::new(tokens, now);
        stored.refresh = stored.refresh.or_else(|| old.refresh.clone());
        redactor.add_expiring(&stored.access);
        stored.refresh.iter().for_each(|refresh| redactor.add_expiring(refresh));
        self.save(key, &stored).await.map_err(|e| {
            ToolError::Failed(format!("The sign-in at '{}' cannot be stored: {e}", self.service))
        })?;
        Ok(stored.access)
    }

    fn not_signed_in(&self, state: &str) -> ToolError {
        ToolError::PermissionDenied(format!(
            "The sign-in at '{}' {state}. Tell the user to {}, and go on without it until then.",
            self.service, self.advice
        ))
    }
}

archon_types::setters! {
impl AuthorizationCode {
    /// Sets the name of the account in the credential store. Default `primary`.
    pub fn with_account(self, account: impl Into<String>) -> Self { self.account = Some(account.into()) }

    /// Sets the scopes to ask for: names with spaces between them. Default: none, so the server chooses.
    pub fn with_scope(self, scope: impl Into<String>) -> Self { self.scope = Some(scope.into()) }

    /// Sets the advice for a person who has to sign in, after "Tell the user to". Default `sign in again`.
    pub fn with_advice(self, advice: impl Into<String>) -> Self { self.advice = advice.into() }
}
}

impl ApiTokens for AuthorizationCode {
    fn token<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Secret, ToolError>> {
        Box::pin(async move {
            let (key, redactor) = (self.key(context.run.tenant.clone()), &context.run.redactor);
            let now = context.run.clock.now();
            match self.load(&key, redactor).await? {
                None => return Err(self.not_signed_in("is missing")),
                Some(stored) if self.is_usable(&stored, now) => return Ok(stored.access),
                Some(_) => {}
            }
            let _renewal = self.renewal.lock().await;
            // A call that waited finds the token of the call before it.
            match self.load(&key, redactor).await? {
                None => Err(self.not_signed_in("is missing")),
                Some(stored) if self.is_usable(&stored, now) => Ok(stored.access),
                Some(stored) => self.renewed(&key, &stored, context).await,
            }
        })
    }

    fn forget(&self, token: &Secret) {
        *self.lock_refused() = Some(token.clone());
    }
}

/// A sign-in that was begun, and that a person finishes in a browser. Then the tokens are in the credential store. See
/// [`AuthorizationCode::begin`].
pub struct ApiSignIn<'t> {
    tokens: &'t AuthorizationCode,
    tenant: TenantId,
    url: Url,
    state: String,
    verifier: String,
    redirect: String,
    listener: TcpListener,
}

impl fmt::Debug for ApiSignIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiSignIn").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

impl ApiSignIn<'_> {
    /// Returns the address that the person has to open in a browser.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Waits until the person has agreed in a browser on this machine, and stores the tokens. There is no time limit.
    /// While a program awaits this future, it can also wait for an address that the person pastes, and pass that to
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`OpenApiError::SignIn`] if the person or the authorization server refused, or if the tokens cannot be fetched or
    /// stored.
    pub async fn wait(&self, clock: &dyn Clock) -> Result<(), OpenApiError> {
        let address = redirect::answer(&self.listener, &self.state).await;
        self.finish(&address.map_err(|e| self.tokens.failed(e.to_string()))?, clock).await
    }

    /// Fetches the tokens with `address`, the address at which the browser ended, and stores them. This is for a
    /// browser on another machine: the browser cannot open that address and shows an error, but the person can copy the
    /// address.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and if the address is not the answer to this sign-in.
    pub async fn finish(&self, address: &str, clock: &dyn Clock) -> Result<(), OpenApiError> {
        let failed = |problem: String| self.tokens.failed(problem);
        let address = Url::parse(address.trim()).map_err(|_| {
            failed("this is not an address; copy the whole address from the browser".to_owned())
        })?;
        let field = |name: &str| {
            let mut fields = address.query_pairs();
            fields.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        if field("state").as_ref() != Some(&self.state) {
            return Err(failed("this address is not the answer to this sign-in".to_owned()));
        }
        if let Some(error) = field("error") {
            let more = field("error_description").map(|text| format!(" ({text})")).unwrap_or_default();
            let text = one_line(&format!("{error}{more}"), 300);
            return Err(failed(format!("the authorization server refused it: {text}")));
        }
        let code = field("code");
        let code =
            code.ok_or_else(|| failed("the answer of the authorization server has no code".to_owned()))?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", self.redirect.as_str()),
            ("code_verifier", self.verifier.as_str()),
        ];
        let now = clock.now();
        let tokens = self.tokens.endpoint.request(&form).await.map_err(|e| failed(e.why))?;
        let key = self.tokens.key(self.tenant.clone());
        self.tokens.save(&key, &Stored::new(tokens, now)).await.map_err(|e| failed(e.to_string()))
    }
}

/// The tokens of a sign-in as they are stored.
struct Stored {
    access: Secret,
    refresh: Option<Secret>,
    /// The time at which the token is replaced; `None` if only the API's refusal ends it.
    until: Option<Timestamp>,
}

impl Stored {
    fn new(tokens: Tokens, now: Timestamp) -> Self {
        let until = tokens.validity.map(|validity| now + validity.saturating_sub(MARGIN));
        Self { access: tokens.access, refresh: tokens.refresh, until }
    }

    /// Reads a stored sign-in; returns `None` if it came from another token address.
    fn of(stored: &Json, token_url: &str) -> Option<Self> {
        let text = |field: &str| stored[field].as_str();
        text("token_url").filter(|stored| *stored == token_url)?;
        Some(Self {
            access: Secret::from(text("access_token")?),
            refresh: text("refresh_token").map(Secret::from),
            until: stored["expires_at"].as_u64().map(Timestamp::from_millis),
        })
    }
}
