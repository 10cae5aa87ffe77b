//! web_fetch and web_search, against a server on this machine.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use archon_tools::{
    EngineOptions, ToolEngine, WebOptions,
    builtin::{BraveSearch, OfflineSearch, SearchHit, WebFetch, WebSearch},
};
use archon_types::{Json, Secret, Tool, ToolCall};
use expect_test::expect;
use serde_json::json;

use crate::fixture::{context, engine, run_call};

/// Answers by path, and keeps what was asked.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `answer` makes of a request's first line a status, headers and a body.
    fn start(answer: impl Fn(&str) -> (u16, String, Vec<u8>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = read_request(&stream);
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                kept.lock().unwrap().push(request);
                let (status, headers, body) = answer(&path);
                let head = format!(
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&body));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn read_request(stream: &TcpStream) -> String {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn fetching(servers: &[&Server]) -> ToolEngine {
    let mut options = WebOptions::default();
    options.private_servers = servers.iter().map(|server| server.address.clone()).collect();
    (options.max_bytes, options.max_redirects) = (100_000, 3);
    engine([Arc::new(WebFetch::new(options)) as Arc<dyn Tool>])
        .with_options(EngineOptions::default().granting(["network"]))
}

async fn fetch(engine: &ToolEngine, arguments: Json) -> String {
    let result = run_call(engine, &ToolCall::new("c", "web_fetch", arguments), &context()).await;
    format!("{}: {}", result.metadata.get("error_type").and_then(Json::as_str).unwrap_or("ok"), result.text())
}

// spec: TE-48
#[tokio::test]
async fn a_page_is_fetched_as_text() {
    let server = Server::start(|path| {
        match path {
        "/page" => (
            200,
            "content-type: text/html; charset=utf-8\r\n".to_owned(),
            b"<html><head><title>T</title><script>var x = 1;</script><style>p {}</style></head><body><h1>Ships</h1>\
              <p>The <b>Maria</b> sails &amp; sails.</p><ul><li>one</li><li>two</li></ul></body></html>"
                .to_vec(),
        ),
        "/json" => (200, "content-type: application/json\r\n".to_owned(), b"{\"a\": [1]}".to_vec()),
        "/picture" => (200, "content-type: image/png\r\n".to_owned(), b"\x89PNG".to_vec()),
        "/long" => (200, "content-type: text/plain\r\n".to_owned(), "\u{e4}".repeat(80_000).into_bytes()),
        "/moved" => (302, "location: /json\r\n".to_owned(), Vec::new()),
        "/round" => (302, "location: /round\r\n".to_owned(), Vec::new()),
        "/deep" => (200, "content-type: text/html\r\n".to_owned(), "<div>".repeat(20_000).into_bytes()),
        "/broken" => (500, "content-type: text/plain\r\n".to_owned(), b"out of order".to_vec()),
        _ => (404, String::new(), Vec::new()),
    }
    });
    let engine = fetching(&[&server]);
    let get = async |path: &str| {
        let text = fetch(&engine, json!({ "url": server.url(path) })).await;
        text.replace(&server.address, "SERVER")
    };
    expect![[r#"
        ok: Content of http://SERVER/page:

        # Ships

        The **Maria** sails & sails.
        * one
        * two
    "#]]
    .assert_eq(&get("/page").await);
    assert_eq!(get("/json").await, "ok: Content of http://SERVER/json:\n\n{\"a\": [1]}");
    assert_eq!(get("/moved").await, "ok: Content of http://SERVER/json:\n\n{\"a\": [1]}");
    assert_eq!(
        get("/picture").await,
        "invalid_parameters: Error: http://SERVER/picture is image/png of 4 bytes. Only pages of text can be fetched."
    );
    assert_eq!(get("/round").await, "execution_error: Error: 127.0.0.1 redirects more than 3 times.");
    assert_eq!(
        get("/gone").await,
        "not_found: Error: http://SERVER/gone does not exist (HTTP 404). Check the address, or search for the page."
    );
    assert_eq!(
        get("/broken").await,
        "execution_error: Error: http://SERVER/broken answered with HTTP 500: out of order"
    );
    assert_eq!(
        get("/deep").await,
        "execution_error: Error: http://SERVER/deep is nested too deeply to be converted to text."
    );
    let long = get("/long").await;
    assert!(
        long.ends_with("\u{e4}\n(There is more. Go on with start=20000.)"),
        "{}",
        &long[long.len() - 100..]
    );
    let end = fetch(&engine, json!({ "url": server.url("/long"), "start": 49_990, "max_length": 100 })).await;
    assert!(end.ends_with("\u{e4}\n(Only the first 100000 bytes were read.)"), "{end}");
}

// spec: TE-48
#[tokio::test]
async fn web_fetch_never_requests_local_addresses_even_after_redirects() {
    let inner = Server::start(|_| (200, "content-type: text/plain\r\n".to_owned(), b"the treasure".to_vec()));
    let port = inner.address.rsplit_once(':').unwrap().1.to_owned();
    let to = port.clone();
    let outer = Server::start(move |path| {
        let host = path.trim_start_matches('/');
        (302, format!("location: http://{host}:{to}/secret\r\n"), Vec::new())
    });
    let engine = fetching(&[&outer]);
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        for url in [format!("http://{host}:{port}/secret"), outer.url(&format!("/{host}"))] {
            let text = fetch(&engine, json!({ "url": url })).await;
            let is_private =
                text.starts_with("permission_denied: Error: ") && text.contains("not a public address");
            let is_left = text.contains("redirects to another server, and the redirect was not followed");
            assert!(is_private || is_left, "{url}: {text}");
        }
    }
    assert!(inner.asked.lock().unwrap().is_empty(), "nobody came");
    let file = fetch(&engine, json!({ "url": "file:///etc/passwd" })).await;
    assert_eq!(file, "invalid_parameters: Error: Only http and https can be fetched, not file:.");
    let without = engine.clone().with_options(EngineOptions::default());
    assert!(fetch(&without, json!({ "url": outer.url("/") })).await.contains("needs the permission network"));
}

// spec: AP-11, TE-48
#[tokio::test]
async fn a_redirect_to_another_server_is_another_question() {
    let inner = Server::start(|_| (200, "content-type: text/plain\r\n".to_owned(), b"elsewhere".to_vec()));
    let to = inner.url("/page");
    let outer = Server::start(move |_| (302, format!("location: {to}\r\n"), Vec::new()));
    let engine = fetching(&[&outer, &inner]);
    let text = fetch(&engine, json!({ "url": outer.url("/") })).await;
    assert!(text.contains(&format!("was not followed: {}", inner.url("/page"))), "{text}");
    assert!(inner.asked.lock().unwrap().is_empty(), "nobody came");
    let tool = WebFetch::new(WebOptions::default());
    for written in ["HTTPS://Docs.RS:443/x", " https://docs.rs/x", "https://%64ocs.rs/x"] {
        let subject = tool.subject(&json!({ "url": written }));
        assert_eq!(subject, archon_types::Subject::Urls(vec!["https://docs.rs/x".into()]), "{written}");
    }
}

async fn search(backend: impl archon_tools::builtin::SearchBackend + 'static, arguments: Json) -> String {
    let engine = engine([Arc::new(WebSearch::new(backend)) as Arc<dyn Tool>])
        .with_options(EngineOptions::default().granting(["network"]));
    run_call(&engine, &ToolCall::new("c", "web_search", arguments), &context()).await.text()
}

fn hit(title: &str, snippet: &str) -> SearchHit {
    let url = format!("https://example.com/{title}");
    SearchHit { title: title.to_owned(), snippet: snippet.to_owned(), url }
}

// spec: TE-46
#[tokio::test]
async fn without_a_network_known_pages_are_found_by_their_words() {
    let pages = || {
        OfflineSearch::new([
            hit("ships", "about ships"),
            hit("rust", "Rust 1.95 is the latest"),
            hit("tea", ""),
        ])
    };
    expect![[r#"
        1. rust
           https://example.com/rust
           Rust 1.95 is the latest
        2. ships
           https://example.com/ships
           about ships"#]]
    .assert_eq(&search(pages(), json!({ "query": "latest Rust ships" })).await);
    assert_eq!(search(pages(), json!({ "query": "coffee" })).await, "No pages found for 'coffee'.");
    assert_eq!(
        search(pages(), json!({ "query": " " })).await,
        "Error: The query is empty. Say what to look for."
    );
    let many = OfflineSearch::new((0..9).map(|n| hit(&n.to_string(), "same")));
    assert_eq!(search(many, json!({ "query": "same", "num_results": 50 })).await.lines().count(), 15);
}

// spec: TE-46, CR-05
#[tokio::test]
async fn web_search_sends_its_key_secretly_and_reports_failures() {
    let answer = json!({ "web": { "results": [
        { "title": "A <strong>ship</strong>", "description": "It sails by k-12345678.", "url": "https://example.com/a", "age": 1 },
    ] } });
    let server = Server::start(move |path| {
        let status = if path.contains("q=busy") {
            429
        } else if path.contains("q=denied") {
            401
        } else {
            200
        };
        (status, "content-type: application/json\r\n".to_owned(), answer.to_string().into_bytes())
    });
    let brave = || {
        let mut options = WebOptions::default();
        options.private_servers = vec![server.address.clone()];
        BraveSearch::at(server.url("/search"), Secret::new("k-12345678".to_owned()), options).unwrap()
    };
    assert_eq!(
        search(brave(), json!({ "query": "a ship & more", "num_results": 3 })).await,
        "1. A ship\n   https://example.com/a\n   It sails by ****."
    );
    let asked = server.asked.lock().unwrap()[0].to_lowercase();
    assert!(asked.starts_with("get /search?q=a+ship+%26+more&count=3 http/1.1"), "{asked}");
    assert!(asked.contains("x-subscription-token: k-12345678"), "{asked}");
    assert_eq!(
        search(brave(), json!({ "query": "denied" })).await,
        "Error: The search service refused the key. Go on without it; the person can correct the key."
    );
    assert!(!format!("{:?}", brave()).contains("k-12345678"));
}
