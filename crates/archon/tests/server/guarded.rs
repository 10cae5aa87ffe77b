//! Other routers behind the checks of the server.

use archon::server::{
    Caller, Right,
    axum::{Extension, Router, body::to_bytes, http::StatusCode, routing::any},
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
async fn send(app: &Router, ask: Ask) -> (StatusCode, Value, bool) {
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

#[tokio::test]
async fn guarded_router_shares_the_limit_of_requests_of_a_token() {
    let limits = archon::server::TokenLimits::default().with_requests_per_minute(2);
    let site = World::new().site_with(archon::server::ServerOptions::default(), limits);
    let app = app(&site);
    assert_eq!(send(&app, Ask::get("/own")).await.0, StatusCode::OK);
    assert_eq!(send(&app, Ask::get("/v1/me")).await.0, StatusCode::OK);
    let (status, body, _) = send(&app, Ask::get("/own")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{body}");
}
