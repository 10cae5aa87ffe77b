//! Sends requests with a token. Renews the token before it expires, and once if the server refuses it.

use std::{collections::HashMap, sync::Arc};

use archon_types::{Redactor, Secret};
use reqwest::{
    Client, StatusCode, Url,
    header::{HeaderName, HeaderValue, WWW_AUTHENTICATE},
    redirect::Policy,
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        auth::{
            AuthError, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig,
            OAuthClientConfig,
        },
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
            StreamableHttpResponseLimits,
        },
    },
};
use tokio::sync::Mutex;
use tracing::{Dispatch, instrument::WithSubscriber};

use crate::{
    McpProblem, McpServer, SignIn, SignInBy, TokenStore,
    address::checked,
    text::{MESSAGE, plain, with_causes},
    tokens::Account,
};

/// Signs in to a server, if its settings have a sign-in.
pub(crate) async fn sign_in(
    server: &McpServer,
    tokens: Option<&TokenStore>,
    redactor: &Redactor,
) -> Result<Option<Access>, McpProblem> {
    let Some(sign_in) = &server.sign_in else { return Ok(None) };
    let address = &server.signed_in_address()?.url;
    let signing_in = async {
        let found = Found::at(address, sign_in).await?;
        match sign_in.by {
            SignInBy::Person => person(found, tokens, redactor, sign_in, address).await,
            SignInBy::Program => program(found, sign_in, address).await,
        }
    };
    let grant = quiet(signing_in).await?;
    Ok(Some(Access { http: client()?, grant: Arc::new(Mutex::new(grant)), redactor: redactor.clone() }))
}

/// Runs work of the library `rmcp` with logging switched off, because the library logs secret codes.
pub(crate) fn quiet<T: Future>(work: T) -> impl Future<Output = T::Output> {
    work.with_subscriber(Dispatch::none())
}

/// The authorization server of an MCP server.
pub(crate) struct Found {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) issuer: String,
}

impl Found {
    /// Finds the authorization server of an MCP server.
    pub(crate) async fn at(address: &str, sign_in: &SignIn) -> Result<Self, McpProblem> {
        let server = checked("the server's address", address)?;
        let manager = match &sign_in.issuer {
            // A person named it, so it may be in a private network.
            Some(_) => AuthorizationManager::new_allowing_private_addresses(server.clone()).await,
            None => AuthorizationManager::new(server.clone()).await,
        };
        let mut manager = manager.map_err(|e| problem(&e))?;
        let challenge = challenge(&server).await;
        let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
        let metadata = resolved.map_err(|e| problem(&e))?.metadata;
        let ends = [Some(&metadata.authorization_endpoint), Some(&metadata.token_endpoint)];
        for end in ends.into_iter().chain([metadata.registration_endpoint.as_ref()]).flatten() {
            checked("the authorization server's address", end)?;
        }
        // Old servers are their own authorization servers, and describe none.
        let own = || server.origin().ascii_serialization();
        let issuer = metadata.issuer.clone().unwrap_or_else(own);
        if let Some(expected) = &sign_in.issuer
            && expected.trim_end_matches('/') != issuer.trim_end_matches('/')
        {
            return Err(McpProblem::Protocol(format!(
                "the server's authorization server is '{}', but the settings require '{expected}'",
                plain(&issuer, MESSAGE)
            )));
        }
        manager.set_metadata(metadata.clone());
        Ok(Self { manager, metadata, issuer })
    }
}

/// Sends a request without a token, and returns the header `WWW-Authenticate` of the answer: it names the
/// server's metadata and the required scopes. Returns `None` if the answer does not have the status 401 and
/// this header. The request is a POST, because some servers do not support the GET that the library sends.
async fn challenge(server: &Url) -> Option<String> {
    const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = client().ok()?.post(server.clone()).body(REQUEST);
    let request = request
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "server/discover");
    let answer = request.send().await.ok().filter(|answer| answer.status() == StatusCode::UNAUTHORIZED)?;
    answer.headers().get(WWW_AUTHENTICATE)?.to_str().ok().map(str::to_owned)
}

/// Makes an HTTP client. As in the library `rmcp`, connections are not kept for further requests. A redirect
/// is never followed, so a token is sent to no other server.
fn client() -> Result<Client, McpProblem> {
    let client = Client::builder().pool_max_idle_per_host(0).redirect(Policy::none()).build();
    client.map_err(|e| McpProblem::Io(with_causes(&e)))
}

async fn person(
    found: Found,
    tokens: Option<&TokenStore>,
    redactor: &Redactor,
    sign_in: &SignIn,
    address: &str,
) -> Result<Grant, McpProblem> {
    let Found { mut manager, issuer, .. } = found;
    let tokens = tokens.ok_or_else(no_tokens)?;
    let mut account = tokens.account(address, &issuer, redactor.clone());
    let Some(stored) = account.load_login().await.map_err(|e| problem(&e))? else {
        return Err(McpProblem::LogIn("nobody has logged in yet".to_owned()));
    };
    account.client_secret = stored.client_secret.clone();
    let given = sign_in.client_secret.as_ref().map(|secret| secret.expose().clone());
    let mut client = OAuthClientConfig::new(stored.credentials.client_id, address);
    client.client_secret = given.or(stored.client_secret);
    manager.configure_client(client).map_err(|e| problem(&e))?;
    manager.set_credential_store(account.clone());
    Ok(Grant { manager, by: By::Person(account) })
}

async fn program(found: Found, sign_in: &SignIn, address: &str) -> Result<Grant, McpProblem> {
    let (Some(id), Some(secret)) = (&sign_in.client_id, &sign_in.client_secret) else {
        let why = "the sign-in of a program needs the id and the secret of a client";
        return Err(McpProblem::Invalid(why.to_owned()));
    };
    let client = ClientCredentialsConfig::ClientSecret {
        client_id: id.clone(),
        client_secret: secret.expose().clone(),
        scopes: sign_in.scopes.clone(),
        resource: Some(address.to_owned()),
    };
    let mut manager = found.manager;
    manager.validate_client_credentials_metadata(&client).map_err(|e| problem(&e))?;
    manager.configure_client_credentials(&client).map_err(|e| problem(&e))?;
    manager.exchange_client_credentials(&client).await.map_err(|e| problem(&e))?;
    Ok(Grant { manager, by: By::Program(client) })
}

/// Returns the problem for options without a token store, which the sign-in of a person needs.
pub(crate) fn no_tokens() -> McpProblem {
    McpProblem::Invalid("the sign-in of a person needs a store of tokens (`McpOptions::tokens`)".to_owned())
}

/// Returns the problem of a failed sign-in.
pub(crate) fn problem(error: &AuthError) -> McpProblem {
    let text = || plain(&with_causes(error), MESSAGE);
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
            McpProblem::LogIn("the last login is no longer valid".to_owned())
        }
        AuthError::HttpError(_)
        | AuthError::DiscoveryRequestFailed { .. }
        | AuthError::TokenRefreshFailed(_)
        | AuthError::CredentialStoreError(_) => McpProblem::Io(text()),
        _ => McpProblem::Protocol(text()),
    }
}

/// An HTTP client that sends a token with each request.
#[derive(Clone)]
pub(crate) struct Access {
    http: Client,
    /// Locked while a token is renewed, so that only one of two refused requests renews it.
    grant: Arc<Mutex<Grant>>,
    redactor: Redactor,
}

type HttpError = StreamableHttpError<reqwest::Error>;

impl Access {
    /// Sends a request. If its token is refused, the request is sent once more with a new token.
    async fn send<T, F: Future<Output = Result<T, HttpError>>>(
        &self,
        request: impl Fn(String) -> F,
    ) -> Result<T, HttpError> {
        let token = self.token(None).await?;
        let mut answer = request(token.clone()).await;
        if let Err(StreamableHttpError::AuthRequired(_)) = answer {
            answer = request(self.token(Some(&token)).await?).await;
        }
        if let Err(StreamableHttpError::InsufficientScope(error)) = &answer
            && let (Some(scope), By::Person(account)) =
                (error.get_required_scope(), &self.grant.lock().await.by)
        {
            account.want(scope).await?;
        }
        answer
    }

    async fn token(&self, refused: Option<&str>) -> Result<String, AuthError> {
        let grant = self.grant.lock().await;
        let token = quiet(grant.token(refused)).await?;
        self.redactor.add_expiring(&Secret::from(token.as_str()));
        Ok(token)
    }
}

/// Gets tokens: with the manager of the library `rmcp`, for the party that signs in.
struct Grant {
    manager: AuthorizationManager,
    by: By,
}

enum By {
    Person(Account),
    Program(ClientCredentialsConfig),
}

impl Grant {
    /// Returns a token that has not expired and differs from the refused one.
    async fn token(&self, refused: Option<&str>) -> Result<String, AuthError> {
        let tokens = match (self.manager.get_access_token().await, &self.by) {
            (Ok(token), _) if refused != Some(&*token) => return Ok(token),
            (Ok(_), By::Person(_)) => self.manager.refresh_token().await?,
            (Ok(_) | Err(AuthError::AuthorizationRequired), By::Program(client)) => {
                self.manager.exchange_client_credentials(client).await?
            }
            (Err(error), _) => return Err(error),
        };
        // The trait that reads a token is in a library that this one does not show.
        let tokens = serde_json::to_value(&tokens).unwrap_or_default();
        Ok(tokens["access_token"].as_str().unwrap_or_default().to_owned())
    }
}

impl StreamableHttpClient for Access {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.send(|token| {
            let (uri, message, session) = (uri.clone(), message.clone(), session.clone());
            let headers = headers.clone();
            self.http.post_message_with_response_limits(uri, message, session, Some(token), headers, limits)
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        self.send(|token| {
            self.http.delete_session(uri.clone(), session.clone(), Some(token), headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        let most = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<BoxedSseResponse, HttpError> {
        self.send(|token| {
            let (uri, session, last_event) = (uri.clone(), session.clone(), last_event.clone());
            let headers = headers.clone();
            self.http.get_stream_with_max_sse_event_size(uri, session, last_event, Some(token), headers, most)
        })
        .await
    }
}
