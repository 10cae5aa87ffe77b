//! Tools that a server changes while a session uses them: the definitions in requests stay as they were pinned.

use std::{fs, path::Path, sync::Arc};

use archon_mcp::{FilePins, McpServer, McpServers};
use archon_types::{Json, metadata};
use serde_json::json;

use crate::support::{call, options_with, server, tool, until};

fn definition(name: &str, description: &str) -> Json {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

/// Returns a server whose tools are in a file.
fn with_tools(folder: &Path, tools: &[Json]) -> McpServer {
    let file = folder.join("tools.json");
    fs::write(&file, Json::from(tools).to_string()).unwrap();
    server("well").with_secret("FAKE_TOOLS", file.display().to_string())
}

fn start(folder: &Path, server: McpServer) -> McpServers {
    let options = options_with(Arc::new(FilePins::new(folder.join("pins"))));
    McpServers::start([("fake".to_owned(), server)], &options).unwrap()
}

/// Returns the definitions of all tools, as a request has them.
fn bytes(servers: &McpServers) -> String {
    let specs: Vec<_> = servers.current_tools().iter().map(|tool| tool.spec().clone()).collect();
    serde_json::to_string(&specs).unwrap()
}

// spec: MC-07
#[tokio::test]
async fn current_tools_of_a_server_that_changes_adds_and_removes_tools_have_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let change = || definition("change", "Changes.");
    let first = [definition("echo", "One."), definition("count", "Counts."), change()];
    let servers = start(folder.path(), with_tools(folder.path(), &first));
    let count = tool(&servers, "fake__count").await;
    let before = bytes(&servers);
    let then = [definition("echo", "Two."), definition("fail", "Fails."), change()];
    with_tools(folder.path(), &then);
    call(&*tool(&servers, "fake__change").await, "").await;
    let status = until(&servers, "fake", |status| !status.held.is_empty()).await;
    assert_eq!(bytes(&servers), before);
    assert_eq!(status.tools, ["fake__change"]);
    // A call of a tool that changed or is gone is refused, by the tool of either prompt.
    let changed = call(&*tool(&servers, "fake__echo").await, "hello").await;
    assert_eq!(changed.metadata[metadata::ERROR_TYPE], "permission_denied");
    for count in [count, tool(&servers, "fake__count").await] {
        let gone = call(&*count, "hello").await;
        assert!(gone.text().contains("the server no longer offers the tool 'count'"), "{}", gone.text());
    }
    servers.close().await;

    // The next process goes on with the same tools, and a person changes them.
    let servers = start(folder.path(), with_tools(folder.path(), &then));
    until(&servers, "fake", |status| status.held.len() == 2).await;
    assert_eq!(bytes(&servers), before);
    assert!(servers.approve(&status.held[0]).unwrap());
    let names: Vec<_> = servers.current_tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["fake__change", "fake__echo"]);
    assert!(bytes(&servers).contains("Two."));
    servers.close().await;
}

#[tokio::test]
async fn current_tools_of_a_server_that_reorders_a_schema_have_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    // `json!` keeps the order of keys.
    let with_schema = |schema: Json| json!({ "name": "echo", "description": "One.", "inputSchema": schema });
    let path = json!({ "path": { "type": "string" } });
    let first = with_schema(json!({ "type": "object", "properties": path }));
    let then = with_schema(json!({ "properties": path, "type": "object" }));
    assert_ne!(first.to_string(), then.to_string());
    let servers = start(folder.path(), with_tools(folder.path(), &[first]));
    let echo = tool(&servers, "fake__echo").await;
    let before = bytes(&servers);
    servers.close().await;
    let servers = start(folder.path(), with_tools(folder.path(), &[then]));
    until(&servers, "fake", |status| status.state == archon_mcp::ServerState::Ready).await;
    assert_eq!(bytes(&servers), before);
    assert_eq!(call(&*tool(&servers, "fake__echo").await, "hello").await.text(), "hello");
    assert_eq!(echo.spec().name, "fake__echo");
    servers.close().await;
}
