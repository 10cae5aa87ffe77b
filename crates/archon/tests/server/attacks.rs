//! Requests that a page of another site, a rebound name or a trick with the path can send: each is refused, and nothing
//! happens.

use archon::{
    server::{ServeOptions, serve},
    types::{Json, RunFilter, StartRuns},
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    loopback::exchange,
    world::{Ask, HOST, Site, World},
};

/// The name of an attack, and its request.
type Attack = (&'static str, Ask);

const RUNS: &str = "/v1/runs";

/// A start of a run by the browser of a person who is signed in.
fn start(cookie: &str) -> Ask {
    by_browser(Ask::post(RUNS, &json!({ "text": "step Paris" })), cookie)
}

fn by_browser(ask: Ask, cookie: &str) -> Ask {
    ask.without("authorization").with("cookie", cookie)
}

/// Forms of a body that a page may send to another site without asking first.
fn simple_requests(cookie: &str) -> Vec<Attack> {
    let start = || start(cookie).with("origin", &format!("http://{HOST}"));
    let typed = |kind| (kind, start().with("content-type", kind));
    let mut all: Vec<_> = [
        "text/plain",
        "text/plain; charset=utf-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain;application/json",
        "application/jsonp",
        "application/json, text/plain",
        "",
    ]
    .map(typed)
    .into();
    all.push(("no type", start().without("content-type")));
    all.push(("two types", start().and("content-type", "text/plain")));
    all
}

fn origins(cookie: &str) -> Vec<Attack> {
    let from = |origin| (origin, start(cookie).with("origin", origin));
    let mut all: Vec<_> = [
        "null",
        "http://evil.example",
        "https://evil.example:8080",
        "http://localhost",
        "http://localhost:8081",
        "http://localhost:8080.evil.example",
        "http://localhost.evil:8080",
        "http://user@localhost:8080",
        "http://127.0.0.1:8080",
        "http://localhost:8080/",
        "file://",
        "chrome-extension://abcdef",
        "//localhost:8080",
        "",
    ]
    .map(from)
    .into();
    let two = start(cookie).with("origin", &format!("http://{HOST}")).and("origin", "http://evil.example");
    all.push(("two origins", two));
    all
}

fn hosts(cookie: &str) -> Vec<Attack> {
    let at = |host| (host, start(cookie).with("host", host));
    let mut all: Vec<_> = [
        "evil.example",
        "evil.example:8080",
        "localhost.evil",
        "localhost.evil:8080",
        "localhost",
        "localhost:80",
        "localhost:8080:8080",
        "localhost.:8080",
        "127.0.0.1:8080",
        "0.0.0.0:8080",
        "[::1]:8080",
        "localhost:8080@evil.example",
        "",
    ]
    .map(at)
    .into();
    all.push(("no host", start(cookie).without("host")));
    all.push(("two hosts", start(cookie).and("host", "evil.example")));
    all.push(("another address", start(cookie).at("http://evil.example:8080/v1/runs")));
    // With the token itself, since the page of a rebound name could have guessed nothing else.
    all.push(("a token at a foreign host", start(cookie).by("admin").with("host", "evil.example:8080")));
    all
}

fn sites(cookie: &str) -> Vec<Attack> {
    let events = || by_browser(Ask::get("/v1/runs/x/events"), cookie);
    vec![
        ("cross-site start", start(cookie).with("sec-fetch-site", "cross-site")),
        ("same-site start", start(cookie).with("sec-fetch-site", "same-site")),
        ("start of an unknown site", start(cookie).with("sec-fetch-site", "")),
        ("cross-site stream", events().with("sec-fetch-site", "cross-site")),
        ("stream for a foreign page", events().with("origin", "http://evil.example")),
        ("stream for a sandboxed frame", events().with("origin", "null")),
        ("stream at a rebound name", events().with("host", "evil.example:8080")),
    ]
}

fn paths_and_tokens(cookie: &str) -> Vec<Attack> {
    let get = |path: &str| by_browser(Ask::get(path), cookie);
    let (name, value) = cookie.split_once('=').unwrap();
    let anyone = || Ask::get(RUNS).without("authorization");
    vec![
        ("parent folder", get("/v1/runs/../../etc/passwd")),
        ("encoded parent folder", get("/v1/runs/..%2F..%2Fetc%2Fpasswd/records")),
        ("null byte", get("/v1/runs/a%00/records")),
        ("no text", get("/v1/runs/%FF/records")),
        ("double slash", get("//v1/runs")),
        ("slash at the end", get("/v1/runs/")),
        ("upper case", get("/V1/RUNS")),
        ("encoded slash", get("/v1%2Fruns")),
        ("method in the query", get("/v1/runs?_method=POST")),
        ("preflight", by_browser(Ask::new("OPTIONS", RUNS), cookie)),
        ("trace", by_browser(Ask::new("TRACE", RUNS), cookie)),
        ("token in the query", Ask::get("/v1/runs?token=admin-secret").without("authorization")),
        ("no token", anyone()),
        ("another scheme", anyone().with("authorization", "Basic admin-secret")),
        ("a part of the token", anyone().with("authorization", "Bearer admin-secre")),
        ("the token as a cookie", anyone().with("cookie", &format!("{name}=admin-secret"))),
        ("the cookie as a token", anyone().with("authorization", &format!("Bearer {value}"))),
        ("a changed cookie", anyone().with("cookie", &format!("{cookie}0"))),
        ("another cookie", anyone().with("cookie", &format!("{name}2={value}"))),
    ]
}

/// Returns all attacks of a browser with this cookie, each group with the rules that refuse it.
fn attacks(cookie: &str) -> [(Vec<Attack>, &'static [&'static str]); 5] {
    [
        (simple_requests(cookie), &["content-type"]),
        (origins(cookie), &["origin-not-allowed"]),
        (hosts(cookie), &["host-not-allowed"]),
        (sites(cookie), &["cross-site", "origin-not-allowed", "host-not-allowed"]),
        (
            paths_and_tokens(cookie),
            &[
                "unknown-route",
                "unknown-run",
                "method",
                "query",
                "token-missing",
                "token-unknown",
                "content-type",
            ],
        ),
    ]
}

/// Signs a browser in, and returns its cookie.
async fn sign_in(site: &Site) -> String {
    let link = site.server.one_time_link("admin").unwrap();
    let signed_in = site.send(Ask::get(&link).without("authorization")).await;
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let me = site.send(by_browser(Ask::get("/v1/me"), &cookie)).await;
    assert_eq!(me.body["name"], "admin", "the cookie is one that works");
    cookie
}

/// A request of the own page.
fn own(cookie: &str) -> Ask {
    start(cookie).with("origin", &format!("http://{HOST}")).with("sec-fetch-site", "same-origin")
}

// spec: EX-11
#[tokio::test]
async fn attack_of_another_site_is_refused_by_a_rule_and_does_nothing() {
    let site = World::new().site();
    let cookie = sign_in(&site).await;
    let mut count = 0;
    for (attacks, rules) in attacks(&cookie) {
        for (name, attack) in attacks {
            let refused = site.send(attack).await;
            assert!(refused.status.is_client_error(), "{name:?}: {refused:?}");
            assert!(rules.contains(&refused.rule()), "{name:?}: {refused:?}");
            assert!(!refused.headers.contains_key("access-control-allow-origin"), "{name:?}");
            count += 1;
        }
    }
    assert!(count >= 40, "{count} attacks");
    assert_eq!(site.runs.list(&RunFilter::all()).await.unwrap(), []);
    // The same request from the own page is served.
    assert_eq!(site.send(own(&cookie)).await.status.as_u16(), 201);
}

// spec: EX-11
#[tokio::test]
async fn attack_over_a_connection_is_refused_by_the_same_rule() {
    let site = World::new().site();
    let cookie = sign_in(&site).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (router, end) = (site.server.router(), site.server.end().clone());
    let served = tokio::spawn(async move { serve(router, listener, &ServeOptions::default(), &end).await });
    for (name, attack) in attacks(&cookie).into_iter().flat_map(|(attacks, _)| attacks) {
        let response = exchange(port, &attack.raw()).await;
        let expected = site.send(attack).await;
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = format!("HTTP/1.1 {} ", expected.status.as_u16());
        assert!(head.starts_with(&status), "{name:?}: {response}");
        assert_eq!(serde_json::from_str::<Json>(body).unwrap(), expected.body, "{name:?}");
        assert!(!head.contains("access-control-allow-origin"), "{name:?}: {response}");
    }
    assert_eq!(site.runs.list(&RunFilter::all()).await.unwrap(), []);
    let response = exchange(port, &own(&cookie).raw()).await;
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
    site.server.end().cancel();
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn every_response_says_that_it_is_for_no_cache_no_frame_and_no_other_site() {
    let site = World::new().site();
    let run = site.run("hello").await;
    for ask in [
        Ask::get("/v1/runs"),
        Ask::get(&format!("/v1/runs/{run}/events")),
        Ask::get("/nowhere"),
        Ask::get("/v1/runs").without("authorization"),
    ] {
        let answer = site.send(ask).await;
        for (name, value) in [
            ("cache-control", "no-store"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers[name], value, "{answer:?}");
        }
    }
}
