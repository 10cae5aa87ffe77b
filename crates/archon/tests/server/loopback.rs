//! A real server: over the loopback interface and a Unix socket, its end, and its next start.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    RunId, Runs,
    server::{
        AccessToken, AllowedHosts, ConnectionOptions, Role, Scope, ServeError, ServeOptions, Server,
        ServerOptions, serve,
    },
    types::{
        AnswerRuns, BoxStream, CancellationToken, Content, ContextConfig, ExecutionLimits, ModelEvent,
        Provider, ProviderError, Request, RunStatus, StartRun, StartRuns, ToolCall, Usage,
    },
};
use archon_testkit::{Ended, FnProvider};
use futures_util::{StreamExt, stream};
use reqwest::{Client, RequestBuilder};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinHandle,
};

use crate::{
    events::{end, texts},
    world::{Sent, World, as_sent, records},
};

/// A server of a process.
struct Process {
    runs: Runs,
    server: Server,
    port: u16,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Process {
    async fn start(world: &World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::over(world.runs(), listener).await
    }

    async fn over(runs: Runs, listener: TcpListener) -> Self {
        runs.resume_unfinished(None).await.unwrap().all_ok().unwrap();
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

fn server(runs: &Runs, hosts: AllowedHosts) -> Server {
    let token =
        AccessToken::new("ann", "token-1", Role::Operator, Scope::new(Arc::new(runs.clone()))).unwrap();
    Server::new(hosts, [token], Arc::new(archon::SystemClock), ServerOptions::default())
}

/// Reads a whole stream of events.
async fn events(request: RequestBuilder) -> Vec<Sent> {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    read_events(&response.text().await.unwrap())
}

fn read_events(text: &str) -> Vec<Sent> {
    text.split_inclusive("\n\n").filter_map(Sent::read).collect()
}

/// Sends a text over a connection of its own, and returns everything that comes until the server closes it.
pub(crate) async fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
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
    let seen = read_events(&text);
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
    let run = process.runs.start(StartRun::new("hello")).await.unwrap().run;
    process.runs.reply(&run).await.ended();
    let log = as_sent(&run, &world.log(&run).await);
    let path = format!("/v1/runs/{run}/events");
    let all = futures_util::future::join_all((0..20).map(|_| events(process.get(&path)))).await;
    for seen in all {
        assert_eq!(records(&seen), log);
    }
    process.end().await;
}

/// The number of long answers of a [`Talker`], and of the pieces of each.
const ANSWERS: usize = 4;
const PIECES: usize = 2_000;

/// Returns an event after others could work.
async fn with_pause<T>(event: T) -> T {
    tokio::task::yield_now().await;
    event
}

/// A model that waits first, and then speaks at length before each further wait.
#[derive(Default)]
struct Talker(AtomicUsize);

impl Talker {
    /// Returns the pieces of an answer.
    fn pieces(answer: usize) -> impl Iterator<Item = String> {
        (0..PIECES).map(move |piece| format!("piece {piece} of answer {answer} has some more words, "))
    }
}

impl Provider for Talker {
    fn id(&self) -> &str {
        "talker"
    }

    fn stream(
        &self,
        _: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let answer = self.0.fetch_add(1, Ordering::Relaxed);
        let mut events = match answer < ANSWERS {
            true => FnProvider::calls(vec![ToolCall::new(format!("c{answer}"), "wait", json!({}))]),
            false => FnProvider::text(""),
        };
        if answer > 0 {
            let pieces: Vec<_> = Self::pieces(answer).collect();
            if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
                message.content.insert(0, Content::text(pieces.concat()));
                message.usage = Usage { input: 100, output: 20, ..Usage::default() };
            }
            drop(events.splice(1..1, pieces.into_iter().map(|piece| Ok(ModelEvent::TextDelta(piece)))));
        }
        stream::iter(events).then(with_pause).boxed()
    }
}

/// Opens the stream of a run with a small buffer, and reads it until a tool has started.
async fn slow_watcher(port: u16, run: &RunId) -> (TcpStream, Vec<u8>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16_384).unwrap();
    let mut stream = socket.connect(SocketAddr::from(([127, 0, 0, 1], port))).await.unwrap();
    // In HTTP/1.0 the end of the body is that of the connection.
    let head = format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer token-1\r\n");
    let request = format!("GET /v1/runs/{run}/events HTTP/1.0\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("\"type\":\"tool_call_started\"") {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "{}", String::from_utf8_lossy(&bytes));
    }
    (stream, bytes)
}

// spec: EX-09
#[tokio::test]
async fn client_that_does_not_read_gets_every_record_and_keeps_no_other_waiting() {
    let world = World::new();
    let talker = world
        .builder("talker")
        .provider(Arc::new(Talker::default()), "scripted")
        .context(None::<ContextConfig>);
    let limits = ExecutionLimits::default().with_max_repeats(100);
    let talker = talker.limits(limits).build().unwrap();
    // An accepted connection has the buffers of its listener.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(16_384).unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let process = Process::over(Runs::new(talker), socket.listen(16).unwrap()).await;
    let run = process.runs.start(StartRun::new("talk")).await.unwrap().run;
    world.gate.entered().await;
    let (mut stream, mut bytes) = slow_watcher(process.port, &run).await;
    let fast = process.get(&format!("/v1/runs/{run}/events")).send().await.unwrap();
    (0..ANSWERS).for_each(|_| world.gate.open());
    // The other client has everything while this one reads nothing.
    let fast = read_events(&fast.text().await.unwrap());
    let log = as_sent(&run, &world.log(&run).await);
    assert_eq!((records(&fast), fast.last()), (log.clone(), Some(&end("finished"))));
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let slow = read_events(text.split_once("\r\n\r\n").unwrap().1);
    assert_eq!((records(&slow), slow.last()), (log, Some(&end("finished"))));
    let whole: String = (1..=ANSWERS).flat_map(Talker::pieces).collect();
    assert_eq!([texts(&fast).concat(), texts(&slow).concat()], [whole.clone(), whole]);
    let pieces = texts(&slow).len();
    assert!(pieces < ANSWERS * PIECES / 2, "{pieces} pieces");
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
    use tokio::net::{UnixListener, UnixStream};

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
