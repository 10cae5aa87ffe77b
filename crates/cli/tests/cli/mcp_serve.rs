//! The command as an MCP server, with the command itself as its client.

use std::process::Stdio;

use archon_testkit::MockServer;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::setup::{Place, Ran, answer, asks_for};

/// Writes settings for the user.
fn settle(place: &Place, text: &str) {
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), text).unwrap();
}

/// Settings of a client: the command in the other place is its server `other`, and offers these tools.
fn served(server: &Place, tools: &[&str], more: &str) -> String {
    let (program, data) = (env!("CARGO_BIN_EXE_archon"), server.data().display().to_string());
    let folder = server.dir.path().display();
    let tools: String = tools.iter().map(|tool| format!(", '--tool', '{tool}'")).collect();
    format!(
        "[mcp.other]\ncommand = '{program}'\ncwd = '{folder}'\nenv = {{ HOME = '{folder}' }}\n\
         args = ['mcp', 'serve', '--data-dir', '{data}'{tools}]\n{more}\n"
    )
}

#[tokio::test]
async fn mcp_serve_runs_the_calls_of_a_client_over_stdio_in_its_own_journal() {
    let (server, client) = (Place::new(), Place::new());
    settle(&client, &served(&server, &["calculator", "write_file"], "read_only = ['calculator']"));
    let tested = client.archon("mcp test", &["other"]).await;
    assert_eq!(tested.code, Some(0), "{tested:?}");
    for tool in ["other__calculator", "other__write_file"] {
        assert!(tested.out.contains(tool), "{tested:?}");
    }
    let called = client.archon("tools call", &["other__calculator", "expression=6*7"]).await;
    assert!(called.code == Some(0) && called.out.contains("42"), "{called:?}");
    // Nobody at this client can be asked, and no rule of the server allows it.
    let write = ["--allow", "other__write_file", "other__write_file", "path=a.txt", "content=x"];
    let refused = client.archon("tools call", &write).await;
    assert!(refused.code == Some(1) && !server.path("a.txt").exists(), "{refused:?}");
    assert_eq!(server.archon("runs list", &[]).await.out.lines().count(), 2);
    assert!(!client.data().join("runs").exists(), "the runs are the server's");
}

#[tokio::test]
async fn mcp_serve_offers_an_agent_over_http_until_it_is_interrupted() {
    let model = MockServer::start([answer("All well.")]).await;
    let (server, client) = (Place::new(), Place::new());
    let base = format!("{}/v1", model.url());
    let agent = "[agents.reviewer]\ndescription = 'Reviews.'\nsystem = 'You review.'\n";
    settle(&server, &format!("model = 'mock'\nbase_url = '{base}'\n{agent}"));
    let mut command = server.command("mcp serve", &["--http", "127.0.0.1:0", "--agent", "reviewer"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(word) = line.split_whitespace().find(|word| word.starts_with("http://")) {
            break word.to_owned();
        }
    };
    settle(&client, &format!("[mcp.other]\nurl = '{address}'\n"));
    let call = ["--allow", "other__reviewer", "other__reviewer", "prompt=Look."];
    let called = client.archon("tools call", &call).await;
    assert!(called.code == Some(0) && called.out.contains("All well."), "{called:?}");
    assert!(model.requests()[0].body.to_string().contains("You review."));
    let id = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn mcp_serve_refuses_an_unknown_agent_and_an_address_that_others_reach_without_a_token() {
    let place = Place::new();
    let refused = place.archon("mcp serve", &["--agent", "reviewer"]).await;
    refused.check_refused(2, "the settings have no agent \"reviewer\"", "[agents.reviewer]");
    let refused = place.archon("mcp serve", &["--http", "0.0.0.0:0"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("a token is required") && refused.err.contains("ARCHON_MCP_TOKEN"),
        "{refused:?}"
    );
    let mut command = place.command("mcp serve", &["--http", "0.0.0.0:0"]);
    let refused = Ran::from(command.env("ARCHON_MCP_TOKEN", "a-long-random-text").output().await.unwrap());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("the connection is not encrypted") && refused.err.contains("--behind-proxy"),
        "{refused:?}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn mcp_serve_offers_many_tools_of_its_own_servers_without_a_search() {
    use serde_json::json;

    let (server, client) = (Place::new(), Place::new());
    let (about, schema) = ("Returns its text. ".repeat(50), json!({ "type": "object" }));
    let tool = |name: String| json!({ "name": name, "description": about, "inputSchema": schema });
    let tools: Vec<_> = (0..20).map(|n| format!("tool{n}")).chain(["echo".to_owned()]).map(tool).collect();
    std::fs::write(server.path("tools.json"), json!(tools).to_string()).unwrap();
    let file = server.path("tools.json").display().to_string();
    let more = format!("read_only = ['*']\nenv = {{ FAKE_TOOLS = '{file}' }}");
    settle(&server, &crate::mcp::fake("many", "well", &more));
    settle(&client, &served(&server, &["many__*"], "read_only = ['*']"));
    let tested = client.archon("mcp test", &["other"]).await;
    assert!(tested.code == Some(0) && tested.out.contains("other__many__tool19"), "{tested:?}");
    assert!(!tested.out.contains("tool_search") && !tested.out.contains("call_tool"), "{tested:?}");
    let called = client.archon("tools call", &["other__many__echo", "text=tea"]).await;
    assert!(called.code == Some(0) && called.out.contains("tea"), "{called:?}");
}

#[tokio::test]
async fn call_of_a_client_that_waits_is_approved_at_the_server_without_a_model() {
    let call = asks_for("other__write_file", r#"{"path": "a.txt", "content": "x"}"#);
    let model = MockServer::start([call]).await;
    let (server, client) = (Place::new(), Place::with_server(&model));
    settle(&client, &served(&server, &["write_file"], ""));
    assert_eq!(client.archon("mcp test", &["other"]).await.code, Some(0));
    let ran = client.archon("run --ask-later --allow other__write_file", &["Write it."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let open = server.archon("approvals list --json", &[]).await.json();
    let id = open[0]["request_id"].as_str().unwrap().to_owned();
    assert!(!server.path("a.txt").exists());
    let approved = server.archon("approvals approve", &[&id]).await;
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert_eq!(std::fs::read_to_string(server.path("a.txt")).unwrap(), "x");
}
