//! A real HTTP/1.1 server on this machine that replays a script and records the requests.
//!
//! It implements only the HTTP that our own clients use: keep-alive, bodies with `content-length`, and
//! chunked responses.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::Json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use crate::{
    mock_response::{MockResponse, Step},
    pairing::assert_paired,
};

/// One request that a [`MockServer`] received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The method, for instance `POST`.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The headers, in the order in which they were sent: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as it was sent.
    pub text: String,
    /// The body as JSON; null if it is not JSON.
    pub body: Json,
    /// The number of the connection, from 0. Equal numbers mean that a connection was reused.
    pub connection: usize,
}

impl RecordedRequest {
    /// Returns the first header of this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// A server on an unused port of 127.0.0.1. It stops when it is dropped.
///
/// ```no_run
/// use archon_testkit::{MockResponse, MockServer};
///
/// # async fn example() {
/// let server = MockServer::start([MockResponse::json(503, &serde_json::json!({ "error": "busy" }))]).await;
/// println!("{} got {} requests", server.url(), server.requests().len());
/// # }
/// ```
pub struct MockServer {
    address: String,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// The number of clients that went away in the middle of a response.
    gone: watch::Sender<usize>,
}

/// Makes the response from the request.
type Answering = Arc<dyn Fn(&RecordedRequest) -> MockResponse + Send + Sync>;

#[derive(Default)]
struct State {
    script: VecDeque<MockResponse>,
    answering: Option<Answering>,
    requests: Vec<RecordedRequest>,
}

impl MockServer {
    /// Starts a server that answers the first request with the first response, and so on. A request
    /// past the end of the script is answered with status 500 and `script exhausted`.
    ///
    /// # Panics
    /// If no port can be bound.
    pub async fn start(script: impl IntoIterator<Item = MockResponse>) -> Self {
        #[allow(clippy::expect_used)] // A test without a port to listen on cannot go on.
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on 127.0.0.1");
        let address = listener.local_addr().map(|a| a.to_string()).unwrap_or_default();
        let shared = Arc::new(Shared::default());
        shared.lock().script.extend(script);
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Self { address, shared, accepting }
    }

    /// Starts a server that makes each response from its request.
    ///
    /// # Panics
    /// If no port can be bound.
    pub async fn answering(
        answer: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static,
    ) -> Self {
        let server = Self::start([]).await;
        server.shared.lock().answering = Some(Arc::new(answer));
        server
    }

    /// Returns `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a response to the end of the script.
    pub fn push(&self, response: MockResponse) {
        self.shared.lock().script.push_back(response);
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock().requests.clone()
    }

    /// Waits until `n` clients have gone away in the middle of a response.
    pub async fn until_gone(&self, n: usize) {
        let mut gone = self.shared.gone.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _ = gone.wait_for(|now| *now >= n).await;
    }

    /// Panics unless tool calls and results pair one to one in every recorded request.
    #[track_caller]
    pub fn assert_paired(&self) {
        self.requests().iter().filter(|r| r.method == "POST").for_each(|r| assert_paired(&r.body));
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections, and serves each in an async task. Dropping this future aborts these tasks, which
/// closes all connections.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        connections.spawn(serve(stream, shared.clone(), number));
        number += 1;
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, connection: usize) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer, connection).await {
        let response = {
            let mut state = shared.lock();
            let made = state.answering.as_ref().map(|answer| answer(&request));
            state.requests.push(request);
            made.or_else(|| state.script.pop_front())
        };
        let response = response.unwrap_or_else(|| MockResponse::new(500).chunk("script exhausted"));
        match answer(&mut stream, response).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => return shared.gone.send_modify(|gone| *gone += 1),
        }
    }
}

/// Sends the scripted response. Returns whether the connection stays open; an error if the client is gone.
async fn answer(stream: &mut TcpStream, response: MockResponse) -> std::io::Result<bool> {
    if response.is_nothing {
        return Ok(false);
    }
    let mut head = format!("HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n", response.status);
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut out = head.into_bytes();
    for step in response.steps {
        if !response.at_once || !matches!(step, Step::Send(_)) {
            flush(stream, &mut out).await?;
        }
        match step {
            Step::Send(bytes) if response.every_byte => {
                out.extend(bytes.iter().flat_map(|byte| [b'1', b'\r', b'\n', *byte, b'\r', b'\n']));
            }
            Step::Send(bytes) if bytes.is_empty() => {}
            Step::Send(bytes) => {
                out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
                out.extend_from_slice(&bytes);
                out.extend_from_slice(b"\r\n");
            }
            Step::Wait(gate) => tokio::select! {
                () = gate.pass() => {}
                gone = client_gone(stream) => return Err(gone),
            },
            Step::Close => return Ok(false),
            Step::Hang => return Err(client_gone(stream).await),
        }
    }
    if !response.at_once {
        flush(stream, &mut out).await?;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    flush(stream, &mut out).await?;
    Ok(true)
}

/// Sends the bytes in `out`, and empties `out`.
async fn flush(stream: &mut TcpStream, out: &mut Vec<u8>) -> std::io::Result<()> {
    stream.write_all(out).await?;
    out.clear();
    Ok(())
}

/// Waits until the client closes the connection. A byte from the client counts as the end, too, because a
/// client sends nothing while it reads a response.
async fn client_gone(stream: &mut TcpStream) -> std::io::Error {
    let mut byte = [0];
    match stream.peek(&mut byte).await {
        Err(e) => e,
        Ok(_) => std::io::ErrorKind::UnexpectedEof.into(),
    }
}

/// Reads the next request. Returns `None` if the client sends no more, or sends something that is not HTTP.
async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    connection: usize,
) -> Option<RecordedRequest> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        fill(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
    let body = end + 4;
    while buffer.len() < body + length {
        fill(stream, buffer).await?;
    }
    let text = String::from_utf8_lossy(&buffer[body..body + length]).into_owned();
    buffer.drain(..body + length);
    let body = serde_json::from_str(&text).unwrap_or(Json::Null);
    Some(RecordedRequest { method, path, headers, text, body, connection })
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gate;

    async fn send(stream: &mut TcpStream, body: &str) {
        let head = format!("POST /p HTTP/1.1\r\nX-Y: z\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).await.unwrap();
    }

    async fn read_until(stream: &mut TcpStream, end: &str) -> String {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "{}", String::from_utf8_lossy(&text));
        }
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn a_script_is_replayed_chunk_by_chunk_and_requests_are_kept() {
        let gate = Gate::new();
        let gated = MockResponse::new(200).chunk("ab").wait(&gate).chunk("c");
        let server = MockServer::start([gated, MockResponse::new(404).chunk("de").split_every_byte()]).await;
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        send(&mut stream, r#"{"a":1}"#).await;
        read_until(&mut stream, "2\r\nab\r\n").await;
        gate.open();
        assert_eq!(read_until(&mut stream, "0\r\n\r\n").await, "1\r\nc\r\n0\r\n\r\n");
        send(&mut stream, "no json").await;
        assert!(read_until(&mut stream, "1\r\nd\r\n1\r\ne\r\n0\r\n\r\n").await.contains(" 404 "));
        let requests = server.requests();
        assert_eq!(requests[0].body["a"], 1);
        assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/p"));
        assert_eq!(requests[0].header("x-y"), Some("z"));
        assert_eq!((requests[1].connection, &requests[1].body), (0, &Json::Null));
    }

    #[tokio::test]
    async fn a_response_at_once_arrives_whole_with_its_chunks() {
        let gate = Gate::new();
        let response = MockResponse::new(200).chunk("ab").chunk("c").wait(&gate).chunk("d").at_once();
        let server = MockServer::start([response]).await;
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        send(&mut stream, "{}").await;
        read_until(&mut stream, "\r\n\r\n2\r\nab\r\n1\r\nc\r\n").await;
        gate.open();
        assert_eq!(read_until(&mut stream, "0\r\n\r\n").await, "1\r\nd\r\n0\r\n\r\n");
    }

    #[tokio::test]
    async fn it_notices_that_a_client_goes_away() {
        let server = MockServer::start([MockResponse::sse("x").hang()]).await;
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        send(&mut stream, "{}").await;
        read_until(&mut stream, "1\r\nx\r\n").await;
        drop(stream);
        server.until_gone(1).await;
    }
}
