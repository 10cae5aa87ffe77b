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

use archon_providers::{
    ConnectOptions, EmbedderOptions, HttpOptions, OpenAiEmbedder, PROTOCOLS, Protocol, Timeouts, resolve,
};
use archon_testkit::{MockResponse, MockServer};
use archon_types::{CancellationToken, Embedder, Message, ModelEvent, Request, Timestamp};
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

/// The variables of the environment; every secret is the canary.
fn variable(name: &str) -> Option<String> {
    let value = match name {
        "GOOGLE_CLOUD_PROJECT" => "project",
        "GOOGLE_CLOUD_LOCATION" | "GOOGLE_CLOUD_REGION" | "AWS_REGION" | "AWS_DEFAULT_REGION" => "us-east-1",
        // Names the key and opens nothing; it is sent as it is.
        "AWS_ACCESS_KEY_ID" => "AKIDEXAMPLE",
        "OPENAI_API_VERSION" => return None,
        _ => KEY,
    };
    Some(value.to_owned())
}

/// The same without the protocol's first key: another is used then, and perhaps in another way.
fn other_variable(protocol: &Protocol) -> impl Fn(&str) -> Option<String> {
    move |name| variable(name).filter(|_| Some(&name) != protocol.key_variables.first())
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
        // The key is cut where the text is.
        MockResponse::new(502).chunk(format!("{} {KEY}", "x".repeat(190))),
        MockResponse::sse(format!("{} {KEY}", "x".repeat(190))),
        MockResponse::json(200, &json!({"x": "x".repeat(185), "y": KEY})),
        MockResponse::new(302).header("location", &format!("http://h/?key={KEY}")),
        MockResponse::events([format!(r#"{{"error":{{"message":"{KEY} {HEADER}"}}}}"#)]),
        MockResponse::events([format!("garbage {KEY} {HEADER}")]),
        MockResponse::new(200).header("content-type", "application/vnd.amazon.eventstream").chunk(KEY),
        MockResponse::sse(format!("data: {KEY}")).close(),
        MockResponse::new(401).header("x-echo", KEY).chunk(KEY).close(),
        MockResponse::sse(format!(": {KEY}\nid: {KEY}\n\n")).hang(),
        MockResponse::nothing(),
    ]);
    all
}

/// Answers that the service stopped, and why, in each protocol's words.
fn stopped() -> Vec<MockResponse> {
    let said = format!("{KEY} and {HEADER} are not to be spoken of");
    let claude = json!({"type": "message", "content": [], "stop_reason": "refusal",
        "stop_details": {"explanation": said}});
    let gemini = json!({"candidates": [{"finishReason": "SAFETY", "finishMessage": said}]});
    let chat = json!({"choices": [{"message": {"refusal": said}, "finish_reason": "content_filter"}]});
    let responses = json!({"object": "response", "status": "failed", "error": {"message": said}});
    [claude, gemini, chat, responses].iter().map(|body| MockResponse::json(200, body)).collect()
}

/// Returns the text of the failure.
async fn fails(model: &str, variable: impl Fn(&str) -> Option<String>, options: ConnectOptions) -> String {
    let resolved = resolve(model, variable, options).unwrap();
    let request = Request::new(resolved.model.as_str(), vec![Message::user("hi", Timestamp::default())]);
    let mut events = resolved.provider.stream(request, CancellationToken::new());
    loop {
        match poll_fn(|cx| events.as_mut().poll_next(cx)).await {
            Some(Ok(ModelEvent::Done(message))) => {
                return message.error_message.unwrap_or_else(|| panic!("{model} did not fail"));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return format!("{error} {error:?} {:?}", resolved.provider.id()),
            None => panic!("{model} did not end"),
        }
    }
}

async fn cannot_embed(embedder: &dyn Embedder) -> String {
    let error = embedder.embed(&["hi".to_owned()]).await.unwrap_err();
    format!("{error} {error:?} {:?}", embedder.id())
}

/// The embedders of this build.
fn embedders(url: &str, options: &ConnectOptions) -> Vec<Box<dyn Embedder>> {
    let options = EmbedderOptions::default().with_connect(options.clone().with_api_key(KEY));
    let openai = OpenAiEmbedder::new(url, "m", 2, options.clone()).unwrap();
    #[allow(unused_mut, reason = "a build may hold one only")]
    let mut all: Vec<Box<dyn Embedder>> = vec![Box::new(openai)];
    #[cfg(feature = "gemini")]
    all.push(Box::new(archon_providers::GeminiEmbedder::new(url, "m", 2, options).unwrap()));
    all
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
    let mut options = ConnectOptions::default().with_header("x-team", HEADER);
    options.http = HttpOptions::default().with_timeouts(timeouts);
    let (mut protocols, mut shown) = (0, String::new());
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.is_built()) {
        protocols += 1;
        let all = || failures().into_iter().chain(stopped());
        let server = MockServer::start(all().chain(failures())).await;
        let model = format!("{}@{}/v1:m", protocol.name, server.url());
        for _ in all() {
            shown += &fails(&model, variable, options.clone()).await;
            shown.push('\n');
        }
        // Without any key there is nothing to hide.
        for _ in failures().into_iter().filter(|_| protocol.key_variables.len() > 1) {
            shown += &fails(&model, other_variable(protocol), options.clone()).await;
            shown.push('\n');
        }
        drop(server);
        shown += &fails(&model, variable, options.clone()).await;
    }
    // Through a proxy that repeats its password.
    let proxy = MockServer::start([MockResponse::new(407).chunk(KEY), MockResponse::nothing()]).await;
    let mut proxied = options.clone();
    proxied.http.allow_plain_http = true;
    proxied.http = proxied.http.with_proxy(proxy.url().replace("http://", &format!("http://me:{KEY}@")));
    for _ in 0..2 {
        shown += &fails("openai-compatible@http://service.invalid/v1:m", |_| None, proxied.clone()).await;
    }
    for which in 0..embedders("http://localhost", &options).len() {
        let server = MockServer::start(failures()).await;
        let embedder = embedders(&server.url(), &options).swap_remove(which);
        for _ in failures() {
            shown += &cannot_embed(&*embedder).await;
            shown.push('\n');
        }
        drop(server);
        shown += &cannot_embed(&*embedder).await;
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
