//! The sign-in of a person with a browser, and the renewal of the tokens.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use archon_openapi::{AuthorizationCode, OpenApiAuth, OpenApiConfig, OpenApiError, OpenApiTool};
use archon_testkit::{MockResponse, MockServer, VirtualClock};
use archon_types::{Clock as _, Context, CredentialKey, CredentialStore as _, Json, Secret, ToolError};
use reqwest::Url;
use serde_json::json;

use crate::support::{Accounts, call_in, document, run, tools};

/// A program that is registered at an authorization server, and a run of the person `anna`.
struct World {
    login: MockServer,
    store: Arc<Accounts>,
    run: Context,
    clock: Arc<VirtualClock>,
}

impl World {
    async fn new(answers: impl IntoIterator<Item = MockResponse>) -> Self {
        Self::at(MockServer::start(answers).await)
    }

    fn at(login: MockServer) -> Self {
        let (mut run, clock) = (run(), Arc::new(VirtualClock::new()));
        (run.tenant, run.clock) = ("anna".into(), clock.clone());
        Self { login, store: Arc::default(), run, clock }
    }

    fn tokens(&self) -> AuthorizationCode {
        let url = self.login.url();
        let (authorize, token) = (format!("{url}/authorize?brand=x"), format!("{url}/token"));
        let tokens = AuthorizationCode::new(self.store.clone(), "openapi", &authorize, &token, "my id");
        tokens.unwrap().with_account("shop").with_advice("run: login shop")
    }

    /// Returns a tool that sends the tokens to this server.
    fn tool(&self, server: &str, tokens: AuthorizationCode) -> Arc<OpenApiTool> {
        let auth = OpenApiAuth::Token(Arc::new(tokens));
        let config = OpenApiConfig::default().with_base_url(server).with_auth(auth);
        tools(document("/a", "get", json!({})), config).remove(0)
    }

    async fn keep(&self, token: &str, expires_at: u64) {
        let stored = json!({
            "access_token": token, "refresh_token": "refresh-1", "expires_at": expires_at,
            "token_url": format!("{}/token", self.login.url()),
        });
        self.store.save(&self.key(), Secret::new(stored)).await.unwrap();
    }

    fn key(&self) -> CredentialKey {
        CredentialKey::primary("anna".into(), "openapi").named("shop")
    }
}

fn answer(access: &str, refresh: &str) -> MockResponse {
    MockResponse::json(200, &json!({ "access_token": access, "refresh_token": refresh, "expires_in": 100 }))
}

fn fields(query: &str) -> BTreeMap<String, String> {
    Url::parse(&format!("http://a/?{query}")).unwrap().query_pairs().into_owned().collect()
}

fn sent(server: &MockServer) -> Vec<String> {
    server.requests().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect()
}

// spec: OA-03
#[tokio::test]
async fn sign_in_with_a_browser_stores_tokens_that_only_calls_of_its_tenant_send() {
    let world = World::new([answer("token-one", "refresh-1")]).await;
    let tokens = world.tokens().with_scope("read write");
    let sign_in = tokens.begin("anna".into()).await.unwrap();
    let asked = fields(sign_in.url().split_once('?').unwrap().1);
    assert!(sign_in.url().starts_with(&format!("{}/authorize?brand=x&", world.login.url())));
    let fixed = ["response_type", "client_id", "scope", "code_challenge_method"].map(|name| &*asked[name]);
    assert_eq!(fixed, ["code", "my id", "read write", "S256"]);
    let back = |query: &str| format!("{}?{query}", asked["redirect_uri"]);
    let browser = async {
        // A connection that a browser opens and does not use.
        let address = Url::parse(&asked["redirect_uri"]).unwrap();
        let _idle = tokio::net::TcpStream::connect(address.socket_addrs(|| None).unwrap()[0]).await.unwrap();
        let forged = reqwest::get(back("code=other&state=forged")).await.unwrap();
        assert_eq!(forged.status().as_u16(), 404);
        let page = reqwest::get(back(&format!("code=c-1%2F&state={}", asked["state"]))).await.unwrap();
        assert!(page.text().await.unwrap().contains("You can close this page"));
    };
    let (signed_in, ()) = tokio::join!(sign_in.wait(&*world.clock), browser);
    signed_in.unwrap();

    let form = fields(&world.login.requests().remove(0).text);
    let challenge = hmac_sha256::Hash::hash(form["code_verifier"].as_bytes());
    assert_eq!(data_encoding::BASE64URL_NOPAD.encode(&challenge), asked["code_challenge"]);
    let fixed = ["grant_type", "code", "redirect_uri", "client_id"].map(|name| &form[name]);
    assert_eq!(fixed, ["authorization_code", "c-1/", &asked["redirect_uri"], "my id"]);

    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let tool = world.tool(&server.url(), tokens);
    call_in(&world.run, &tool, json!({})).await.unwrap();
    assert_eq!(sent(&server), ["Bearer token-one"]);
    let mut of_ben = world.run.clone();
    of_ben.tenant = "ben".into();
    let Err(ToolError::PermissionDenied(text)) = call_in(&of_ben, &tool, json!({})).await else {
        panic!("ben has not signed in")
    };
    assert!(text.contains("The sign-in at 'openapi' is missing. Tell the user to run: login shop"), "{text}");
    let other = AuthorizationCode::new(world.store.clone(), "openapi", "https://a", "https://b", "my id");
    let tool = world.tool(&server.url(), other.unwrap().with_account("shop"));
    assert!(matches!(call_in(&world.run, &tool, json!({})).await, Err(ToolError::PermissionDenied(_))));
    assert!(world.tokens().sign_out("anna".into()).await.unwrap());
    assert!(!world.tokens().sign_out("anna".into()).await.unwrap());
}

// spec: OA-03
#[tokio::test]
async fn finish_takes_only_the_answer_to_this_sign_in() {
    let refused =
        MockResponse::json(400, &json!({ "error": "invalid_grant", "error_description": "secret" }));
    let world = World::new([refused]).await;
    let tokens = world.tokens();
    let sign_in = tokens.begin("anna".into()).await.unwrap();
    let state = fields(sign_in.url().split_once('?').unwrap().1)["state"].clone();
    for (address, problem) in [
        ("no address".to_owned(), "this is not an address"),
        ("http://127.0.0.1/callback?code=c&state=other".to_owned(), "not the answer to this sign-in"),
        (format!("http://127.0.0.1/callback?state={state}"), "has no code"),
        (
            format!("http://127.0.0.1/callback?state={state}&error=denied&error_description=no%0Away"),
            "the authorization server refused it: denied (no way)",
        ),
        (format!("http://127.0.0.1/callback?state={state}&code=c"), "status 400, invalid_grant"),
    ] {
        let error = sign_in.finish(&address, &*world.clock).await.unwrap_err();
        assert!(matches!(error, OpenApiError::SignIn { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("the sign-in at 'openapi' failed: "), "{text}");
        assert!(text.contains(problem) && !text.contains("secret"), "{address}: {text}");
    }
    assert!(world.store.0.lock().unwrap().is_empty());
}

// spec: OA-03
#[tokio::test]
async fn token_is_renewed_once_before_its_end_and_after_a_refusal() {
    let world = World::new([answer("token-two", "refresh-2"), answer("token-three", "refresh-3")]).await;
    world.keep("token-one", world.clock.now().as_millis() + 70_000).await;
    let server = MockServer::start([200, 200, 200, 401, 200].map(MockResponse::new)).await;
    let tool = world.tool(&server.url(), world.tokens().with_secret("kk-secret"));
    let call = || call_in(&world.run, &tool, json!({}));
    call().await.unwrap();
    world.clock.advance(Duration::from_secs(70));
    let (one, other) = tokio::join!(call(), call());
    assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    call().await.unwrap();
    call().await.unwrap();
    let expected = ["one", "two", "two", "two", "three"].map(|token| format!("Bearer token-{token}"));
    assert_eq!(sent(&server), expected);
    let requests = world.login.requests();
    let forms: Vec<_> = requests.iter().map(|request| request.text.as_str()).collect();
    let form = |number: u8| format!("grant_type=refresh_token&refresh_token=refresh-{number}");
    assert_eq!(forms, [form(1), form(2)]);
    // `my%20id:kk-secret`
    assert_eq!(requests[0].header("authorization"), Some("Basic bXklMjBpZDpray1zZWNyZXQ="));
    let stored = world.store.get(&world.key()).await.unwrap().unwrap();
    assert_eq!(stored.expose()["refresh_token"], json!("refresh-3"));
}

// spec: OA-03
#[tokio::test]
async fn token_that_cannot_be_renewed_tells_to_sign_in_again_unless_another_process_renewed_it() {
    let refused = || MockResponse::json(400, &json!({ "error": "invalid_grant" }));
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let world = World::new([refused(), MockResponse::new(503)]).await;
    world.keep("token-one", 0).await;
    let tool = world.tool(&server.url(), world.tokens());
    let Err(ToolError::PermissionDenied(text)) = call_in(&world.run, &tool, json!({})).await else {
        panic!("it was renewed")
    };
    assert!(
        text.contains("is no longer valid (status 400, invalid_grant). Tell the user to run: login shop")
    );
    // A server that is down says nothing about the sign-in.
    let down = call_in(&world.run, &tool, json!({})).await;
    assert!(matches!(down, Err(ToolError::Failed(_))), "{down:?}");

    let store = Arc::new(Accounts::default());
    let meanwhile = store.clone();
    let login = MockServer::answering(move |_| {
        for stored in meanwhile.0.lock().unwrap().values_mut() {
            let mut newer: Json = stored.expose().clone();
            (newer["access_token"], newer["expires_at"]) = ("token-two".into(), Json::Null);
            *stored = Secret::new(newer);
        }
        MockResponse::json(400, &json!({ "error": "invalid_grant" }))
    })
    .await;
    let world = World { store, ..World::at(login) };
    world.keep("token-one", 0).await;
    let tool = world.tool(&server.url(), world.tokens());
    call_in(&world.run, &tool, json!({})).await.unwrap();
    world.clock.advance(Duration::from_secs(1_000_000));
    call_in(&world.run, &tool, json!({})).await.unwrap();
    assert_eq!(sent(&server), ["Bearer token-two", "Bearer token-two"]);
}

#[test]
fn addresses_that_are_not_encrypted_are_refused() {
    let refused = |authorize: &str, token: &str| {
        let made = AuthorizationCode::new(Arc::new(Accounts::default()), "a", authorize, token, "b");
        made.unwrap_err().to_string()
    };
    let text = refused("http://login.example.com", "https://login.example.com");
    assert_eq!(text, "the sign-in address 'http://login.example.com' is not encrypted; use https");
    let text = refused("https://login.example.com", "http://login.example.com");
    assert_eq!(text, "the token address 'http://login.example.com' is not encrypted; use https");
}
