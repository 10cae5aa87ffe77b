//! One-time links, and the cookies that they become.

use std::time::Duration;

use archon::server::{ServerOptions, TokenLimits, axum::http::StatusCode};
use serde_json::json;

use crate::world::{Ask, Site, World};

/// Signs a browser in, and returns the header `Set-Cookie`.
async fn sign_in(site: &Site, name: &str) -> String {
    let link = site.server.one_time_link(name).unwrap();
    let answer = site.send(Ask::get(&link).without("authorization")).await;
    assert_eq!((answer.status, answer.headers["location"].to_str().unwrap()), (StatusCode::SEE_OTHER, "../"));
    answer.headers["set-cookie"].to_str().unwrap().to_owned()
}

/// Returns a request with the cookie of a header `Set-Cookie`.
fn with_cookie(ask: Ask, header: &str) -> Ask {
    ask.without("authorization").with("cookie", header.split(';').next().unwrap())
}

// spec: EX-11
#[tokio::test]
async fn one_time_link_becomes_a_cookie_that_no_script_and_no_other_site_gets() {
    let site = World::new().site();
    let header = sign_in(&site, "operator").await;
    let (value, attributes) = header.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict");
    assert!(!value.contains("operator-secret"));
    let me = site.send(with_cookie(Ask::get("/v1/me"), &header)).await;
    assert_eq!((&me.body["name"], &me.body["role"]), (&json!("operator"), &json!("operator")));
    let start = with_cookie(Ask::post("/v1/runs", &json!({ "text": "hello" })), &header);
    assert_eq!(site.send(start).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn link_works_once_within_its_time_and_not_for_who_only_looks() {
    let site = World::new().site();
    let link = || Ask::get(&site.server.one_time_link("viewer").unwrap()).without("authorization");
    let once = link();
    let look = once.clone().with_method("HEAD");
    assert_eq!(site.send(look).await.status, StatusCode::FORBIDDEN);
    assert_eq!(site.send(once.clone()).await.status, StatusCode::SEE_OTHER);
    assert_eq!(site.send(once).await.refusal(), (403, "one-time-link"));
    let late = link();
    let from_a_page = link().with("sec-fetch-site", "cross-site");
    assert_eq!(site.send(from_a_page).await.refusal(), (403, "cross-site"));
    site.clock.advance(Duration::from_secs(10 * 60));
    assert_eq!(site.send(late).await.refusal(), (403, "one-time-link"));
    assert!(site.server.one_time_link("nobody").is_err());
}

#[tokio::test]
async fn cookie_ends_with_its_time_and_outlives_the_server() {
    let world = World::new();
    let site = world.site();
    let header = sign_in(&site, "viewer").await;
    let next = world.site();
    let me = || with_cookie(Ask::get("/v1/me"), &header);
    assert_eq!(next.send(me()).await.status, StatusCode::OK);
    next.clock.advance(Duration::from_secs(7 * 24 * 60 * 60));
    assert_eq!(next.send(me()).await.refusal(), (401, "token-unknown"));
}

#[tokio::test]
async fn sign_out_removes_the_cookie() {
    let site = World::new().site();
    let header = sign_in(&site, "viewer").await;
    let out = site.send(with_cookie(Ask::post("/v1/sign-out", &json!({})), &header)).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT);
    assert_eq!(out.headers["set-cookie"], "archon=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
}

#[tokio::test]
async fn cookie_of_a_server_behind_tls_is_secure() {
    let options = ServerOptions::default().with_secure_cookie();
    let site = World::new().site_with(options, TokenLimits::default());
    assert!(sign_in(&site, "viewer").await.ends_with("; SameSite=Strict; Secure"));
}
