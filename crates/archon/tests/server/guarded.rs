//! Other routers behind the checks of the server.

use std::time::Duration;

use archon::{
    server::{
        Caller, RequestLog, Right, ServerOptions, TokenLimits,
        axum::{Extension, Router, body::to_bytes, http::StatusCode, routing::any},
    },
    types::{RunFilter, StartRun, StartRuns},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::{Ask, Site, World};

/// Says who asks.
async fn whoami(Extension(caller): Extension<Caller>) -> String {
    let has_memories = caller.scope().memories().is_some();
    json!({ "name": caller.name(), "role": caller.role(), "has_memories": has_memories }).to_string()
}

fn app(site: &Site) -> Router {
    let own = Router::new().route("/own", any(whoami));
    site.server.router().merge(site.server.guarded(own, Right::Operate))
}

/// Returns the status of the response, its body, and whether a cache may keep it.
pub(crate) async fn send(app: &Router, ask: Ask) -> (StatusCode, Value, bool) {
    let response = app.clone().oneshot(ask.request()).await.unwrap();
    let is_stored = response.headers().get("cache-control").is_none_or(|value| value != "no-store");
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null), is_stored)
}

// spec: EX-11
#[tokio::test]
async fn guarded_router_gets_only_requests_that_the_checks_admit() {
    let site = World::new().site();
    let app = app(&site);
    let link = site.server.one_time_link("admin").unwrap();
    let signed_in = site.send(Ask::get(&link).without("authorization")).await;
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap();
    let of_a_page = Ask::new("PUT", "/own").without("authorization").with("cookie", cookie);
    for (ask, rule) in [
        (Ask::get("/own").without("authorization"), "token-missing"),
        (Ask::get("/own").with("authorization", "Bearer other"), "token-unknown"),
        (Ask::get("/own").by("viewer"), "role"),
        (Ask::get("/own").by("auditor"), "role"),
        (Ask::get("/own").with("host", "evil.example"), "host-not-allowed"),
        (Ask::get("/own").with("origin", "http://evil.example"), "origin-not-allowed"),
        (Ask::get("/own").with("sec-fetch-site", "cross-site"), "cross-site"),
        (Ask::new("POST", "/own").with("content-type", "text/plain"), "content-type"),
        (of_a_page.without("content-type"), "content-type"),
        (Ask::get("/other"), "unknown-route"),
    ] {
        let (_, body, is_stored) = send(&app, ask.clone()).await;
        assert_eq!(body["type"], format!("urn:archon:problem:{rule}"), "{ask:?}: {body}");
        assert!(!is_stored, "{ask:?}");
    }
    for ask in [
        Ask::get("/own").by("operator"),
        Ask::new("POST", "/own").by("operator"),
        Ask::new("DELETE", "/own").without("content-type").by("operator"),
        Ask::new("PUT", "/own").without("content-type").by("operator"),
    ] {
        let (status, body, is_stored) = send(&app, ask.clone()).await;
        assert_eq!((status, &body["name"]), (StatusCode::OK, &json!("operator")), "{ask:?}: {body}");
        assert_eq!(body["role"], "operator");
        assert!(!is_stored, "{ask:?}");
    }
    assert_eq!(send(&app, Ask::get("/v1/me")).await.0, StatusCode::OK, "the routes of the server stay");
}

// spec: EX-12
#[tokio::test]
async fn guarded_router_has_its_writes_in_the_log_of_requests_with_the_run_of_the_response() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let options = ServerOptions::default().with_request_log(RequestLog::open(&file).unwrap());
    let site = World::new().site_with(options, TokenLimits::default());
    let run = site.run("hello").await;
    let named = [("x-archon-run", run.to_string())];
    let own = Router::new().route("/own", any(move || async move { named })).route("/other", any(whoami));
    let app = site.server.router().merge(site.server.guarded(own, Right::Operate));
    for ask in [Ask::get("/own"), Ask::new("PUT", "/own").by("operator"), Ask::new("POST", "/other")] {
        assert_eq!(send(&app, ask).await.0, StatusCode::OK);
    }
    let (_, audit, _) = send(&app, Ask::get(&format!("/v1/runs/{run}/audit"))).await;
    let requests = audit["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 2, "the start, and the write that the run was named for: {audit}");
    let fields = ["token", "role", "method", "path", "status"].map(|field| requests[1][field].clone());
    assert_eq!(json!(fields), json!(["operator", "operator", "PUT", "/own", 200]));
    let lines = std::fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["path"], &last["target"]), (&json!("/other"), &Value::Null));
}

/// Starts a run for the caller, and does not answer.
async fn begin_only(caller: Extension<Caller>) {
    begin(caller).await;
    std::future::pending().await
}

// spec: EX-12
#[tokio::test]
async fn guarded_router_has_a_write_in_the_log_of_requests_whose_client_goes_away_before_the_response() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let options = ServerOptions::default().with_request_log(RequestLog::open(&file).unwrap());
    let site = World::new().site_with(options, TokenLimits::default());
    let app = site.server.guarded(Router::new().route("/own", any(begin_only)), Right::Operate);
    for (ask, is_noted) in [(Ask::get("/own"), false), (Ask::new("POST", "/own").by("operator"), true)] {
        let before = site.runs.list(&RunFilter::all()).await.unwrap().len();
        let request = tokio::spawn(app.clone().oneshot(ask.request()));
        while site.runs.list(&RunFilter::all()).await.unwrap().len() == before {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        while is_noted && !std::fs::read_to_string(&file).unwrap().ends_with('\n') {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let lines = std::fs::read_to_string(&file).unwrap();
    let line: Value = serde_json::from_str(lines.strip_suffix('\n').unwrap()).unwrap();
    let fields = ["token", "method", "path", "target", "status"].map(|field| line[field].clone());
    assert_eq!(json!(fields), json!(["operator", "POST", "/own", null, 499]));
}

#[tokio::test]
async fn guarded_router_shares_the_limit_of_requests_of_a_token() {
    let limits = TokenLimits::default().with_requests_per_minute(2);
    let site = World::new().site_with(ServerOptions::default(), limits);
    let app = app(&site);
    assert_eq!(send(&app, Ask::get("/own")).await.0, StatusCode::OK);
    assert_eq!(send(&app, Ask::get("/v1/me")).await.0, StatusCode::OK);
    let (status, body, _) = send(&app, Ask::get("/own")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{body}");
}

#[tokio::test]
async fn guarded_router_counts_a_request_as_a_stream_until_its_response_has_ended() {
    let limits = TokenLimits::default().with_watchers(1);
    let site = World::new().site_with(ServerOptions::default(), limits);
    let app = app(&site);
    let open = app.clone().oneshot(Ask::get("/own").request()).await.unwrap();
    assert_eq!((open.status(), open.headers().contains_key("content-length")), (StatusCode::OK, true));
    let (status, body, _) = send(&app, Ask::get("/own")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(body["type"], "urn:archon:problem:watcher-limit");
    assert_eq!(send(&app, Ask::get("/own").by("operator")).await.0, StatusCode::OK, "another token");
    assert!(!to_bytes(open.into_body(), usize::MAX).await.unwrap().is_empty());
    assert_eq!(send(&app, Ask::get("/own")).await.0, StatusCode::OK);
}

/// Starts a run for the caller.
async fn begin(Extension(caller): Extension<Caller>) -> (StatusCode, String) {
    match caller.scope().runs().start(StartRun::new("hello")).await {
        Ok(started) => (StatusCode::OK, json!(started.run).to_string()),
        Err(error) => {
            (StatusCode::from_u16(error.http_status()).unwrap(), json!(error.to_string()).to_string())
        }
    }
}

#[tokio::test]
async fn guarded_router_shares_the_limit_of_starts_of_a_token() {
    let limits = TokenLimits::default().with_starts_per_hour(2);
    let site = World::new().site_with(ServerOptions::default(), limits);
    let own = site.server.guarded(Router::new().route("/own", any(begin)), Right::Operate);
    let app = site.server.router().merge(own);
    let start = || Ask::post("/v1/runs", &json!({ "text": "hello" }));
    assert_eq!(send(&app, start()).await.0, StatusCode::CREATED);
    assert_eq!(send(&app, Ask::get("/own")).await.0, StatusCode::OK);
    let (status, body, _) = send(&app, Ask::get("/own")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(body, json!("too many runs were started: the next one can start in 1800 s"));
    let (_, body, _) = send(&app, start()).await;
    assert_eq!(body["type"], "urn:archon:problem:start-limit");
    assert_eq!(send(&app, Ask::get("/own").by("operator")).await.0, StatusCode::OK, "another token");
    assert_eq!(site.runs.list(&RunFilter::all()).await.unwrap().len(), 3);
}

#[cfg(feature = "openai-serve")]
#[tokio::test]
async fn openai_endpoints_behind_the_checks_share_the_limit_of_starts_of_a_token() {
    use std::sync::Arc;

    use archon::openai_serve::{self, AgentModel};

    let limits = TokenLimits::default().with_starts_per_hour(1);
    let site = World::new().site_with(ServerOptions::default(), limits);
    let runs = site.server.scope("admin").unwrap().runs().clone();
    let (clock, options) = (Arc::new(site.clock.clone()), openai_serve::ModelServerOptions::default());
    let models = openai_serve::ModelServer::new(runs, [AgentModel::new("walker")], clock, options);
    let app = site.server.router().merge(site.server.guarded(models.router(), Right::Operate));
    let chat = json!({ "model": "walker", "messages": [{ "role": "user", "content": "hello" }] });
    let chat = Ask::post("/v1/chat/completions", &chat);
    let (status, body, _) = send(&app, chat.clone()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let (status, body, _) = send(&app, chat).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("start_limit")));
    let (_, body, _) = send(&app, Ask::post("/v1/runs", &json!({ "text": "hello" }))).await;
    assert_eq!(body["type"], "urn:archon:problem:start-limit");
}
