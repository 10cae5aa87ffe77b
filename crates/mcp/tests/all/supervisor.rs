//! Many servers at once: failing servers do not delay or disturb the others.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use archon_mcp::{InMemoryPins, McpServers, ServerState};

use crate::support::{call, options, options_with, server, tool, until, within};

fn twenty() -> Vec<(String, archon_mcp::McpServer)> {
    (0..20)
        .map(|n| {
            let behaviour = if n % 4 == 0 { "silent" } else { "well" };
            (format!("s{n}"), server(behaviour))
        })
        .collect()
}

#[tokio::test]
async fn five_of_twenty_servers_that_never_answer_delay_no_prompt() {
    let pins = Arc::new(InMemoryPins::default());
    let servers = McpServers::start(twenty(), &options_with(pins.clone())).unwrap();
    for n in (0..20).filter(|n| n % 4 != 0) {
        until(&servers, &format!("s{n}"), |status| status.state == ServerState::Ready).await;
    }
    let began = Instant::now();
    let tools = servers.tools(Duration::from_millis(100)).await;
    assert_eq!(tools.len(), 15 * 7);
    assert!(began.elapsed() < Duration::from_millis(1_000), "{:?}", began.elapsed());
    let echo = tools.iter().find(|tool| tool.spec().name == "s1__echo").unwrap();
    assert_eq!(call(&**echo, "hello").await.text(), "hello");
    servers.close().await;

    // With the pins of before, the tools are there at once, and a call waits for its server.
    let servers = McpServers::start(twenty(), &options_with(pins)).unwrap();
    let tools = servers.tools(Duration::ZERO).await;
    assert_eq!(tools.len(), 15 * 7);
    let echo = tools.iter().find(|tool| tool.spec().name == "s1__echo").unwrap();
    assert_eq!(call(&**echo, "again").await.text(), "again");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_stops_answering_is_noticed_without_a_call_and_started_again() {
    let mut options = options();
    options.check_every = Duration::from_millis(50);
    options.first_retry = Duration::from_millis(1);
    let mark = format!("fake-stopped-{}", std::process::id());
    let fake = within(server("well"), Duration::from_millis(300)).with_secret("FAKE_MARK", &*mark);
    let servers = McpServers::start([("fake".to_owned(), fake)], &options).unwrap();
    until(&servers, "fake", |status| status.state == ServerState::Ready).await;
    let stopped = crate::support::processes_with(&mark)[0];
    assert!(
        std::process::Command::new("kill").args(["-STOP", &stopped.to_string()]).status().unwrap().success()
    );
    until(&servers, "fake", |status| status.state != ServerState::Ready).await;
    until(&servers, "fake", |status| status.state == ServerState::Ready).await;
    assert_eq!(call(&*tool(&servers, "fake__echo").await, "back").await.text(), "back");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_ends_at_an_unknown_first_message_is_spoken_to_in_the_old_way_at_once() {
    let mut options = options();
    options.first_retry = Duration::from_secs(3_600);
    let servers = McpServers::start([("fake".to_owned(), server("old"))], &options).unwrap();
    until(&servers, "fake", |status| status.state == ServerState::Ready).await;
    assert_eq!(call(&*tool(&servers, "fake__echo").await, "hello").await.text(), "hello");
    servers.close().await;
}
