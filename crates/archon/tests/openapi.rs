//! Tools of an OpenAPI document in an agent, beside those of an MCP server; and many of them, which the model finds with a
//! search.

#![cfg(all(feature = "mcp", feature = "openapi", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, sync::Arc, time::Duration};

use archon::{
    Archon, SystemClock,
    mcp::{InMemoryPins, McpOptions, McpServer, McpServers},
    openapi::{OpenApiConfig, OperationFilter},
    tools::{Ask, EngineOptions},
    types::{Json, Request, ToolCall},
};
use archon_testkit::{FnProvider, MockResponse, MockServer};
use serde_json::json;

const PETSTORE: &str = include_str!("../../openapi/tests/all/petstore.yaml");

/// An MCP server with one tool. It writes each line that it gets to the file of its first argument.
const SERVER: &str = r#"
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
while read -r line; do
  echo "$line" >> "$1"
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *\"server/discover\"*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
    *\"initialize\"*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *\"tools/list\"*) answer '"result":{"tools":[{"name":"add","description":"Adds.","inputSchema":{"type":"object"}}]}' ;;
    *\"tools/call\"*) answer '"result":{"content":[{"type":"text","text":"added"}]}' ;;
  esac
done
"#;

fn started(log: &Path) -> McpServers {
    let server = McpServer::stdio("sh", ["-c", SERVER, "sh", &log.display().to_string()]);
    let options = McpOptions::new(Arc::new(SystemClock), Arc::new(InMemoryPins::default()));
    McpServers::start([("notes".to_owned(), server)], &options).unwrap()
}

/// Returns a model that makes these calls at once, then answers `done`.
fn calling(calls: &[(&'static str, Json)]) -> FnProvider {
    let call = |(at, (tool, arguments)): (usize, &(&'static str, Json))| {
        ToolCall::new(format!("c{at}"), *tool, arguments.clone())
    };
    let calls: Vec<ToolCall> = calls.iter().enumerate().map(call).collect();
    FnProvider::new(move |count, _| match count {
        0 => FnProvider::calls(calls.clone()),
        _ => FnProvider::text("done"),
    })
}

fn defined(request: &Request) -> Vec<String> {
    request.tools.iter().map(|tool| tool.name.clone()).collect()
}

fn has_text(request: &Request, text: &str) -> bool {
    request.messages.iter().any(|message| message.text().contains(text))
}

// spec: A-57
#[tokio::test]
async fn agent_with_an_mcp_server_and_a_document_calls_the_tools_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let servers = started(&log);
    let shop = MockServer::start([MockResponse::json(200, &json!({ "name": "Rex" }))]).await;
    let config =
        OpenApiConfig::default().with_base_url(format!("{}/v1", shop.url())).with_name_prefix("pets");
    let model = calling(&[("notes__add", json!({})), ("pets__getPet", json!({ "petId": "a/b ö" }))]);
    let builder = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .engine_options(EngineOptions::default().asking(Ask::WhereRequired));
    let builder = builder.mcp(&servers, Duration::from_secs(60)).await;
    let agent = builder.with_openapi_spec(PETSTORE, config, OperationFilter::All).unwrap().build().unwrap();
    assert_eq!(agent.run("Which pet is it?").await.unwrap().into_text().unwrap(), "done");
    servers.close().await;

    let tools = [
        "notes__add",
        "pets__listPets",
        "pets__createPet",
        "pets__getPet",
        "pets__deletePet",
        "pets__addNote",
    ];
    let requests = model.requests();
    let mut known = defined(&requests[0]);
    known.sort();
    assert!(tools.iter().all(|tool| known.contains(&(*tool).to_owned())), "{known:?}");
    assert_eq!(shop.requests()[0].path, "/v1/pets/a%2Fb%20%C3%B6");
    let line = format!("GET {}/v1/pets/a%2Fb%20%C3%B6 → 200", shop.url());
    assert!(has_text(&requests[1], "added") && has_text(&requests[1], &line), "{:?}", requests[1].messages);
    let said = std::fs::read_to_string(&log).unwrap();
    let mut rest = said.as_str();
    for method in ["\"initialize\"", "\"notifications/initialized\"", "\"tools/list\"", "\"tools/call\""] {
        let (_, after) =
            rest.split_once(method).unwrap_or_else(|| panic!("no {method} in its place: {said}"));
        rest = after;
    }
}

#[tokio::test]
async fn tools_of_a_document_beyond_the_budget_are_deferred_and_still_called() {
    let shop = MockServer::start([MockResponse::json(200, &json!({ "name": "Rex" }))]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("petstore.yaml");
    std::fs::write(&file, PETSTORE).unwrap();
    let config =
        OpenApiConfig::default().with_base_url(format!("{}/v1", shop.url())).with_name_prefix("pets");
    let call = json!({ "name": "pets__getPet", "arguments": { "petId": "7" } });
    let model = calling(&[("call_tool", call)]);
    let agent = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .definition_budget(0)
        .with_openapi_file(&file, config, OperationFilter::All)
        .unwrap()
        .build()
        .unwrap();
    assert_eq!(agent.run("Which pet is it?").await.unwrap().into_text().unwrap(), "done");
    let requests = model.requests();
    assert_eq!(defined(&requests[0]), ["call_tool", "tool_search"]);
    let search = requests[0].tools.iter().find(|tool| tool.name == "tool_search").unwrap();
    assert!(
        search.description.contains("There are tools of: pets (admin, notes, pets). "),
        "{}",
        search.description
    );
    assert_eq!(shop.requests()[0].path, "/v1/pets/7");
}
