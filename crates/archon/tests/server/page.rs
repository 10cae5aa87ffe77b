//! The example of a web page: its own route and those of the server are in one router.

use archon::server::axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode, header::SET_COOKIE},
};
use tower::ServiceExt;

#[path = "../../examples/web_page.rs"]
mod web_page;

async fn send(app: &Router, request: Request<Body>) -> (StatusCode, Option<String>, String) {
    let response = app.clone().oneshot(request).await.unwrap();
    let cookie = response.headers().get(SET_COOKIE).map(|value| value.to_str().unwrap().to_owned());
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, cookie, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn web_page_starts_a_run_and_gets_its_answer_as_a_stream() {
    let (app, link) = web_page::app(([127, 0, 0, 1], 8080).into()).unwrap();
    let request = |path: &str| Request::builder().uri(path).header("host", "localhost:8080");
    let (status, _, page) = send(&app, request("/").body(Body::empty()).unwrap()).await;
    assert!(status.is_success() && page.contains("new EventSource"), "{page}");
    let (status, cookie, _) = send(&app, request(&link).body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let cookie = cookie.unwrap().split(';').next().unwrap().to_owned();
    let start = request("/agents/v1/runs").method("POST").header("cookie", &cookie);
    let start = start.header("content-type", "application/json").body(Body::from(r#"{"text":"Hello"}"#));
    let (status, _, started) = send(&app, start.unwrap()).await;
    assert_eq!(status, StatusCode::CREATED, "{started}");
    let started: serde_json::Value = serde_json::from_str(&started).unwrap();
    let events = format!("/agents/v1/runs/{}/events", started["run"].as_str().unwrap());
    let (_, _, events) =
        send(&app, request(&events).header("cookie", &cookie).body(Body::empty()).unwrap()).await;
    assert!(events.contains("event: end\ndata: {\"status\":\"finished\"}"), "{events}");
    assert!(events.contains("You wrote: Hello"), "{events}");
    let (status, _, _) = send(&app, request("/agents/v1/runs").body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}
