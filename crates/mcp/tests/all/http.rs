//! Servers at a web address: answers as JSON and as a stream, sessions, headers, and a wanted sign-in.

use std::time::Duration;

use archon_mcp::{McpServer, ServerState};
use archon_testkit::{Gate, MockResponse, MockServer, cases};
use serde_json::{Value, json};

use crate::{
    support::{call, failure, start, tool, until},
    web_servers::{answer, reply},
};

// spec: MC-01, MC-06
#[tokio::test]
async fn tools_of_a_server_at_a_web_address_are_called_with_its_session_and_our_headers() {
    let web = MockServer::answering(answer).await;
    let settings =
        McpServer::http(format!("{}/mcp", web.url())).with_secret("Authorization", "Bearer sk-secret-1");
    let servers = start([("web", settings)]);
    let result = call(&*tool(&servers, "web__echo").await, "hello sk-secret-1").await;
    assert!(
        result.text().starts_with("hello") && !result.text().contains("sk-secret-1"),
        "{}",
        result.text()
    );
    servers.close().await;
    let requests = web.requests();
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer sk-secret-1")));
    let called = requests.iter().find(|request| request.body["method"] == "tools/call").unwrap();
    assert_eq!(called.header("mcp-session-id"), Some("session-1"));
    let accepted = called.header("accept").unwrap_or_default();
    assert!(accepted.contains("application/json") && accepted.contains("text/event-stream"), "{accepted}");
    let ended = requests.iter().find(|request| request.method == "DELETE").unwrap();
    assert_eq!(ended.header("mcp-session-id"), Some("session-1"));
}

// spec: MC-06, MC-08
#[tokio::test]
async fn http_server_that_needs_a_login_or_is_absent_is_reported() {
    let web = MockServer::answering(|_| MockResponse::new(401).header("www-authenticate", "Bearer")).await;
    let servers = start([
        ("locked", McpServer::http(web.url())),
        // A port that nothing listens on.
        ("gone", McpServer::http("http://127.0.0.1:1/mcp")),
    ]);
    let text = failure(&servers, "locked").await;
    assert!(
        text.contains("phase sign-in: the server requires a sign-in. Set a valid `Authorization` header"),
        "{text}"
    );
    let text = failure(&servers, "gone").await;
    assert!(text.contains("MCP server 'gone', phase handshake"), "{text}");
    until(&servers, "gone", |status| status.state != ServerState::Ready).await;
    servers.close().await;
}

/// Takes 11 s, because the library's limit for an answer to the probe is 10 s of real time.
#[tokio::test]
async fn server_at_a_web_address_that_answers_late_connects_at_its_first_attempt() {
    if cases(0, 1) == 0 {
        return;
    }
    let gate = Gate::new();
    let slow = |kind: &'static str, value: Value| {
        let gate = gate.clone();
        MockServer::answering(move |request| match request.body["method"].as_str() {
            Some("server/discover") => MockResponse::new(200)
                .header("content-type", "application/json")
                .wait(&gate)
                .chunk(reply(request, kind, value.clone()).to_string()),
            _ => answer(request),
        })
    };
    let legacy = slow("error", json!({ "code": -32601, "message": "no such method" })).await;
    let found = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
        "cacheScope": "private", "capabilities": { "tools": {} },
    });
    let stateless = slow("result", found).await;
    let webs = [("legacy", &legacy, true), ("stateless", &stateless, false)];
    let servers = start(webs.map(|(name, web, _)| (name, McpServer::http(format!("{}/mcp", web.url())))));
    tokio::time::sleep(Duration::from_secs(11)).await;
    webs.iter().for_each(|_| gate.open());
    for (name, web, is_initialized) in webs {
        let status = until(&servers, name, |status| status.state != ServerState::Connecting).await;
        assert_eq!(status.state, ServerState::Ready, "{name}");
        let echo = tool(&servers, &format!("{name}__echo")).await;
        assert_eq!(call(&*echo, "hello").await.text(), "hello");
        let requests = web.requests();
        assert_eq!(
            requests.iter().any(|request| request.body["method"] == "initialize"),
            is_initialized,
            "{name}"
        );
    }
    servers.close().await;
}
