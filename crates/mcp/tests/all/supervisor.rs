//! Many servers at once: failing servers do not delay or disturb the others.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use archon_mcp::{InMemoryPins, McpOptions, McpServers, ServerState};
use archon_testkit::{VirtualClock, cases};

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
    let (unknown, known): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| tool.source().is_some());
    assert_eq!(known.len(), 15 * 7);
    let names: Vec<&str> = unknown.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["s0__*", "s12__*", "s16__*", "s4__*", "s8__*"]);
    assert!(began.elapsed() < Duration::from_millis(1_000), "{:?}", began.elapsed());
    let echo = tools.iter().find(|tool| tool.spec().name == "s1__echo").unwrap();
    assert_eq!(call(&**echo, "hello").await.text(), "hello");
    servers.close().await;

    // With the pins of before, the tools are there at once, and a call waits for its server.
    let servers = McpServers::start(twenty(), &options_with(pins)).unwrap();
    let tools = servers.current_tools();
    assert_eq!(tools.len(), 15 * 7 + 5);
    let echo = tools.iter().find(|tool| tool.spec().name == "s1__echo").unwrap();
    assert_eq!(call(&**echo, "again").await.text(), "again");
    servers.close().await;
}

#[tokio::test]
async fn tools_of_a_server_without_pins_are_found_once_it_has_answered() {
    let fakes = [("fake", server("library")), ("lost", server("exits"))];
    let pins = Arc::new(InMemoryPins::default());
    let fakes = || fakes.clone().map(|(name, server)| (name.to_owned(), server.with_read_only(["*"])));
    let servers = McpServers::start(fakes(), &options_with(pins.clone())).unwrap();
    let tools = servers.current_tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["fake__*", "lost__*"]);
    let [fake, lost] = [0, 1].map(|n| tools[n].source().unwrap());
    assert!(fake.tools().err().unwrap().starts_with("it has not answered yet"));
    assert_eq!(tools[0].spec().annotations.effect, archon_types::Effect::ReadOnly);
    fake.settled().await;
    let found = fake.tools().unwrap();
    let echo = found.iter().find(|tool| tool.spec().name == "fake__echo").unwrap();
    assert_eq!(call(&**echo, "hello").await.text(), "hello");
    lost.settled().await;
    let why = lost.tools().err().unwrap();
    assert!(why.starts_with("phase handshake: the server ended with exit code 3"), "{why}");
    servers.close().await;

    // With pins the tools are known at once, and whether the server has resources.
    let servers = McpServers::start(fakes(), &options_with(pins)).unwrap();
    let tools = servers.current_tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert!(names.contains(&"fake__echo") && names.contains(&"list_mcp_resources"), "{names:?}");
    assert!(!names.contains(&"fake__*") && names.contains(&"lost__*"), "{names:?}");
    servers.close().await;
}

#[tokio::test]
async fn server_whose_tools_are_all_held_back_is_unknown_at_each_start() {
    let mut options = options();
    options.first_use = archon_mcp::FirstUse::HoldBack;
    for _ in 0..2 {
        let servers = McpServers::start([("fake".to_owned(), server("well"))], &options).unwrap();
        let tools = servers.current_tools();
        assert_eq!(tools[0].spec().name, "fake__*");
        let source = tools[0].source().unwrap();
        source.settled().await;
        assert_eq!(source.tools().err().unwrap(), "its tools are held back until a person agrees to them");
        servers.close().await;
    }
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

/// Takes 11 s. With paused time, `late_probe.rs` tests the same.
#[tokio::test]
async fn server_that_starts_slowly_connects_at_its_first_attempt() {
    if cases(0, 1) == 0 {
        return;
    }
    let mut options = options();
    options.first_retry = Duration::from_secs(3_600);
    let names = ["slow", "slow-stateless"];
    let slow = names.map(|behaviour| (behaviour.to_owned(), server(behaviour)));
    let servers = McpServers::start(slow, &options).unwrap();
    for name in names {
        until(&servers, name, |status| status.state != ServerState::Connecting).await;
        let echo = tool(&servers, &format!("{name}__echo")).await;
        assert_eq!(call(&*echo, "hello").await.text(), "hello");
    }
    servers.close().await;
}

#[tokio::test]
async fn server_that_reports_changes_without_end_is_listed_once_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("messages");
    let clock = VirtualClock::new();
    let options = McpOptions::new(Arc::new(clock.clone()), Arc::new(InMemoryPins::default()));
    let fake = server("floods").with_variable("FAKE_LOG", log.display().to_string());
    let servers = McpServers::start([("fake".to_owned(), fake)], &options).unwrap();
    let lists = || {
        let messages = std::fs::read_to_string(&log).unwrap();
        // A list has two pages, and only the request for the second one has a cursor.
        messages.lines().filter(|line| line.contains("tools/list") && line.contains("cursor")).count()
    };
    let echo = tool(&servers, "fake__echo").await;
    for _ in 0..20 {
        assert_eq!(call(&*echo, "hello").await.text(), "hello");
    }
    // The one at the start, and one for the first change.
    assert!(lists() <= 2, "{} lists", lists());
    let end = Instant::now() + Duration::from_secs(60);
    while lists() < 4 {
        assert!(Instant::now() < end, "{} lists", lists());
        clock.advance(Duration::from_secs(1));
        assert_eq!(call(&*echo, "hello").await.text(), "hello");
    }
    // Its processes end with the test: a close waits for the clock.
    drop(servers);
}
