//! MCP clients of the server, with the command itself as the client.

use archon_testkit::MockServer;
use rustix::process::Signal;

use super::client::{Served, settle};
use crate::setup::{Place, answer};

#[tokio::test]
async fn serve_offers_tools_and_agents_to_mcp_clients_with_a_token_that_may_operate() {
    let model = MockServer::start([answer("All well.")]).await;
    let (place, client) = (Place::new(), Place::new());
    let more = "[serve]\nmcp = true\n[serve.tokens.eve]\nrole = 'viewer'\n\
                [serve.tokens.ops]\nrole = 'operator'\n\
                [agents.reviewer]\ndescription = 'Reviews.'\nsystem = 'You review.'\n";
    settle(&place, &model, more);
    let served = Served::of(place.command("serve --json --listen 127.0.0.1:0", &[]), 2).await;
    let url = served.tokens[0]["link"].as_str().unwrap().split("/v1/").next().unwrap();
    let connect = |name: &str| {
        let secret = std::fs::read_to_string(place.data().join("tokens").join(name)).unwrap();
        let headers = format!("headers = {{ Authorization = 'Bearer {}' }}", secret.trim());
        std::fs::create_dir_all(client.path(".config/archon")).unwrap();
        let text = format!("[mcp.other]\nurl = '{url}/mcp'\nread_only = ['calculator']\n{headers}\n");
        std::fs::write(client.path(".config/archon/archon.toml"), text).unwrap();
    };
    connect("ops");
    let tested = client.archon("mcp test", &["other"]).await;
    assert!(tested.code == Some(0) && tested.out.contains("other__reviewer"), "{tested:?}");
    let called = client.archon("tools call", &["other__calculator", "expression=6*7"]).await;
    assert!(called.code == Some(0) && called.out.contains("42"), "{called:?}");
    let call = ["--allow", "other__reviewer", "other__reviewer", "prompt=Look."];
    let called = client.archon("tools call", &call).await;
    assert!(called.code == Some(0) && called.out.contains("All well."), "{called:?}");
    assert!(model.requests()[0].body.to_string().contains("You review."));
    let runs = place.archon("runs list --json", &[]).await.json();
    assert_eq!(runs.len(), 2, "each call is a run of the server: {runs:?}");

    connect("eve");
    let refused = client.archon("mcp test", &["other"]).await;
    assert_eq!(refused.code, Some(1), "a viewer starts no runs: {refused:?}");
    assert_eq!(served.send("POST", "/mcp", "X-Nothing: 1", None).await.rule(), "token-missing");
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}
