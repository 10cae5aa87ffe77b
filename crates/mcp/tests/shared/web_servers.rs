//! An MCP server at a web address that can want a token, and the authorization server that issues tokens. Both run
//! on this machine. The tests of the command have this file too, so it does without `archon_mcp`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_testkit::{MockResponse, MockServer, RecordedRequest};
use serde_json::{Value, json};

pub(crate) const CODE: &str = "the-code-of-the-login";
pub(crate) const CLIENT_SECRET: &str = "the-secret-of-a-client";

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

/// Starts the MCP server, which wants a token, and the authorization server that it names.
pub(crate) async fn start() -> (MockServer, MockServer, Shared) {
    let state = Shared::default();
    let shared = state.clone();
    let mcp = MockServer::answering(move |request| resource(&mut lock(&shared), request)).await;
    let shared = state.clone();
    let logins = MockServer::answering(move |request| authority(&mut lock(&shared), request)).await;
    lock(&state).named = logins.url();
    (mcp, logins, state)
}

pub(crate) fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a field of the query of an address.
pub(crate) fn field(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    fields(query).remove(name)
}

/// Returns the address that the browser is sent to by this issuer when the person agreed.
pub(crate) fn agreed(url: &str, issuer: &str) -> String {
    let (redirect, state) = (field(url, "redirect_uri").unwrap(), field(url, "state").unwrap());
    format!("{redirect}?code={CODE}&state={state}&iss={issuer}")
}

/// Returns the fields of a query, or of a form.
pub(crate) fn fields(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next(), rest.next()].map(Option::unwrap);
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

fn host(request: &RecordedRequest) -> String {
    format!("http://{}", request.header("host").unwrap())
}

/// Answers like a server of revision 2025-11-25 with sessions.
pub(crate) fn answer(request: &RecordedRequest) -> MockResponse {
    let result = match (&*request.method, request.body["method"].as_str().unwrap_or_default()) {
        ("GET", _) => return MockResponse::new(405),
        ("POST", "initialize") => json!({
            "protocolVersion": request.body["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        }),
        ("POST", "tools/list") => {
            let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
            json!({ "tools": [{ "name": "echo", "description": "Returns its text.", "inputSchema": schema }] })
        }
        ("POST", "tools/call") => {
            let content = json!([{ "type": "text", "text": request.body["params"]["arguments"]["text"] }]);
            return MockResponse::events([
                reply(request, "result", json!({ "content": content })).to_string()
            ]);
        }
        ("POST", "server/discover") => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return MockResponse::json(200, &reply(request, "error", error));
        }
        ("DELETE", _) => return MockResponse::new(200),
        _ => return MockResponse::new(202),
    };
    MockResponse::json(200, &reply(request, "result", result)).header("mcp-session-id", "session-1")
}

pub(crate) fn reply(request: &RecordedRequest, kind: &str, value: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request.body["id"], kind: value })
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
        _ => answer(request),
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
        "/token" if is_granted(state, &fields(&request.text)) => {
            let mut tokens = tokens(state);
            if fields(&request.text)["grant_type"] == "client_credentials" {
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

fn tokens(state: &mut State) -> Value {
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
