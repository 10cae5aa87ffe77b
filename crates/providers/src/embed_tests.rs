//! Tests of both protocols against a server on this machine.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used)]

use archon_testkit::{MockResponse, MockServer, RecordedRequest};
use archon_types::{Embedder, Json};
use expect_test::expect;
use serde_json::json;

use super::*;
use crate::{HttpOptions, Timeouts};

const KEY: &str = "canary-key";

type Make = fn(&str, EmbedderOptions) -> Result<Box<dyn Embedder>, SetupError>;

fn openai(url: &str, options: EmbedderOptions) -> Result<Box<dyn Embedder>, SetupError> {
    Ok(Box::new(OpenAiEmbedder::new(&format!("{url}/v1"), "text-embedding-3-small", 2, options)?))
}

fn gemini(url: &str, options: EmbedderOptions) -> Result<Box<dyn Embedder>, SetupError> {
    Ok(Box::new(GeminiEmbedder::new(url, "gemini-embedding-001", 2, options)?))
}

fn options() -> EmbedderOptions {
    let mut options = EmbedderOptions::default().with_api_key(KEY).with_header("x-team", "canary-team");
    options.batch = 2;
    options
}

fn texts(n: usize) -> Vec<String> {
    (0..n).map(|i| if i == 1 { String::new() } else { format!("text {i}") }).collect()
}

async fn ask(
    make: Make,
    options: EmbedderOptions,
    script: Vec<Json>,
    n: usize,
) -> (Vec<Vec<f32>>, Vec<RecordedRequest>) {
    let server = MockServer::start(script.iter().map(|body| MockResponse::json(200, body))).await;
    let vectors = make(&server.url(), options).unwrap().embed(&texts(n)).await.unwrap();
    (vectors, server.requests())
}

// spec: M-05
#[tokio::test]
async fn texts_are_sent_in_batches_and_vectors_come_in_their_order() {
    let item = |index: usize, v: f32| json!({"object": "embedding", "index": index, "embedding": [v, 0.5]});
    let script =
        vec![json!({"data": [item(1, 1.0), item(0, 0.0)], "model": "m"}), json!({"data": [item(0, 2.0)]})];
    let (vectors, requests) = ask(openai, options(), script, 3).await;
    assert_eq!(vectors, [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]]);
    expect![[r#"
        /v1/embeddings {"model":"text-embedding-3-small","input":["text 0"," "],"encoding_format":"float"}
        /v1/embeddings {"model":"text-embedding-3-small","input":["text 2"],"encoding_format":"float"}
    "#]]
    .assert_eq(&requests.iter().map(|r| format!("{} {}\n", r.path, r.text)).collect::<String>());
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(requests[1].connection, 0, "one connection is used again");

    let values = |v: f32| json!({"values": [v, 0.5]});
    let script =
        vec![json!({"embeddings": [values(0.0), values(1.0)]}), json!({"embeddings": [values(2.0)]})];
    let (vectors, requests) = ask(gemini, options().asking_for_dimensions(), script, 3).await;
    assert_eq!(vectors, [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]]);
    expect![[r#"
        /v1beta/models/gemini-embedding-001:batchEmbedContents {"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"text 0"}]},"outputDimensionality":2},{"model":"models/gemini-embedding-001","content":{"parts":[{"text":" "}]},"outputDimensionality":2}]}
        /v1beta/models/gemini-embedding-001:batchEmbedContents {"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"text 2"}]},"outputDimensionality":2}]}
    "#]]
        .assert_eq(&requests.iter().map(|r| format!("{} {}\n", r.path, r.text)).collect::<String>());
    assert_eq!(requests[0].header("x-goog-api-key"), Some(KEY));

    let (vectors, requests) = ask(gemini, options(), vec![], 0).await;
    assert!(vectors.is_empty() && requests.is_empty(), "nothing is asked about nothing");
}

#[tokio::test]
async fn an_id_names_the_model_and_the_length() {
    let embedder = openai("http://localhost", options()).unwrap();
    assert_eq!((embedder.id(), embedder.dimensions()), ("openai-compatible:text-embedding-3-small:2", 2));
    assert_eq!(gemini("http://localhost", options()).unwrap().id(), "gemini:gemini-embedding-001:2");
    assert!(openai("no-scheme", options()).is_err());
}

// spec: P-05, P-31
#[tokio::test]
async fn embedder_errors_do_not_contain_the_key() {
    let echo = format!("the key {KEY} and canary-team are wrong");
    let error = |status| MockResponse::json(status, &json!({"error": {"message": echo, "type": "t"}}));
    let mut table = String::new();
    for make in [openai as Make, gemini as Make] {
        let ok = |body: Json| MockResponse::json(200, &body);
        let script = [
            error(401),
            error(429).header("retry-after", "7"),
            error(500),
            error(200),
            MockResponse::new(502).header("content-type", "text/html").chunk(format!("<html>{echo}")),
            ok(json!({"data": [], "embeddings": []})),
            ok(json!({"data": [{"embedding": [1.0]}], "embeddings": [{"values": [1.0]}]})),
            MockResponse::new(200).chunk(echo.as_bytes()),
            MockResponse::new(200).chunk("{\"data\":").close(),
        ];
        let ways = script.len();
        let server = MockServer::start(script).await;
        let embedder = make(&server.url(), options()).unwrap();
        for _ in 0..ways {
            let error = embedder.embed(&texts(1)).await.unwrap_err();
            table += &format!("{error}\n");
            assert!(!format!("{error:?}").contains("canary"));
        }
    }
    expect![[r#"
        embedding with openai-compatible:text-embedding-3-small:2 failed: not authorised: the key **** and **** are wrong
        embedding with openai-compatible:text-embedding-3-small:2 failed: rate limited by the service: the key **** and **** are wrong
        embedding with openai-compatible:text-embedding-3-small:2 failed: the service is overloaded or failed (status 500): the key **** and **** are wrong
        embedding with openai-compatible:text-embedding-3-small:2 failed: the service refused the request (Other, status 0): the key **** and **** are wrong (status 200, application/json: {"error":{"message":"the key **** and **** are wrong","type":"t"}})
        embedding with openai-compatible:text-embedding-3-small:2 failed: the service is overloaded or failed (status 502): status 502, text/html: <html>the key **** and **** are wrong
        embedding with openai-compatible:text-embedding-3-small:2 failed: the service sent 0 vectors for 1 texts
        embedding with openai-compatible:text-embedding-3-small:2 failed: the service sent a vector of 1 dimensions instead of 2
        embedding with openai-compatible:text-embedding-3-small:2 failed: the service sent no list of vectors: expected ident at line 1 column 2 (status 200, no content type: the key **** and **** are wrong)
        embedding with openai-compatible:text-embedding-3-small:2 failed: network: request or response body error: error reading a body from connection: unexpected EOF during chunk size line
        embedding with gemini:gemini-embedding-001:2 failed: not authorised: the key **** and **** are wrong
        embedding with gemini:gemini-embedding-001:2 failed: rate limited by the service: the key **** and **** are wrong
        embedding with gemini:gemini-embedding-001:2 failed: the service is overloaded or failed (status 500): the key **** and **** are wrong
        embedding with gemini:gemini-embedding-001:2 failed: the service refused the request (Other, status 0): the key **** and **** are wrong (status 200, application/json: {"error":{"message":"the key **** and **** are wrong","type":"t"}})
        embedding with gemini:gemini-embedding-001:2 failed: the service is overloaded or failed (status 502): status 502, text/html: <html>the key **** and **** are wrong
        embedding with gemini:gemini-embedding-001:2 failed: the service sent 0 vectors for 1 texts
        embedding with gemini:gemini-embedding-001:2 failed: the service sent a vector of 1 dimensions instead of 2
        embedding with gemini:gemini-embedding-001:2 failed: the service sent no list of vectors: expected ident at line 1 column 2 (status 200, no content type: the key **** and **** are wrong)
        embedding with gemini:gemini-embedding-001:2 failed: network: request or response body error: error reading a body from connection: unexpected EOF during chunk size line
    "#]].assert_eq(&table);
    let shown =
        format!("{:?} {:?}", options(), OpenAiEmbedder::new("http://localhost", "m", 1, options()).unwrap());
    assert!(!shown.contains("canary"), "{shown}");
}

// spec: P-35
#[tokio::test]
async fn silence_is_a_timeout() {
    let quick = std::time::Duration::from_millis(40);
    for response in [MockResponse::new(200).hang(), MockResponse::new(200).chunk("{").hang()] {
        let server = MockServer::start([response]).await;
        let timeouts = Timeouts { first_byte: quick, idle: quick, ..Timeouts::default() };
        let http = HttpOptions::default().with_timeouts(timeouts);
        let embedder = openai(&server.url(), options().with_http(http)).unwrap();
        let error = embedder.embed(&texts(1)).await.unwrap_err().to_string();
        assert!(error.ends_with("timed out: no data came for 0.04 s"), "{error}");
        server.until_gone(1).await;
    }
}
