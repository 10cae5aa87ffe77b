//! Sign-ins at a service of the test, and tokens that are refreshed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_oauth::{OAuth, OAuthError, OAuthService};
use archon_testkit::{Gate, MockResponse, MockServer, SeededIds, VirtualClock};
use archon_types::{
    BoxFuture, Context, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Credentials, Json,
    RunId, Secret, SessionId, TenantId, ToolContext, ToolError,
};
use serde_json::json;

/// Credentials in memory. Clones share them.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<CredentialKey, Json>>>);

impl CredentialStore for Store {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        let mut all = self.0.lock().unwrap();
        let before = match credentials {
            Some(credentials) => all.insert(key.clone(), credentials.expose().clone()),
            None => all.remove(key),
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
        _: &'a TenantId,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

struct World {
    server: MockServer,
    clock: VirtualClock,
    store: Store,
    oauth: OAuth,
}

impl World {
    async fn new(answers: impl IntoIterator<Item = (u16, Json)>) -> Self {
        Self::answering(answers.into_iter().map(|(status, body)| MockResponse::json(status, &body))).await
    }

    async fn answering(answers: impl IntoIterator<Item = MockResponse>) -> Self {
        let server = MockServer::start(answers).await;
        let clock = VirtualClock::new();
        let service = OAuthService::new("mail", "client-1", format!("{}/token", server.url()))
            .sign_in_address(format!("{}/authorize", server.url()))
            .device_address(format!("{}/device", server.url()))
            .scope("mail.read");
        let oauth = OAuth::new(service, Arc::new(clock.clone())).unwrap();
        Self { server, clock, store: Store::default(), oauth }
    }

    fn key() -> CredentialKey {
        CredentialKey::primary("anna".into(), "mail")
    }

    fn stored(&self) -> Json {
        self.store.0.lock().unwrap().get(&Self::key()).cloned().unwrap_or_default()
    }

    /// Returns the credentials of a call of a tool.
    fn credentials(&self) -> Credentials {
        let (clock, ids) = (Arc::new(self.clock.clone()), Arc::new(SeededIds::new(1)));
        let mut context = Context::new(RunId::new("run_1"), SessionId::new("s"), clock, ids);
        context.tenant = "anna".into();
        context.credentials = Some(Arc::new(self.store.clone()));
        ToolContext::new(context, "call_1".into(), "read_mail").credentials()
    }

    async fn token(&self) -> Result<String, ToolError> {
        self.token_of("primary").await
    }

    async fn token_of(&self, account: &str) -> Result<String, ToolError> {
        Ok(self.oauth.token(&self.credentials(), account).await?.expose().clone())
    }

    /// Signs an account in with the next answer of the service.
    async fn sign_in(&self, account: &str) {
        let sign_in = self.oauth.begin_code("http://localhost:9999/back").unwrap();
        let (state, key) = (sign_in.state().to_owned(), Self::key().named(account));
        self.oauth.finish_code(sign_in, ("code-1".into(), &state), &self.store, &key).await.unwrap();
    }
}

fn tokens(access: &str, refresh: Option<&str>) -> (u16, Json) {
    let mut body = json!({ "access_token": access, "token_type": "bearer", "expires_in": 3600 });
    if let Some(refresh) = refresh {
        body["refresh_token"] = json!(refresh);
    }
    (200, body)
}

fn refusal(error: &str) -> (u16, Json) {
    (400, json!({ "error": error }))
}

// spec: CR-06
#[tokio::test]
async fn device_sign_in_waits_for_the_person_and_stores_the_tokens() {
    let device = json!({
        "device_code": "device-secret", "user_code": "WDJB-MJHT", "verification_uri": "https://mail.example.com/device",
        "expires_in": 1800, "interval": 5,
    });
    let world = World::new([(200, device), refusal("authorization_pending"), tokens("a1", Some("r1"))]).await;
    let sign_in = world.oauth.begin_device().await.unwrap();
    assert_eq!((sign_in.address(), sign_in.code()), ("https://mail.example.com/device", "WDJB-MJHT"));
    assert!(!format!("{sign_in:?} {:?}", world.oauth).contains("secret"));
    let key = World::key();
    let finish = world.oauth.finish_device(sign_in, &world.store, &key);
    let wait = async {
        world.clock.until_asleep(1).await;
        world.clock.advance(Duration::from_secs(5));
    };
    let (finished, ()) = tokio::join!(finish, wait);
    finished.unwrap();
    let requests = world.server.requests();
    assert_eq!(requests[0].text, "scope=mail.read&client_id=client-1");
    assert!(requests[1].text.contains("device_code=device-secret"), "{}", requests[1].text);
    assert_eq!(world.stored()["refresh_token"], "r1");
    assert_eq!(world.token().await.unwrap(), "a1");
    assert_eq!(world.server.requests().len(), 3, "a valid token needs no request");
}

// spec: CR-06
#[tokio::test]
async fn code_sign_in_sends_its_proof_and_refuses_the_answer_of_another_sign_in() {
    let world = World::new([tokens("a1", None)]).await;
    let begin = || world.oauth.begin_code("http://localhost:9999/back").unwrap();
    let (own, other) = (begin(), begin());
    let address = own.address().to_owned();
    for part in ["response_type=code", "client_id=client-1", "code_challenge_method=S256", "scope=mail.read"]
    {
        assert!(address.contains(part), "{part} {address}");
    }
    let key = World::key();
    let state = other.state().to_owned();
    let refused = world.oauth.finish_code(own, ("code-1".into(), &state), &world.store, &key).await;
    assert!(matches!(refused, Err(OAuthError::OtherSignIn { .. })), "{refused:?}");
    world.oauth.finish_code(other, ("code-1".into(), &state), &world.store, &key).await.unwrap();
    let sent = &world.server.requests()[0].text;
    assert!(sent.contains("code=code-1") && sent.contains("code_verifier="), "{sent}");
    assert_eq!(world.stored()["access_token"], "a1");
}

// spec: CR-06
#[tokio::test]
async fn token_that_ends_is_refreshed_once_for_all_calls_and_stored() {
    let world = World::new([tokens("a1", Some("r1")), tokens("a2", None)]).await;
    world.sign_in("primary").await;
    world.clock.advance(Duration::from_secs(3_550));
    let (one, two) = tokio::join!(world.token(), world.token());
    assert_eq!((one.unwrap(), two.unwrap()), ("a2".to_owned(), "a2".to_owned()));
    assert_eq!(world.server.requests().len(), 2);
    assert_eq!(world.stored()["refresh_token"], "r1", "the old one stays if there is no new one");
}

// spec: CR-06
#[tokio::test]
async fn sign_in_that_has_ended_asks_the_user_to_connect_again_and_shows_no_secret() {
    let world = World::new([tokens("a1", Some("r-secret")), refusal("invalid_grant")]).await;
    assert!(matches!(world.token().await, Err(ToolError::NotFound(_))), "no account is connected");
    world.sign_in("primary").await;
    world.clock.advance(Duration::from_secs(3_600));
    let ended = world.token().await.unwrap_err();
    assert!(
        matches!(&ended, ToolError::NotFound(text) if text.contains("connect their 'mail' account again")),
        "{ended:?}"
    );
    assert!(!ended.to_string().contains("r-secret"));
}

// spec: CR-06
#[tokio::test]
async fn token_of_an_account_does_not_wait_for_the_refresh_of_another_account() {
    let gate = Gate::new();
    let answer = |(status, body): (u16, Json)| MockResponse::json(status, &body);
    let slow = MockResponse::new(200).header("content-type", "application/json").wait(&gate);
    let slow = slow.chunk(tokens("a2", None).1.to_string());
    let world = World::answering([
        answer(tokens("a1", Some("r1"))),
        answer(tokens("b1", Some("r2"))),
        slow,
        answer(tokens("b2", None)),
    ])
    .await;
    world.sign_in("primary").await;
    world.sign_in("work").await;
    world.clock.advance(Duration::from_secs(3_600));
    let slow = world.token();
    let fast = async {
        while world.server.requests().len() < 3 {
            tokio::task::yield_now().await;
        }
        let token = tokio::time::timeout(Duration::from_secs(20), world.token_of("work")).await;
        gate.open();
        token.expect("a token without the turn of the other account").unwrap()
    };
    let (slow, fast) = tokio::join!(slow, fast);
    assert_eq!((slow.unwrap(), fast), ("a2".to_owned(), "b2".to_owned()));
}

#[test]
fn address_that_is_not_encrypted_is_refused() {
    let token = OAuthService::new("mail", "client-1", "http://mail.example.com/token");
    let good = OAuthService::new("mail", "client-1", "https://mail.example.com/token");
    let sign_in = good.clone().sign_in_address("http://mail.example.com/login");
    let device = good.device_address("http://mail.example.com/device");
    for (service, address) in
        [(token, "token address"), (sign_in, "sign-in address"), (device, "device address")]
    {
        let error = OAuth::new(service, Arc::new(VirtualClock::new())).unwrap_err();
        let problem = "cannot be used: it must begin with https://, or name this machine";
        assert_eq!(error.to_string(), format!("the {address} of the service mail {problem}"));
    }
}
