//! One-time links, and the cookies that they become.

use std::{sync::Arc, time::Duration};

use archon::{
    server::{
        AccessToken, AllowedHosts, RequestLog, Role, Scope, Server, ServerOptions, TokenLimits,
        axum::http::StatusCode,
    },
    types::{Clock, Json},
};
use serde_json::json;

use crate::world::{Ask, HOST, Site, World};

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

// spec: EX-11, EX-12
#[tokio::test]
async fn token_gets_a_link_for_itself_later_and_a_cookie_gets_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let options = ServerOptions::default().with_request_log(RequestLog::open(&file).unwrap());
    let site = World::new().site_with(options, TokenLimits::default());
    let new_link = || Ask::post("/v1/links", &json!({}));
    for name in ["viewer", "operator", "admin", "auditor", "anna"] {
        let made = site.send(new_link().by(name)).await;
        assert_eq!((made.status, made.rule()), (StatusCode::CREATED, ""), "{name}: {made:?}");
        assert_eq!(made.body["expires_at"], json!(site.clock.now() + Duration::from_secs(10 * 60)));
        let link = made.body["link"].as_str().unwrap();
        let opened = site.send(Ask::get(link).without("authorization")).await;
        let header = opened.headers["set-cookie"].to_str().unwrap();
        let me = site.send(with_cookie(Ask::get("/v1/me"), header)).await;
        assert_eq!(me.body["name"], name);
        let refused = site.send(with_cookie(new_link(), header)).await;
        assert_eq!(refused.refusal(), (403, "bearer-only"), "{name}");
        let lines = std::fs::read_to_string(&file).unwrap();
        let line: Json = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&line["token"], &line["path"], &line["status"]),
            (&json!(name), &json!("/v1/links"), &json!(201))
        );
        assert!(!lines.contains(link.split_once("code=").unwrap().1), "no log has the code");
    }
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

// Browsers send the cookies of a host to all of its ports.
#[tokio::test]
async fn cookies_of_two_servers_on_one_host_stand_side_by_side() {
    let site = World::new().site();
    let scope = Scope::new(Arc::new(site.runs.clone()));
    let token = AccessToken::new("other", "other-secret", Role::Viewer, scope).unwrap();
    let hosts = AllowedHosts::new([HOST]);
    let clock = Arc::new(site.clock.clone());
    let second = Server::new(hosts, [token], clock, ServerOptions::default());
    let first = sign_in(&site, "viewer").await;
    let pair = |header: &str| header.split(';').next().unwrap().to_owned();
    let site_of_second = World::new().site().with(&second);
    let both = [pair(&first), pair(&sign_in(&site_of_second, "other").await)];
    assert_ne!(both[0].split_once('=').unwrap().0, both[1].split_once('=').unwrap().0);
    for (site, name) in [(&site, "viewer"), (&site_of_second, "other")] {
        let me = Ask::get("/v1/me").without("authorization").with("cookie", &both.join("; "));
        assert_eq!(site.send(me).await.body["name"], name);
    }
}

#[tokio::test]
async fn sign_out_removes_the_cookie() {
    let site = World::new().site();
    let header = sign_in(&site, "viewer").await;
    let out = site.send(with_cookie(Ask::post("/v1/sign-out", &json!({})), &header)).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT);
    let name = header.split_once('=').unwrap().0;
    let removed = format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    assert_eq!(out.headers["set-cookie"].to_str().unwrap(), removed);
}

#[tokio::test]
async fn cookie_of_a_server_behind_tls_is_secure() {
    let options = ServerOptions::default().with_secure_cookie();
    let site = World::new().site_with(options, TokenLimits::default());
    assert!(sign_in(&site, "viewer").await.ends_with("; SameSite=Strict; Secure"));
}
