//! Credentials: where they are sent, and that nothing shows them.

use std::{sync::Arc, time::Duration};

use archon_openapi::{
    ClientCredentials, OpenApiAuth, OpenApiConfig, OpenApiTool, OpenApiTools, OperationFilter, StoredToken,
};
use archon_testkit::{MockResponse, MockServer, VirtualClock};
use archon_types::{CredentialKey, CredentialStore as _, Json, Secret, ToolError};
use serde_json::json;

use crate::support::{Accounts, call, call_in, document, run, tools};

const KEY: &str = "kk-secret/+12345";

fn with(server: &str, auth: OpenApiAuth, operation: Json) -> Arc<OpenApiTool> {
    let config = OpenApiConfig::default().with_base_url(server).with_auth(auth);
    tools(document("/a", "get", operation), config).remove(0)
}

// spec: OA-03
#[tokio::test]
async fn credentials_of_each_kind_are_sent_as_declared() {
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let key = || Secret::from(KEY);
    for (auth, name, value) in [
        (OpenApiAuth::None, "authorization", None),
        (OpenApiAuth::Bearer(key()), "authorization", Some("Bearer kk-secret/+12345")),
        (OpenApiAuth::ApiKey { header: "X-Key".to_owned(), value: key() }, "x-key", Some(KEY)),
        (
            OpenApiAuth::Basic { user: "Aladdin".to_owned(), password: "open sesame".into() },
            "authorization",
            Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ),
    ] {
        call(&with(&server.url(), auth, json!({})), json!({})).await.unwrap();
        assert_eq!(server.requests().last().unwrap().header(name), value);
    }
}

// spec: OA-06
#[tokio::test]
async fn key_in_the_query_is_sent_and_never_shown() {
    // The server repeats the request's address.
    let server = MockServer::answering(|request| MockResponse::new(404).chunk(&request.path)).await;
    let auth = OpenApiAuth::QueryKey { name: "api key".to_owned(), value: KEY.into() };
    let parameters =
        json!({ "parameters": [{ "name": "q", "in": "query" }, { "name": "api key", "in": "query" }] });
    let tool = with(&server.url(), auth.clone(), parameters);
    let result = call(&tool, json!({ "q": "x" })).await.unwrap();
    assert_eq!(server.requests()[0].path, "/a?q=x&api+key=kk-secret%2F%2B12345");
    let text = format!("GET {}/a?q=x → 404\n\n/a?q=x&api+key=****", server.url());
    assert_eq!(result.text(), text);
    assert!(!format!("{result:?}").contains("kk-secret"));
    let failed = call(&with("http://127.0.0.1:1", auth, json!({})), json!({})).await.unwrap_err().to_string();
    assert!(failed.contains("127.0.0.1:1/a failed") && !failed.contains("kk-secret"), "{failed}");
}

// spec: OA-03
#[test]
fn secrets_are_printed_as_stars() {
    let tokens = ClientCredentials::new("https://login.example.com", "me", KEY).unwrap();
    assert!(format!("{tokens:?}").contains("****"));
    for auth in [
        OpenApiAuth::Bearer(KEY.into()),
        OpenApiAuth::ApiKey { header: "X-Key".to_owned(), value: KEY.into() },
        OpenApiAuth::QueryKey { name: "key".to_owned(), value: KEY.into() },
        OpenApiAuth::Basic { user: "me".to_owned(), password: KEY.into() },
        OpenApiAuth::Token(Arc::new(tokens)),
    ] {
        let config = OpenApiConfig::default().with_auth(auth).with_header("X-More", KEY);
        let shown = format!("{config:?}");
        assert!(shown.contains("****") && !shown.contains("kk-secret"), "{shown}");
    }
}

#[tokio::test]
async fn operation_without_security_gets_no_credentials_and_custom_headers_replace_others() {
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let open = with(&server.url(), OpenApiAuth::Bearer(KEY.into()), json!({ "security": [] }));
    call(&open, json!({})).await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
    let config = OpenApiConfig::default().with_base_url(server.url()).with_header("Accept", "text/csv");
    let tool = tools(document("/a", "get", json!({})), config).remove(0);
    call(&tool, json!({})).await.unwrap();
    assert_eq!(server.requests()[1].header("accept"), Some("text/csv"));
}

#[tokio::test]
async fn secret_that_no_header_can_have_is_an_error_without_it() {
    let tool = with("http://127.0.0.1:1", OpenApiAuth::Bearer("kk-secret\n12345".into()), json!({}));
    let Err(ToolError::Failed(text)) = call(&tool, json!({})).await else { panic!("it cannot be sent") };
    assert!(text.contains("configured header 'authorization'") && !text.contains("kk-secret"), "{text}");
}

#[tokio::test]
async fn redirect_to_another_server_carries_no_credentials() {
    let other = MockServer::answering(|_| MockResponse::new(200)).await;
    let to = other.url();
    let server = MockServer::answering(move |_| MockResponse::new(307).header("location", &to)).await;
    let tool = with(&server.url(), OpenApiAuth::Bearer(KEY.into()), json!({}));
    assert!(call(&tool, json!({})).await.unwrap().text().contains("→ 307"));
    assert!(other.requests().is_empty());
}

#[test]
fn credentials_never_go_over_an_unencrypted_connection_that_only_the_document_names() {
    let mut document = document("/a", "get", json!({}));
    document["servers"] = json!([{ "url": "http://api.example.com" }]);
    let made = |config: OpenApiConfig| {
        let made = OpenApiTools::from_value(document.clone(), config, OperationFilter::All).unwrap();
        (made.tools.len(), made.warnings.first().map(|warning| warning.problem.clone()).unwrap_or_default())
    };
    assert_eq!(made(OpenApiConfig::default()), (1, String::new()));
    let bearer = OpenApiConfig::default().with_auth(OpenApiAuth::Bearer(KEY.into()));
    let (count, problem) = made(bearer.clone());
    assert!(count == 0 && problem.contains("is not encrypted"), "{problem}");
    assert_eq!(made(bearer.with_base_url("http://api.example.com")).0, 1);
}

#[test]
fn credentials_for_several_servers_are_refused_with_their_names() {
    let document = |security: Json| {
        let servers = |path: &str| json!([{ "url": format!("https://{path}") }, { "url": "https://unused.example.com" }]);
        json!({
            "openapi": "3.1.0", "info": { "title": "Test" }, "servers": servers("api.example.com/v1"),
            "paths": {
                "/a": { "get": { "operationId": "a" } },
                "/b": { "get": { "operationId": "b", "servers": servers("API.example.com:443/v2") } },
                "/c": {
                    "servers": servers("other.example.com"),
                    "get": { "operationId": "c", "tags": ["c"], "security": security },
                },
            },
        })
    };
    let made = |security: Json, config: OpenApiConfig, filter| {
        let made = OpenApiTools::from_value(document(security), config, filter);
        made.map(|made| made.servers().join(" ")).map_err(|e| e.to_string())
    };
    let both = "https://api.example.com https://other.example.com";
    let bearer = || OpenApiConfig::default().with_auth(OpenApiAuth::Bearer(KEY.into()));
    let all = || OperationFilter::All;
    assert_eq!(made(Json::Null, OpenApiConfig::default(), all()), Ok(both.to_owned()));
    for config in [bearer(), OpenApiConfig::default().with_header("X-Key", KEY)] {
        let refused = made(Json::Null, config, all()).unwrap_err();
        let names =
            "to several servers, https://api.example.com, https://other.example.com; set the base address";
        assert!(refused.contains(names) && !refused.contains(KEY), "{refused}");
    }
    // The operation there gets no credentials.
    assert_eq!(made(json!([]), bearer(), all()), Ok(both.to_owned()));
    let c = OperationFilter::ByTag(vec!["c".to_owned()]);
    assert_eq!(made(Json::Null, bearer(), c), Ok("https://other.example.com".to_owned()));
    let set = bearer().with_base_url("https://mine.example.com");
    assert_eq!(made(Json::Null, set, all()), Ok("https://mine.example.com".to_owned()));
}

#[tokio::test]
async fn client_credentials_are_kept_until_shortly_before_their_end_and_after_a_refusal() {
    let token = |token: &str| MockResponse::json(200, &json!({ "access_token": token, "expires_in": 100 }));
    let login = MockServer::start([token("token-one"), token("token-two"), token("token-three")]).await;
    let statuses = [200, 200, 200, 401, 200].map(MockResponse::new);
    let server = MockServer::start(statuses).await;
    let source = ClientCredentials::new(&login.url(), "my id", KEY).unwrap().with_scope("read write");
    let tool = with(&server.url(), OpenApiAuth::Token(Arc::new(source)), json!({}));
    let (mut run, clock) = (run(), Arc::new(VirtualClock::new()));
    run.clock = clock.clone();
    for wait in [0, 69, 1, 0, 0] {
        clock.advance(Duration::from_secs(wait));
        call_in(&run, &tool, json!({})).await.unwrap();
    }
    let sent: Vec<String> =
        server.requests().iter().map(|one| one.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["one", "one", "two", "two", "three"].map(|token| format!("Bearer token-{token}")));
    let request = login.requests().remove(0);
    assert_eq!(request.text, "grant_type=client_credentials&scope=read%20write");
    // `my%20id:kk-secret%2F%2B12345`
    assert_eq!(request.header("authorization"), Some("Basic bXklMjBpZDpray1zZWNyZXQlMkYlMkIxMjM0NQ=="));
}

#[tokio::test]
async fn refused_client_is_an_error_without_its_secret() {
    let answer = json!({ "error": "invalid_client", "error_description": KEY });
    let login = MockServer::start([MockResponse::json(401, &answer)]).await;
    let source = ClientCredentials::new(&login.url(), "me", KEY).unwrap();
    let tool = with("http://127.0.0.1:1", OpenApiAuth::Token(Arc::new(source)), json!({}));
    let Err(ToolError::Failed(text)) = call(&tool, json!({})).await else { panic!("there is no token") };
    assert!(
        text.contains("No token from 127.0.0.1: status 401, invalid_client") && !text.contains(KEY),
        "{text}"
    );
    assert!(ClientCredentials::new("http://login.example.com", "me", KEY).is_err());
}

#[tokio::test]
async fn stored_token_is_that_of_the_runs_tenant() {
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let tool = with(&server.url(), OpenApiAuth::Token(Arc::new(StoredToken::new("shop"))), json!({}));
    let store = Arc::new(Accounts::default());
    let anna = CredentialKey::primary("anna".into(), "shop");
    store.save(&anna, Secret::new(json!({ "access_token": "of-anna-1" }))).await.unwrap();
    let mut run = run();
    run.credentials = Some(store);
    assert!(matches!(call_in(&run, &tool, json!({})).await, Err(ToolError::NotFound(_))));
    run.tenant = "anna".into();
    call_in(&run, &tool, json!({})).await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer of-anna-1"));
}
