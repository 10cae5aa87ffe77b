//! The page of links over HTTP.

use archon_answers::AnswerPage;
use archon_http_access::AllowedHosts;
use archon_types::{Answer, Json};
use axum::{
    body::{Body, to_bytes},
    http::{Request, Response, StatusCode},
};
use serde_json::json;
use tower::ServiceExt;

use crate::world::World;

const HOST: &str = "archon.example.com";

/// The headers of a request of the page's script.
const OWN: [(&str, &str); 4] = [
    ("host", HOST),
    ("origin", "https://archon.example.com"),
    ("sec-fetch-site", "same-origin"),
    ("content-type", "application/json"),
];

async fn send(
    world: &World,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Json,
) -> Response<Body> {
    let router = AnswerPage::new(world.answers(), AllowedHosts::new([HOST])).router();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    router.oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
}

async fn post(world: &World, path: &str, body: Json) -> (u16, Json) {
    let response = send(world, "POST", path, &OWN, body).await;
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

// spec: AP-10
#[tokio::test]
async fn get_of_the_page_comes_from_any_site_and_has_no_data_and_no_effect() {
    let world = World::new();
    let from_web_mail = [("host", HOST), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    for path in ["/answer", "/answer/answer.js", "/answer/answer.css"] {
        let response = send(&world, "GET", path, &from_web_mail, Json::Null).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert_eq!(response.headers()["referrer-policy"], "no-referrer");
        assert_eq!(response.headers()["cache-control"], "no-store");
    }
    let token = world.link_token().await;
    let path = format!("/answer/question?token={token}");
    let response = send(&world, "GET", &path, &from_web_mail, Json::Null).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert!(world.taken().is_empty());
}

// spec: AP-10
#[tokio::test]
async fn post_shows_the_arguments_and_takes_the_answer_once() {
    let world = World::new();
    let token = world.link_token().await;
    let (status, shown) = post(&world, "/answer/question", json!({ "token": token })).await;
    assert_eq!((status, &shown["tool"]), (200, &json!("send_mail")));
    assert_eq!(shown["rows"], json!([["to", "ben@example.com"], ["text", "Yes, \\u{202e}noon."]]));
    let yes = json!({ "token": token, "answer": { "answer": "approve" } });
    assert_eq!(post(&world, "/answer", yes.clone()).await, (200, json!({ "question": "approval_1" })));
    let (status, problem) = post(&world, "/answer", yes).await;
    assert_eq!(status, 409);
    assert!(problem["detail"].as_str().unwrap().contains("was answered before"));
    assert_eq!(world.taken(), [Answer::Approve]);
}

#[tokio::test]
async fn post_with_a_wrong_token_after_the_time_or_without_an_answer_has_its_own_status() {
    let world = World::new();
    let token = world.link_token().await;
    let yes = |token: &str| json!({ "token": token, "answer": { "answer": "approve" } });
    assert_eq!(post(&world, "/answer", yes("a.b")).await.0, 403);
    assert_eq!(post(&world, "/answer", json!({ "token": token })).await.0, 422);
    assert_eq!(post(&world, "/answer", json!({ "token": token, "by": "eve" })).await.0, 400);
    let trust = json!({ "token": token, "answer": { "answer": "trust", "rules": ["send_mail"] } });
    assert_eq!(post(&world, "/answer", trust).await.0, 422);
    let long = json!({ "token": token, "answer": { "answer": "cancel", "reason": "x".repeat(70_000) } });
    assert_eq!(post(&world, "/answer", long).await.0, 413);
    world.clock.advance(std::time::Duration::from_secs(1_800));
    assert_eq!(post(&world, "/answer", yes(&token)).await.0, 410);
    assert!(world.taken().is_empty());
}

// spec: AP-10
#[tokio::test]
async fn post_of_a_page_of_another_site_or_for_another_host_is_refused() {
    let world = World::new();
    let token = world.link_token().await;
    let yes = json!({ "token": token, "answer": { "answer": "approve" } });
    for (name, value, status) in [
        ("host", "evil.example", 403),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("content-type", "text/plain", 415),
    ] {
        let headers = OWN.map(|own| if own.0 == name { (name, value) } else { own });
        let response = send(&world, "POST", "/answer", &headers, yes.clone()).await;
        assert_eq!(response.status().as_u16(), status, "{name}: {value}");
    }
    assert!(world.taken().is_empty());
    // A program without these headers.
    let response = send(&world, "POST", "/answer", &[OWN[0], OWN[3]], yes).await;
    assert_eq!(response.status(), StatusCode::OK);
}
