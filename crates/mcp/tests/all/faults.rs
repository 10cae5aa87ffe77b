//! Servers that misbehave in every way that we know, in a seeded order: no hang, no orphan, no mixed answers.

use std::time::{Duration, Instant};

use archon_mcp::McpServer;
use archon_testkit::{Chance, cases, first_seed};

use crate::support::{call, processes_with, program, server, start, until, within};

const BEHAVIOURS: &[&str] = &[
    "well",
    "silent",
    "no-drain",
    "stops-reading",
    "half-line",
    "huge-line",
    "garbage",
    "late",
    "dies",
    "stubborn",
    "grandchild",
    "foreign-id",
    "endless-list",
    "noisy",
    "exits",
];

/// The limit of each phase; and the most that a scenario may take beyond it, on a busy machine.
const LIMIT: Duration = Duration::from_millis(400);
const SLACK: Duration = Duration::from_secs(20);

// spec: MC-05, MC-08
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_server_cause_no_hang_no_orphan_and_no_answer_of_another_call() {
    let mut chance = Chance(first_seed());
    for case in 0..cases(2 * BEHAVIOURS.len() as u64, 1_000) {
        let behaviour = BEHAVIOURS[usize::try_from(case).unwrap() % BEHAVIOURS.len()];
        let mark = format!("fake-case-{}-{case}", std::process::id());
        let began = Instant::now();
        one(behaviour, &mark, &mut chance).await;
        assert!(began.elapsed() < 4 * LIMIT + SLACK, "{behaviour} took {:?}", began.elapsed());
        let left = processes_with(&mark);
        assert!(left.is_empty(), "{behaviour} leaves the processes {left:?}");
    }
}

/// Connects to a server, calls it a few times at once, and closes it at some point.
async fn one(behaviour: &str, mark: &str, chance: &mut Chance) {
    let folder = tempfile::tempdir().unwrap();
    let grandchild = folder.path().join(mark);
    let mut settings = McpServer::stdio(program(), [behaviour, &grandchild.display().to_string()]);
    let is_good = ["well", "garbage", "stubborn", "grandchild", "foreign-id", "noisy"].contains(&behaviour);
    settings.timeouts = within(server(behaviour), if is_good { SLACK } else { LIMIT }).timeouts;
    settings = settings.with_secret("FAKE_MARK", mark);
    let close = settings.timeouts.close;
    let servers = start([("fake", settings)]);
    if chance.percent(20) {
        // Closed at any moment of the start.
        tokio::time::sleep(Duration::from_millis(chance.below(30))).await;
        servers.close().await;
        return;
    }
    let tools = servers.tools(Duration::from_secs(60)).await;
    let echo = tools.into_iter().find(|tool| tool.spec().name == "fake__echo");
    assert!(
        echo.is_some() || ["silent", "no-drain", "endless-list", "exits"].contains(&behaviour),
        "{behaviour}"
    );
    if let Some(echo) = echo {
        let texts: Vec<String> = (0..1 + chance.below(4)).map(|n| format!("text {n}")).collect();
        // Large arguments fill the pipe of a server that does not read.
        let large = "z".repeat(usize::try_from(chance.below(200_000)).unwrap());
        let (large, echo) = (&large, &echo);
        let calls = texts.iter().map(|text| async move {
            let text = format!("{text} {large}");
            let result = call(&**echo, &text).await;
            assert!(result.is_error() || result.text() == text, "{behaviour}: an answer of another call");
            if result.is_error() { Some(result.text()) } else { None }
        });
        let failed = futures_util::future::join_all(calls).await;
        let failed: Vec<_> = failed.into_iter().flatten().collect();
        assert!(!is_good || failed.is_empty(), "{behaviour}: {failed:?}");
    }
    match chance.percent(80) {
        true => {
            let began = Instant::now();
            servers.close().await;
            // Neither the end of its input nor SIGTERM ends it. The clock counts whole milliseconds.
            let took = began.elapsed() + Duration::from_millis(10);
            assert!(behaviour != "stubborn" || took >= 2 * close, "a stubborn server ended within {took:?}");
        }
        false => {
            // What a program does that forgets to close them.
            drop(servers);
            let end = Instant::now() + SLACK;
            while !processes_with(mark).is_empty() && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_call_of_a_dead_server_fails_at_once_and_the_server_is_started_again() {
    let servers = start([("fake", server("dies"))]);
    let echo = crate::support::tool(&servers, "fake__echo").await;
    let result = call(&*echo, "one").await;
    assert!(result.text().contains("the server ended with exit code 9"), "{}", result.text());
    let began = Instant::now();
    until(&servers, "fake", |status| !matches!(status.state, archon_mcp::ServerState::Ready)).await;
    let result = call(&*echo, "two").await;
    assert!(result.is_error() && began.elapsed() < Duration::from_secs(10), "{}", result.text());
    until(&servers, "fake", |status| matches!(status.state, archon_mcp::ServerState::Ready)).await;
    servers.close().await;
}
