//! The command as an MCP server, with the command itself as its client.

use std::process::Stdio;

use archon_testkit::MockServer;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::setup::{Place, answer};

/// Writes settings for the user.
fn settle(place: &Place, text: &str) {
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), text).unwrap();
}

#[tokio::test]
async fn mcp_serve_runs_the_calls_of_a_client_over_stdio_in_its_own_journal() {
    let (server, client) = (Place::new(), Place::new());
    let (program, data) = (env!("CARGO_BIN_EXE_archon"), server.data().display().to_string());
    let folder = server.dir.path().display().to_string();
    settle(
        &client,
        &format!(
            "[mcp.other]\ncommand = '{program}'\ncwd = '{folder}'\nread_only = ['calculator']\n\
             args = ['mcp', 'serve', '--data-dir', '{data}', '--tool', 'calculator', '--tool', 'write_file']\n"
        ),
    );
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
}
