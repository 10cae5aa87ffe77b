//! Resources and prompts: for programs, and for models by two tools.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_mcp::{PromptRole, ResourceData, ServerState};
use archon_types::{BoxFuture, Content, Effect, ProcessGroup, Processes, ToolError, metadata};
use serde_json::json;

use crate::support::{context, server, start, tool, until};

#[tokio::test]
async fn resources_and_prompts_of_a_server_are_listed_over_all_pages_and_read() {
    let fake = server("library").with_secret("KEY", "sk-very-secret-key");
    let servers = start([("fake", fake), ("without", server("well"))]);
    let listed = servers.resources("fake").await.unwrap();
    let names: Vec<_> = listed.iter().map(|one| (&*one.uri, &*one.name, one.size)).collect();
    assert_eq!(names, [("note://one", "one", Some(5)), ("note://two", "two", None)]);
    assert_eq!(servers.resources("without").await.unwrap(), []);
    let read = servers.read_resource("fake", "note://one").await.unwrap();
    assert!(
        matches!(&read[0].data, ResourceData::Text(text) if text.starts_with("hello ") && !text.contains("sk-"))
    );
    let read = servers.read_resource("fake", "note://two").await.unwrap();
    assert_eq!(read[1].data, ResourceData::Base64("UEsDBAAA".to_owned()));

    let prompts = servers.prompts("fake").await.unwrap();
    assert_eq!((&*prompts[0].name, prompts[0].arguments[0].required), ("greet", true));
    let greet = servers.prompt("fake", "greet", [("whom", "Anna")]).await.unwrap();
    let messages: Vec<_> = greet.iter().map(|one| (one.role, one.content.clone())).collect();
    let expected = [(PromptRole::User, "Greet Anna."), (PromptRole::Assistant, "Hello!")];
    assert_eq!(messages, expected.map(|(role, text)| (role, Content::text(text))));

    let failed = servers.prompt("fake", "greet", [("who", "Anna")]).await.unwrap_err().to_string();
    assert!(
        failed.contains("'fake', phase resources and prompts: the server answered with error"),
        "{failed}"
    );
    let failed = servers.resources("other").await.unwrap_err().to_string();
    assert!(failed.contains("no server has this name; the configured servers: fake, without"), "{failed}");
    servers.close().await;
}

#[tokio::test]
async fn tools_for_resources_are_two_and_only_there_if_a_server_offers_resources() {
    let of = |behaviours: [(&'static str, &'static str); 2]| {
        start(behaviours.map(|(name, behaviour)| (name, server(behaviour))))
    };
    for (servers, expected) in [
        (of([("a", "library"), ("b", "library")]), vec!["list_mcp_resources", "read_mcp_resource"]),
        (of([("a", "well"), ("b", "well")]), vec![]),
    ] {
        let tools = servers.tools(Duration::from_secs(60)).await;
        let names = tools.iter().map(|tool| tool.spec().name.clone());
        assert_eq!(names.filter(|name| name.contains("mcp_resource")).collect::<Vec<_>>(), expected);
        servers.close().await;
    }
}

#[tokio::test]
async fn a_model_lists_and_reads_resources_and_secrets_are_removed() {
    let fake = server("library").with_secret("KEY", "sk-very-secret-key");
    let servers = start([("fake", fake), ("without", server("well"))]);
    let (list, read) =
        (tool(&servers, "list_mcp_resources").await, tool(&servers, "read_mcp_resource").await);
    assert_eq!(list.spec().annotations.effect, Effect::ReadOnly);
    let listed = list.call(json!({}), &context(&*list).0).await.unwrap().text();
    assert_eq!(listed, "fake: note://one (one, text/plain, 5 bytes)\nfake: note://two (two): A picture.");
    let text = read.call(json!({ "server": "fake", "uri": "note://one" }), &context(&*read).0).await.unwrap();
    assert!(text.text().starts_with("Content of note://one:\n\nhello "), "{}", text.text());
    assert!(!text.text().contains("sk-very-secret-key"));
    assert_eq!(text.metadata[metadata::SOURCE_URL], "mcp://fake/note://one");
    let data = read.call(json!({ "server": "fake", "uri": "note://two" }), &context(&*read).0).await.unwrap();
    assert!(matches!(&data.content[0], Content::Media(picture) if picture.mime_type() == "image/png"));
    assert!(data.text().contains("application/zip, about 6 bytes, not shown"), "{}", data.text());
    let lost = read.call(json!({ "server": "fake", "uri": "note://no" }), &context(&*read).0).await.unwrap();
    assert!(lost.is_error() && lost.text().contains("there is no such thing"), "{}", lost.text());
    let unknown = list.call(json!({ "server": "files" }), &context(&*list).0).await;
    assert!(
        matches!(unknown, Err(ToolError::NotFound(text)) if text.contains("The servers: fake, without."))
    );
    servers.close().await;
}

#[tokio::test]
async fn a_list_over_all_servers_names_those_that_are_missing_with_phase_and_advice() {
    let servers = start([("dead", server("exits")), ("fake", server("library")), ("late", server("silent"))]);
    until(&servers, "fake", |status| status.state == ServerState::Ready).await;
    until(&servers, "dead", |status| matches!(status.state, ServerState::Down(_))).await;
    let tools = servers.current_tools();
    let list = tools.iter().find(|tool| tool.spec().name == "list_mcp_resources").unwrap();
    let listed = list.call(json!({}), &context(&**list).0).await.unwrap().text();
    let lines: Vec<&str> = listed.lines().collect();
    let [dead, one, two, late] = lines[..] else { panic!("{listed}") };
    let exited = "dead: its resources cannot be listed: MCP server 'dead', phase handshake: the server ended";
    assert!(dead.starts_with(exited) && dead.contains("the key is missing"), "{dead}");
    assert!(one.starts_with("fake: note://one") && two.starts_with("fake: note://two"), "{listed}");
    let expected = "late: its resources cannot be listed: phase handshake: the server has not answered yet, \
                    and its time limit is 30 s; name it in `server` to wait for it";
    assert_eq!(late, expected);
    servers.close().await;
}

/// The process groups that calls named for the run's log.
#[derive(Default)]
struct Named(Mutex<Vec<ProcessGroup>>);

impl Processes for Named {
    fn register<'a>(&'a self, _: u32) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn uses<'a>(&'a self, group: &'a ProcessGroup) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.lock().unwrap().push(group.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn a_list_and_a_read_of_resources_name_the_servers_processes_for_the_log() {
    let servers = start([("fake", server("library"))]);
    let named = Arc::new(Named::default());
    for (name, arguments) in [
        ("list_mcp_resources", json!({})),
        ("read_mcp_resource", json!({ "server": "fake", "uri": "note://one" })),
    ] {
        let tool = tool(&servers, name).await;
        let mut context = context(&*tool).0;
        context.processes = Some(named.clone());
        assert!(!tool.call(arguments, &context).await.unwrap().is_error());
    }
    let groups = named.0.lock().unwrap().clone();
    let [listed, read] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!(listed, read);
    servers.close().await;
}

#[tokio::test]
async fn an_address_that_the_server_did_not_list_is_read_only_after_a_yes() {
    let servers = start([("fake", server("library"))]);
    let read = tool(&servers, "read_mcp_resource").await;
    let (context, _) = context(&*read);
    let warning = |uri: &str| {
        let preview = read.preview(&json!({ "server": "fake", "uri": uri }), &context.run).unwrap();
        preview.and_then(|preview| preview.warning)
    };
    assert!(warning("note://one").is_some(), "nothing was listed yet");
    servers.resources("fake").await.unwrap();
    assert_eq!(warning("note://one"), None);
    assert!(warning("note://one?password=1234").is_some());
    servers.close().await;
}
