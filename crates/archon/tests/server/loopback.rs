//! A real server: over the loopback interface and a Unix socket, its end, and its next start.

use std::{sync::Arc, time::Duration};

use archon::{
    RunId,
    server::{
        AccessToken, AllowedHosts, ConnectionOptions, Role, Scope, ServeError, ServeOptions, Server,
        ServerOptions, serve,
    },
    types::{AnswerRuns, CancellationToken, RunStatus, StartRuns},
};
use archon_testkit::Ended;
use futures_util::StreamExt;
use reqwest::{Client, RequestBuilder};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::world::{Sent, World, as_sent, records};

/// A server of a process.
struct Process {
    runs: archon::Runs,
    server: Server,
    port: u16,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Process {
    async fn start(world: &World) -> Self {
        let runs = world.runs();
        runs.resume_unfinished(None).await.unwrap().all_ok().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = server(&runs, AllowedHosts::of_address(address, []));
        let (router, end) = (server.router(), server.end().clone());
        let served =
            tokio::spawn(async move { serve(router, listener, &ServeOptions::default(), &end).await });
        Self { runs, server, port: address.port(), served }
    }

    fn request(&self, method: reqwest::Method, path: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        Client::new()
            .request(method, url)
            .header("authorization", "Bearer token-1")
            .header("content-type", "application/json")
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.request(reqwest::Method::GET, path)
    }

    fn post(&self, path: &str, body: &'static str) -> RequestBuilder {
        self.request(reqwest::Method::POST, path).body(body)
    }

    async fn end(self) {
        self.server.end().cancel();
        self.served.await.unwrap().unwrap();
    }
}

fn server(runs: &archon::Runs, hosts: AllowedHosts) -> Server {
    let token = AccessToken::new("ann", "token-1", Role::Operator, Scope::new(Arc::new(runs.clone())));
    Server::new(hosts, [token], Arc::new(archon::SystemClock), ServerOptions::default())
}

/// Reads a whole stream of events.
async fn events(request: RequestBuilder) -> Vec<Sent> {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();
    text.split_inclusive("\n\n").filter_map(Sent::read).collect()
}

// spec: EX-09
#[tokio::test]
async fn server_that_ends_leaves_its_runs_and_the_next_goes_on_with_them_and_their_streams() {
    let world = World::new();
    let first = Process::start(&world).await;
    let started = first.post("/v1/runs", r#"{"text":"step Paris"}"#).send().await.unwrap();
    assert_eq!(started.status(), 201);
    let started: serde_json::Value = serde_json::from_str(&started.text().await.unwrap()).unwrap();
    let run = RunId::new(started["run"].as_str().unwrap());
    drop(first.runs.reply(&run).await);
    let path = format!("/v1/runs/{run}/events");
    // The stream of the suspended run is open until the server ends.
    let mut stream = first.get(&path).send().await.unwrap().bytes_stream();
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("\"suspended\"") {
        bytes.extend(stream.next().await.unwrap().unwrap());
    }
    first.end().await;
    while let Some(Ok(more)) = stream.next().await {
        bytes.extend(more);
    }
    let text = String::from_utf8(bytes).unwrap();
    let seen: Vec<Sent> = text.split_inclusive("\n\n").filter_map(Sent::read).collect();
    assert!(seen.iter().all(|sent| sent.name == "record"), "{seen:?}");

    let next = Process::start(&world).await;
    assert_eq!(next.runs.get(&run).await.unwrap().status, RunStatus::Suspended);
    let question = next.runs.questions(None).await.unwrap().remove(0).request.request_id;
    let answer = next.post(&format!("/v1/approvals/{question}/answer"), r#"{"answer":"approve"}"#);
    assert_eq!(answer.send().await.unwrap().status(), 200);
    let last = seen.last().and_then(|sent| sent.id).unwrap();
    let rest = events(next.get(&path).header("last-event-id", last.to_string())).await;
    assert_eq!([seen, records(&rest)].concat(), as_sent(&run, &world.log(&run).await));
    assert_eq!((next.runs.reply(&run).await.ended().is_finished(), world.steps()), (true, 1));
    next.end().await;
}

#[tokio::test]
async fn requests_at_once_are_served_over_several_connections() {
    let world = World::new();
    let process = Process::start(&world).await;
    let run = process.runs.start(archon::types::StartRun::new("hello")).await.unwrap().run;
    process.runs.reply(&run).await.ended();
    let log = as_sent(&run, &world.log(&run).await);
    let path = format!("/v1/runs/{run}/events");
    let all = futures_util::future::join_all((0..20).map(|_| events(process.get(&path)))).await;
    for seen in all {
        assert_eq!(records(&seen), log);
    }
    process.end().await;
}

#[tokio::test]
async fn address_beyond_loopback_needs_a_proxy() {
    let runs = World::new().runs();
    let end = CancellationToken::new();
    end.cancel();
    let serve_with = async |options: ServeOptions| {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        serve(server(&runs, AllowedHosts::new(["agents.example"])).router(), listener, &options, &end).await
    };
    assert!(matches!(serve_with(ServeOptions::default()).await, Err(ServeError::BeyondLoopback(_))));
    let connections = ConnectionOptions::default().with_grace(Duration::ZERO);
    assert!(serve_with(ServeOptions::default().with_proxy().with_connections(connections)).await.is_ok());
}

#[cfg(unix)]
#[tokio::test]
async fn unix_socket_is_served() {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{UnixListener, UnixStream},
    };

    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("archon.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = server(&World::new().runs(), AllowedHosts::of_socket());
    let (router, end) = (server.router(), server.end().clone());
    let served = tokio::spawn(async move { serve(router, listener, &ServeOptions::default(), &end).await });
    let mut stream = UnixStream::connect(&socket).await.unwrap();
    let request = "GET /v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-1\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains("\"ann\""), "{response}");
    server.end().cancel();
    served.await.unwrap().unwrap();
}
