//! No key comes into a log, whatever goes wrong: everything that anybody here writes to `tracing` and to `log` is
//! collected, at the most talkative level, while each protocol fails in each way.
//!
//! A program of its own, because a process has one place for logs.

// A test that cannot go on panics, its helpers included.
#![allow(clippy::unwrap_used)]

use std::{
    future::poll_fn,
    io::{self, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use archon_providers::{ConnectOptions, HttpOptions, PROTOCOLS, Timeouts, resolve};
use archon_testkit::{MockResponse, MockServer};
use archon_types::{CancellationToken, Message, ProviderError, Request, Timestamp};
use serde_json::json;

const KEY: &str = "canary-key-1234567890";
const HEADER: &str = "canary-header-1234567890";

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        writeln!(Lines, "{} log {} {}", record.level(), record.target(), record.args()).unwrap();
    }

    fn flush(&self) {}
}

/// What the environment says: secrets are all the canary.
fn variable(name: &str) -> Option<String> {
    let value = match name {
        "GOOGLE_CLOUD_PROJECT" => "project",
        "GOOGLE_CLOUD_LOCATION" | "GOOGLE_CLOUD_REGION" | "AWS_REGION" | "AWS_DEFAULT_REGION" => "us-east-1",
        "OPENAI_API_VERSION" => return None,
        _ => KEY,
    };
    Some(value.to_owned())
}

/// Every way to fail; each repeats what it was sent, as some gateways do.
fn failures() -> Vec<MockResponse> {
    let echo = |status| {
        let text = format!("the key {KEY} and the header {HEADER} are wrong");
        MockResponse::json(status, &json!({"error": {"message": text, "type": KEY, "code": HEADER}}))
    };
    let statuses = [400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 529];
    let mut all: Vec<_> = statuses.into_iter().map(echo).collect();
    all.extend([
        echo(200),
        MockResponse::new(502).header("content-type", "text/html").chunk(format!("<html>{KEY} {HEADER}")),
        MockResponse::new(200).header("content-type", "text/html").chunk(format!("<html>{KEY} {HEADER}")),
        MockResponse::new(302).header("location", &format!("http://h/?key={KEY}")),
        MockResponse::events([format!(r#"{{"error":{{"message":"{KEY} {HEADER}"}}}}"#)]),
        MockResponse::events([format!("garbage {KEY} {HEADER}")]),
        MockResponse::new(200).header("content-type", "application/vnd.amazon.eventstream").chunk(KEY),
        MockResponse::sse(format!("data: {KEY}")).close(),
        MockResponse::new(401).header("x-echo", KEY).chunk(KEY).close(),
        MockResponse::sse(format!(": {KEY}\n\n")).hang(),
        MockResponse::nothing(),
    ]);
    all
}

/// What is told of the failure.
async fn fails(model: &str, options: ConnectOptions) -> String {
    let resolved = resolve(model, variable, options).unwrap();
    let request = Request::new(resolved.model.as_str(), vec![Message::user("hi", Timestamp::default())]);
    let mut events = resolved.provider.stream(request, CancellationToken::new());
    loop {
        match poll_fn(|cx| events.as_mut().poll_next(cx)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let error: ProviderError = error;
                return format!("{error} {error:?} {:?}", resolved.provider.id());
            }
            None => panic!("{model} did not fail"),
        }
    }
}

// spec: P-05, P-31
#[tokio::test]
async fn no_log_and_no_error_holds_a_key() {
    let lines = || Lines;
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(lines);
    tracing::subscriber::set_global_default(subscriber.with_ansi(false).finish()).unwrap();
    log::set_logger(&Lines).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let mut timeouts = Timeouts::default();
    timeouts.idle = Duration::from_millis(50);
    let (mut protocols, mut shown) = (0, String::new());
    for protocol in PROTOCOLS {
        let mut options = ConnectOptions::default().with_header("x-team", HEADER);
        options.http = HttpOptions::default().with_timeouts(timeouts);
        let server = MockServer::start(failures()).await;
        let model = format!("{}@{}/v1:m", protocol.name, server.url());
        if let Err(error) = resolve(&model, variable, options.clone()) {
            assert!(error.to_string().contains("feature"), "{error}");
            continue;
        }
        protocols += 1;
        for _ in failures() {
            shown += &fails(&model, options.clone()).await;
            shown.push('\n');
        }
        drop(server);
        shown += &fails(&model, options).await;
    }
    let lines = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
    assert!(
        protocols >= 1 && lines.contains("log reqwest") && lines.contains("TRACE"),
        "{protocols}: {lines}"
    );
    for text in [&shown, &lines] {
        let found = text.lines().find(|line| line.contains("canary"));
        assert_eq!(found, None);
    }
}
