//! An MCP server that wants a token, and the authorization server that issues them. Both run on this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_mcp::{Login, McpError, McpOptions, McpServer, McpServers, SignIn, TokenStore};
use archon_testkit::{MockResponse, MockServer, RecordedRequest};
use archon_types::{
    BoxFuture, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret, TenantId,
    Timestamp,
};
use reqwest::Url;
use serde_json::json;

use crate::{http, support};

pub(crate) const CODE: &str = "the-code-of-the-login";
pub(crate) const CLIENT_SECRET: &str = "the-secret-of-a-client";

/// The two servers, and the tokens that were kept.
pub(crate) struct World {
    pub(crate) mcp: MockServer,
    pub(crate) logins: MockServer,
    pub(crate) state: Shared,
    pub(crate) kept: MemoryStore,
}

pub(crate) type Shared = Arc<Mutex<State>>;

/// State of the two servers: issued codes and tokens, and the requests that came.
#[derive(Default)]
pub(crate) struct State {
    /// The authorization server that the MCP server names.
    pub(crate) named: String,
    /// The issuer that the authorization server states. Default: its address.
    pub(crate) issuer: Option<String>,
    /// The tokens that the MCP server accepts.
    pub(crate) accepted: BTreeSet<String>,
    /// The number of answers with tokens so far.
    pub(crate) issued: usize,
    /// The lifetime of the next tokens in seconds.
    pub(crate) lifetime: Option<u64>,
    /// A scope without which calls of tools are refused.
    pub(crate) needed: Option<String>,
    /// The challenge of the login under way (PKCE).
    pub(crate) challenge: String,
    /// Every issued token is rejected.
    pub(crate) is_useless: bool,
}

impl World {
    pub(crate) async fn start() -> Self {
        let state = Shared::default();
        let shared = state.clone();
        let mcp = MockServer::answering(move |request| resource(&mut lock(&shared), request)).await;
        let shared = state.clone();
        let logins = MockServer::answering(move |request| authority(&mut lock(&shared), request)).await;
        lock(&state).named = logins.url();
        Self { mcp, logins, state, kept: MemoryStore::default() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn server(&self, sign_in: SignIn) -> McpServer {
        McpServer::http(format!("{}/mcp", self.mcp.url())).with_sign_in(sign_in)
    }

    pub(crate) fn options(&self) -> McpOptions {
        let store: Arc<dyn CredentialStore> = Arc::new(self.kept.clone());
        support::options().with_tokens(TokenStore::new(store, TenantId::from("me")))
    }

    /// Starts the server `web`.
    pub(crate) fn connect(&self, sign_in: SignIn) -> McpServers {
        McpServers::start([("web".to_owned(), self.server(sign_in))], &self.options()).unwrap()
    }

    pub(crate) async fn begin(&self, sign_in: SignIn) -> Result<Login, McpError> {
        let login = Login::begin("web", &self.server(sign_in), &self.options()).await?;
        self.state().challenge = field(login.url(), "code_challenge").unwrap();
        Ok(login)
    }

    /// Logs in a person who agrees.
    pub(crate) async fn log_in(&self, sign_in: SignIn) -> Result<(), McpError> {
        let login = self.begin(sign_in).await?;
        login.finish(&self.agreed(login.url(), &self.logins.url())).await
    }

    /// Returns the address that the browser is sent to by this issuer when the person agreed.
    pub(crate) fn agreed(&self, url: &str, issuer: &str) -> String {
        let mut address = Url::parse(&field(url, "redirect_uri").unwrap()).unwrap();
        address
            .query_pairs_mut()
            .append_pair("code", CODE)
            .append_pair("state", &field(url, "state").unwrap())
            .append_pair("iss", issuer);
        address.to_string()
    }

    /// Returns the tokens that the MCP server got, each once, in order.
    pub(crate) fn tokens_seen(&self) -> Vec<String> {
        let requests = self.mcp.requests();
        let mut seen: Vec<_> = requests
            .iter()
            .filter_map(|request| request.header("authorization")?.strip_prefix("Bearer "))
            .map(str::to_owned)
            .collect();
        seen.dedup();
        seen
    }

    /// Returns the forms that the authorization server got for tokens.
    pub(crate) fn forms(&self) -> Vec<BTreeMap<String, String>> {
        self.logins.requests().iter().filter(|request| request.path == "/token").map(form).collect()
    }
}

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn field(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).unwrap();
    let mut fields = url.query_pairs();
    fields.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn form(request: &RecordedRequest) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://form/?{}", request.text)).unwrap();
    url.query_pairs().into_owned().collect()
}

fn host(request: &RecordedRequest) -> String {
    format!("http://{}", request.header("host").unwrap())
}

/// Answers for the MCP server.
fn resource(state: &mut State, request: &RecordedRequest) -> MockResponse {
    let host = host(request);
    if request.path.starts_with("/.well-known/oauth-protected-resource") {
        let described = json!({
            "resource": format!("{host}/mcp"), "authorization_servers": [state.named], "scopes_supported": ["read"],
        });
        return MockResponse::json(200, &described);
    }
    let refused = |status, why: &str| MockResponse::new(status).header("www-authenticate", why);
    let token = request.header("authorization").and_then(|header| header.strip_prefix("Bearer "));
    if !token.is_some_and(|token| state.accepted.contains(token)) {
        let metadata =
            format!("Bearer resource_metadata=\"{host}/.well-known/oauth-protected-resource/mcp\"");
        return refused(401, &metadata);
    }
    match &state.needed {
        Some(scope) if request.body["method"] == "tools/call" => {
            refused(403, &format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""))
        }
        _ => http::answer(request),
    }
}

/// Answers for the authorization server.
fn authority(state: &mut State, request: &RecordedRequest) -> MockResponse {
    let host = host(request);
    match &*request.path {
        "/.well-known/oauth-authorization-server" => MockResponse::json(
            200,
            &json!({
                "issuer": state.issuer.as_ref().unwrap_or(&host),
                "authorization_endpoint": format!("{host}/authorize"),
                "token_endpoint": format!("{host}/token"),
                "registration_endpoint": format!("{host}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
                "client_id_metadata_document_supported": true,
            }),
        ),
        "/register" => {
            let redirects = &request.body["redirect_uris"];
            let client = json!({
                "client_id": "client-1", "client_secret": CLIENT_SECRET, "redirect_uris": redirects,
            });
            MockResponse::json(201, &client)
        }
        "/token" if is_granted(state, &form(request)) => {
            let mut tokens = tokens(state);
            if form(request)["grant_type"] == "client_credentials" {
                tokens["refresh_token"].take();
            }
            MockResponse::json(200, &tokens)
        }
        "/token" => MockResponse::json(
            400,
            &json!({ "error": "invalid_grant", "error_description": format!("not with {CLIENT_SECRET}") }),
        ),
        _ => MockResponse::new(404),
    }
}

fn is_granted(state: &State, form: &BTreeMap<String, String>) -> bool {
    let is = |name: &str, value: &str| form.get(name).is_some_and(|given| given == value);
    match form.get("grant_type").map(String::as_str) {
        Some("authorization_code") => {
            let verifier = form.get("code_verifier").cloned().unwrap_or_default();
            is("code", CODE) && base64url(&hmac_sha256::Hash::hash(verifier.as_bytes())) == state.challenge
        }
        Some("refresh_token") => is("refresh_token", &format!("refresh-token-{}", state.issued)),
        Some("client_credentials") => is("client_id", "nightly") && is("client_secret", CLIENT_SECRET),
        _ => false,
    }
}

fn tokens(state: &mut State) -> Json {
    state.issued += 1;
    let token = format!("access-token-{}", state.issued);
    // Only the newest one is accepted.
    state.accepted.clear();
    if !state.is_useless {
        state.accepted.insert(token.clone());
    }
    let mut tokens = json!({
        "access_token": token, "token_type": "Bearer", "refresh_token": format!("refresh-token-{}", state.issued),
    });
    if let Some(lifetime) = state.lifetime {
        tokens["expires_in"] = lifetime.into();
    }
    tokens
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let digit = |bits: &[u8]| (0..6).fold(0, |sum, at| sum * 2 + usize::from(*bits.get(at).unwrap_or(&0)));
    bits.chunks(6).map(|bits| char::from(DIGITS[digit(bits)])).collect()
}

/// Credentials in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryStore(Arc<Mutex<BTreeMap<CredentialKey, Json>>>);

impl MemoryStore {
    pub(crate) fn accounts(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().map(|key| key.account.clone()).collect()
    }
}

impl CredentialStore for MemoryStore {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        let mut kept = self.0.lock().unwrap();
        let before = match credentials {
            Some(credentials) => kept.insert(key.clone(), credentials.expose().clone()),
            None => kept.remove(key),
        };
        Box::pin(std::future::ready(Ok(before.is_some())))
    }

    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        let found = self.0.lock().unwrap().get(key).cloned().map(Secret::new);
        Box::pin(std::future::ready(Ok(found)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        let at = Timestamp::from_millis(0);
        let kept = self.0.lock().unwrap();
        let keys =
            kept.keys().filter(|key| key.tenant == *tenant && service.is_none_or(|it| it == key.service));
        let entries = keys.map(|key| CredentialEntry::new(key.clone(), at, at)).collect();
        Box::pin(std::future::ready(Ok(entries)))
    }
}
