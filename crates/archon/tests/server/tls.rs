//! A server with TLS of its own: real handshakes, clients that fail them, and the cookie.

use std::{sync::Arc, time::Duration};

use archon::{
    RunId,
    server::{
        AccessToken, AllowedHosts, ConnectionOptions, Role, Scope, ServeError, ServeOptions, Server,
        ServerOptions, TlsIdentity, serve,
    },
    types::StartRuns,
};
use archon_testkit::Ended;
use reqwest::{Certificate, Client, ClientBuilder, redirect::Policy};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::world::{Sent, World, as_sent, records};

// Made by make.sh beside it.
const CERTIFICATE: &[u8] = include_bytes!("../../../http-access/tests/tls/localhost.pem");
const KEY: &[u8] = include_bytes!("../../../http-access/tests/tls/localhost.key");

/// A server at an address that other machines reach.
struct Process {
    world: World,
    runs: archon::Runs,
    server: Server,
    port: u16,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Process {
    async fn start(connections: ConnectionOptions) -> Self {
        let world = World::new();
        let runs = world.runs();
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let token =
            AccessToken::new("ann", "token-1", Role::Operator, Scope::new(Arc::new(runs.clone()))).unwrap();
        let (hosts, clock) = (AllowedHosts::of_address(address, []), Arc::new(archon::SystemClock));
        let server = Server::new(hosts, [token], clock, ServerOptions::default());
        let identity = TlsIdentity::from_pem(CERTIFICATE, KEY).unwrap();
        let options = ServeOptions::default().with_tls(identity).with_connections(connections);
        let (router, end) = (server.router(), server.end().clone());
        let served = tokio::spawn(async move { serve(router, listener, &options, &end).await });
        Self { world, runs, server, port: address.port(), served }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the status of a request; `None` if there is no response.
    async fn status(&self, client: ClientBuilder) -> Option<u16> {
        let client = client.no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
        let sent = client.get(self.url("/v1/me")).bearer_auth("token-1").send().await;
        sent.ok().map(|response| response.status().as_u16())
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    async fn end(self) {
        self.server.end().cancel();
        self.served.await.unwrap().unwrap();
    }
}

/// A client that trusts the certificate of the tests, and nothing else.
fn client() -> ClientBuilder {
    Client::builder().tls_certs_only([Certificate::from_pem(CERTIFICATE).unwrap()])
}

// spec: EX-11
#[tokio::test]
async fn serve_with_tls_beyond_loopback_answers_and_streams() {
    let process = Process::start(ConnectionOptions::default()).await;
    let client = client().no_proxy().build().unwrap();
    let start = client.post(process.url("/v1/runs")).bearer_auth("token-1");
    let started = start.header("content-type", "application/json").body(r#"{"text":"hello"}"#);
    let started = started.send().await.unwrap();
    assert_eq!((started.status().as_u16(), started.version()), (201, reqwest::Version::HTTP_11));
    let started: serde_json::Value = serde_json::from_str(&started.text().await.unwrap()).unwrap();
    let run = RunId::new(started["run"].as_str().unwrap());
    process.runs.reply(&run).await.ended();
    let events = client.get(process.url(&format!("/v1/runs/{run}/events"))).bearer_auth("token-1");
    let text = events.send().await.unwrap().text().await.unwrap();
    let seen: Vec<Sent> = text.split_inclusive("\n\n").filter_map(Sent::read).collect();
    assert_eq!(records(&seen), as_sent(&run, &process.world.log(&run).await));
    process.end().await;
}

#[tokio::test]
async fn client_that_fails_the_handshake_gets_no_response_and_harms_nobody() {
    let process = Process::start(ConnectionOptions::default()).await;
    assert_eq!(process.status(Client::builder()).await, None, "the certificate is not trusted");
    assert_eq!(process.status(client().http2_prior_knowledge()).await, None, "the server speaks no HTTP/2");
    let mut plain = process.connect().await;
    plain.write_all(b"GET /v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut response = Vec::new();
    // The connection may also be reset.
    let _ = plain.read_to_end(&mut response).await;
    assert!(!response.starts_with(b"HTTP/"), "{response:?}");
    assert_eq!(process.status(client()).await, Some(200));
    process.end().await;
}

#[tokio::test]
async fn stalled_handshake_keeps_neither_others_nor_the_end_waiting() {
    let process = Process::start(ConnectionOptions::default().with_grace(Duration::from_secs(60))).await;
    let mut stalled = Vec::new();
    for _ in 0..100 {
        stalled.push(process.connect().await);
    }
    assert_eq!(process.status(client()).await, Some(200));
    tokio::time::timeout(Duration::from_secs(8), process.end()).await.unwrap();
}

#[tokio::test]
async fn stalled_handshake_ends_after_its_time_and_makes_room() {
    let limits = ConnectionOptions::default().with_max_connections(1);
    let process = Process::start(limits.with_handshake(Duration::from_millis(100))).await;
    let mut stalled = process.connect().await;
    // The one connection is taken until the handshake has failed.
    assert_eq!(process.status(client()).await, Some(200));
    let mut rest = Vec::new();
    let _ = stalled.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
    process.end().await;
}

#[tokio::test]
async fn cookie_over_tls_is_secure() {
    let process = Process::start(ConnectionOptions::default()).await;
    let client = client().no_proxy().redirect(Policy::none()).build().unwrap();
    let link = process.server.one_time_link("ann").unwrap();
    let signed_in = client.get(process.url(&link)).send().await.unwrap();
    let sign_out = client.post(process.url("/v1/sign-out")).bearer_auth("token-1");
    let signed_out = sign_out.header("content-type", "application/json").send().await.unwrap();
    for (response, status) in [(signed_in, 303), (signed_out, 204)] {
        assert_eq!(response.status().as_u16(), status);
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.starts_with("archon-") && cookie.ends_with("; Secure"), "{cookie}");
    }
    process.end().await;
}
