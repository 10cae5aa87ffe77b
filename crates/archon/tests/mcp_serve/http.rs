//! Clients over HTTP: our own client, and requests that are refused before the protocol.

use std::{sync::Arc, time::Duration};

use archon::{
    SystemClock,
    mcp::{InMemoryPins, McpOptions, McpServer, McpServers},
    mcp_serve::{HttpServerOptions, ToolServerError, serve_http},
    types::{CancellationToken, Context, Json, RunId, SessionId, ToolContext},
};
use archon_testkit::SeededIds;
use reqwest::{Response, StatusCode};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::world::{MODERN, SESSIONS, World};

struct Site {
    port: u16,
    end: CancellationToken,
    served: JoinHandle<Result<(), ToolServerError>>,
}

impl Site {
    async fn of(world: &World, options: HttpServerOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, end) = (listener.local_addr().unwrap().port(), CancellationToken::new());
        let (server, ended) = (world.runs().1, end.clone());
        let served = tokio::spawn(async move { server.serve_http(listener, &options, ended).await });
        Self { port, end, served }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    async fn post(&self, headers: &[(&str, &str)], body: Json) -> Response {
        let mut request = reqwest::Client::new()
            .post(self.url())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body.to_string()).send().await.unwrap()
    }

    async fn close(self) {
        self.end.cancel();
        self.served.await.unwrap().unwrap();
    }
}

fn initialize() -> Json {
    let us = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": us });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

#[tokio::test]
async fn our_client_lists_and_calls_the_tools_and_agents_of_our_server() {
    let world = World::new().with_rules(&[], &["step"]);
    let site = Site::of(&world, HttpServerOptions::default().with_token("token-1")).await;
    let settings =
        McpServer::http(site.url()).with_secret("Authorization", "Bearer token-1").with_read_only(["*"]);
    let options = McpOptions::new(Arc::new(SystemClock), Arc::new(InMemoryPins::default()));
    let servers = McpServers::start([("own".to_owned(), settings)], &options).unwrap();
    let tools = servers.tools(Duration::from_secs(30)).await;
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["own__add", "own__step", "own__wait", "own__walker"]);
    let call = async |name: &str, arguments: Json| {
        let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let ids = Arc::new(SeededIds::new(1));
        let context = Context::new(RunId::new("run_1"), SessionId::new("s"), Arc::new(SystemClock), ids);
        tool.call(arguments, &ToolContext::new(context, "call_1".into(), name)).await.unwrap()
    };
    assert_eq!(call("own__add", json!({ "a": 19, "b": 23 })).await.text(), "42");
    assert_eq!(call("own__walker", json!({ "prompt": "step Paris" })).await.text(), "done: stepped to Paris");
    assert_eq!(world.steps(), 1);
    servers.close().await;
    site.close().await;
}

#[tokio::test]
async fn request_for_a_foreign_host_or_of_a_foreign_page_is_refused() {
    let site = Site::of(&World::new(), HttpServerOptions::default()).await;
    let (own, port) = (format!("localhost:{}", site.port), site.port);
    let (own_page, other_port) =
        (format!("http://localhost:{port}"), format!("http://localhost:{}", port ^ 1));
    for (name, value, status) in [
        ("host", own.as_str(), StatusCode::OK),
        ("host", "evil.example", StatusCode::FORBIDDEN),
        ("host", "localhost.evil.example", StatusCode::FORBIDDEN),
        ("origin", own_page.as_str(), StatusCode::OK),
        ("origin", other_port.as_str(), StatusCode::FORBIDDEN),
        ("origin", "http://evil.example", StatusCode::FORBIDDEN),
        ("origin", "null", StatusCode::FORBIDDEN),
    ] {
        let response = site.post(&[(name, value)], initialize()).await;
        assert_eq!(response.status(), status, "{name}: {value}");
    }
    site.close().await;
}

#[tokio::test]
async fn request_without_the_token_is_refused() {
    let site = Site::of(&World::new(), HttpServerOptions::default().with_token("token-1")).await;
    for (header, status) in [
        ("Bearer token-1", StatusCode::OK),
        ("bearer token-1", StatusCode::OK),
        ("Bearer token-2", StatusCode::UNAUTHORIZED),
        ("Bearer token-11", StatusCode::UNAUTHORIZED),
        ("Bearer", StatusCode::UNAUTHORIZED),
        ("Basic token-1", StatusCode::UNAUTHORIZED),
    ] {
        let response = site.post(&[("authorization", header)], initialize()).await;
        assert_eq!(response.status(), status, "{header}");
    }
    let response = site.post(&[], initialize()).await;
    assert_eq!(
        (response.status(), &response.headers()["www-authenticate"] == "Bearer"),
        (StatusCode::UNAUTHORIZED, true)
    );
    site.close().await;
}

#[tokio::test]
async fn bodies_and_sessions_have_limits_and_requests_without_a_session_do_not_count() {
    let mut options = HttpServerOptions::default();
    (options.max_body, options.max_sessions) = (10_000, 1);
    let site = Site::of(&World::new(), options).await;
    let mut long = initialize();
    long["params"]["clientInfo"]["name"] = json!("x".repeat(10_000));
    assert_eq!(site.post(&[], long).await.status(), StatusCode::PAYLOAD_TOO_LARGE);

    let first = site.post(&[], initialize()).await;
    let session = first.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let refused = site.post(&[], initialize()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let listed = site.post(&[("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")], list).await;
    assert_eq!(listed.status(), StatusCode::OK);
    let closed =
        reqwest::Client::new().delete(site.url()).header("mcp-session-id", session).send().await.unwrap();
    assert!(closed.status().is_success(), "{}", closed.status());
    assert_eq!(site.post(&[], initialize()).await.status(), StatusCode::OK);
    site.close().await;
}

#[tokio::test]
async fn address_beyond_loopback_needs_a_token_a_proxy_and_the_names_of_its_hosts() {
    let serve = async |options: HttpServerOptions| {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let end = CancellationToken::new();
        end.cancel();
        serve_http(World::new().runs().1, listener, &options, end).await
    };
    assert!(matches!(serve(HttpServerOptions::default()).await, Err(ToolServerError::NoToken(_))));
    let with_token = HttpServerOptions::default().with_token("token-1");
    assert!(matches!(serve(with_token.clone()).await, Err(ToolServerError::NotEncrypted(_))));
    let with_token = with_token.with_proxy();
    assert!(matches!(serve(with_token.clone()).await, Err(ToolServerError::NoHosts(_))));
    assert!(serve(with_token.with_hosts(["tools.example"])).await.is_ok());
}

#[tokio::test]
async fn server_that_ends_lets_a_call_under_way_finish() {
    let world = World::new();
    let site = Site::of(&world, HttpServerOptions::default()).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "wait", "arguments": {}, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "wait")];
    let (response, ()) = tokio::join!(site.post(&headers, call), async {
        world.gate.entered.notified().await;
        site.end.cancel();
        world.gate.open.notify_one();
    });
    assert!(response.text().await.unwrap().contains("went on"));
    site.close().await;
}
