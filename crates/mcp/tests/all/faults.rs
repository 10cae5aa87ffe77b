//! Servers that misbehave in every way that we know, in a seeded order: no hang, no orphan, no mixed answers.

use std::time::{Duration, Instant};

use archon_mcp::{McpServer, McpTimeouts};
use archon_testkit::{Chance, McpScript, cases, first_seed};
use archon_types::Tool;
use serde_json::json;

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

/// The limit of each phase of a server that misbehaves.
const LIMIT: Duration = Duration::from_millis(400);
/// The limit of each phase of the others, whose calls must succeed on a busy machine, too.
const PATIENCE: Duration = Duration::from_secs(20);
/// The phases of a scenario: the handshake, the list, two rounds of calls, and the end.
const PHASES: u32 = 5;

/// Returns the most time that a scenario may take beyond the limits of its phases. `accept` runs on a quiet machine.
fn slack() -> Duration {
    Duration::from_secs(cases(20, 2))
}

// spec: MC-05, MC-08
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_server_cause_no_hang_no_orphan_and_no_answer_of_another_call() {
    let mut chance = Chance(first_seed());
    for case in 0..cases(2 * BEHAVIOURS.len() as u64, 1_000) {
        let behaviour = BEHAVIOURS[usize::try_from(case).unwrap() % BEHAVIOURS.len()];
        let mark = format!("fake-case-{}-{case}", std::process::id());
        let began = Instant::now();
        one(behaviour, &mark, &mut chance).await;
        assert!(began.elapsed() < PHASES * LIMIT + slack(), "{behaviour} took {:?}", began.elapsed());
        let left = processes_with(&mark);
        assert!(left.is_empty(), "{behaviour} leaves the processes {left:?}");
    }
}

/// Connects to a server, calls it a few times at once, then again, and closes it at some point.
async fn one(behaviour: &str, mark: &str, chance: &mut Chance) {
    let folder = tempfile::tempdir().unwrap();
    let grandchild = folder.path().join(mark);
    let mut settings = McpServer::stdio(program(), [behaviour, &grandchild.display().to_string()]);
    let is_good = ["well", "garbage", "stubborn", "grandchild", "foreign-id", "noisy"].contains(&behaviour);
    settings.timeouts = within(server(behaviour), if is_good { PATIENCE } else { LIMIT }).timeouts;
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
        // Answers that come late in the first round must not reach the calls of the second.
        for round in ["first", "second"] {
            let failed = failed_calls(&*echo, round, chance, behaviour).await;
            assert!(!is_good || failed.is_empty(), "{behaviour}: {failed:?}");
        }
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
            let end = Instant::now() + slack();
            while !processes_with(mark).is_empty() && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// Makes a few calls at once, and returns the texts of those that fail.
async fn failed_calls(echo: &dyn Tool, round: &str, chance: &mut Chance, behaviour: &str) -> Vec<String> {
    let texts: Vec<String> = (0..1 + chance.below(4)).map(|n| format!("{round} text {n}")).collect();
    // Large arguments fill the pipe of a server that does not read.
    let large = &"z".repeat(usize::try_from(chance.below(200_000)).unwrap());
    let calls = texts.iter().map(|text| async move {
        let text = format!("{text} {large}");
        let result = call(echo, &text).await;
        assert!(result.is_error() || result.text() == text, "{behaviour}: an answer of another call");
        if result.is_error() { Some(result.text()) } else { None }
    });
    let failed = futures_util::future::join_all(calls).await;
    failed.into_iter().flatten().collect()
}

#[tokio::test]
async fn open_calls_of_a_server_that_is_gone_fail_at_once_however_long_its_end_may_take() {
    let echo = json!({ "name": "echo", "description": "Echoes.", "inputSchema": { "type": "object" } });
    let closes_its_output = McpScript::new([echo]).on_call("exec >&-; sleep 600").to_string();
    for server in [server("dies"), McpServer::stdio("sh", ["-c", &closes_its_output])] {
        let mut timeouts = McpTimeouts::default();
        timeouts.close = Duration::from_secs(cases(1, 5));
        let servers = start([("fake", server.with_timeouts(timeouts))]);
        let echo = crate::support::tool(&servers, "fake__echo").await;
        let echo = &*echo;
        let began = Instant::now();
        let calls = ["one", "two", "three", "four"].map(|text| call(echo, text));
        let results = futures_util::future::join_all(calls).await;
        let took = began.elapsed();
        assert!(results.iter().all(archon_types::ToolResult::is_error), "{results:?}");
        assert!(took < Duration::from_secs(cases(10, 1)), "the calls failed after {took:?}: {results:?}");
        servers.close().await;
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
    assert!(result.is_error() && began.elapsed() < Duration::from_secs(cases(10, 1)), "{}", result.text());
    until(&servers, "fake", |status| matches!(status.state, archon_mcp::ServerState::Ready)).await;
    servers.close().await;
}

/// A server at a web address answers its first call in one of these ways, and the next ones as it should.
#[cfg(feature = "http")]
mod web {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use archon_testkit::{MockResponse, MockServer, RecordedRequest};

    use super::*;
    use crate::web_servers::{answer, reply};

    const BEHAVIOURS: &[&str] = &[
        "garbage",
        "garbage-events",
        "huge",
        "silent",
        "silent-events",
        "dies",
        "half",
        "foreign-id",
        "foreign-answer-first",
    ];
    /// The longest message that the client reads, in bytes.
    const MAX_MESSAGE: usize = 1 << 20;

    fn misbehave(behaviour: &str, request: &RecordedRequest) -> MockResponse {
        let json = || MockResponse::new(200).header("content-type", "application/json");
        let result = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let mut foreign = reply(request, "result", result("of nobody"));
        foreign["id"] = json!(987_654);
        match behaviour {
            "garbage" => json().chunk("not json"),
            "garbage-events" => MockResponse::events(["not json", "{\"a\":1}", "[]"]),
            "huge" => {
                MockResponse::json(200, &reply(request, "result", result(&"x".repeat(4 * MAX_MESSAGE))))
            }
            "silent" => json().hang(),
            "silent-events" => MockResponse::events::<&str>([]).hang(),
            "dies" => MockResponse::nothing(),
            "half" => json().chunk("{\"jsonrpc\":\"2.0\",").close(),
            "foreign-id" => MockResponse::json(200, &foreign),
            _ => {
                let own = request.body["params"]["arguments"]["text"].as_str().unwrap_or_default();
                let own = reply(request, "result", result(own));
                MockResponse::events([foreign.to_string(), own.to_string()])
            }
        }
    }

    // spec: MC-06, MC-08
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn faults_of_a_server_at_a_web_address_cause_no_hang_and_no_answer_of_another_call() {
        let mut chance = Chance(first_seed());
        for case in 0..cases(BEHAVIOURS.len() as u64, 100) {
            let behaviour = BEHAVIOURS[usize::try_from(case).unwrap() % BEHAVIOURS.len()];
            let calls = AtomicUsize::new(0);
            let web = MockServer::answering(move |request| {
                let is_call = request.body["method"] == "tools/call";
                match is_call && calls.fetch_add(1, Ordering::Relaxed) == 0 {
                    true => misbehave(behaviour, request),
                    false => answer(request),
                }
            });
            let web = web.await;
            let began = Instant::now();
            let mut settings = McpServer::http(format!("{}/mcp", web.url()));
            settings.max_message = MAX_MESSAGE;
            settings.timeouts = within(server("well"), PATIENCE).timeouts;
            settings.timeouts.call = LIMIT;
            let servers = start([("web", settings)]);
            let echo = crate::support::tool(&servers, "web__echo").await;
            for round in ["first", "second"] {
                failed_calls(&*echo, round, &mut chance, behaviour).await;
            }
            servers.close().await;
            assert!(began.elapsed() < PHASES * LIMIT + slack(), "{behaviour} took {:?}", began.elapsed());
        }
    }
}
