//! A server in a place, and requests to it.

use std::{path::PathBuf, process::Stdio, time::Duration};

use archon_testkit::MockServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::{TcpStream, UnixStream},
    process::{Child, Command},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async, tungstenite::client::IntoClientRequest as _,
};

use crate::setup::Place;

/// Writes settings of the person, with this model.
pub(crate) fn settle(place: &Place, model: &MockServer, more: &str) {
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    let text = format!("model = 'mock'\nbase_url = '{}/v1'\n{more}\n", model.url());
    std::fs::write(place.path(".config/archon/archon.toml"), text).unwrap();
}

/// A server at work.
pub(crate) struct Served {
    child: Child,
    /// `HOST:PORT`, or the socket.
    place: Result<String, PathBuf>,
    /// The lines that it printed about each token.
    pub(crate) tokens: Vec<Value>,
    /// The secret of the first token that is in a file.
    pub(crate) secret: String,
}

/// A websocket of a client.
pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A response: its status, its head and its body.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Response {
    /// Returns the rule that refused the request; empty if it was not refused.
    pub(crate) fn rule(&self) -> &str {
        self.body["type"].as_str().and_then(|kind| kind.strip_prefix("urn:archon:problem:")).unwrap_or("")
    }
}

impl Served {
    /// Starts a server with one token at a free port.
    pub(crate) async fn start(place: &Place, more: &[&str]) -> Self {
        Self::of(place.command("serve --json --listen 127.0.0.1:0", more), 1).await
    }

    /// Starts the server of a command with this number of tokens.
    pub(crate) async fn of(mut command: Command, tokens: usize) -> Self {
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut printed = Vec::new();
        while printed.len() <= tokens {
            let line = lines.next_line().await.unwrap().expect("it listens");
            printed.push(serde_json::from_str::<Value>(&line).unwrap());
        }
        let listening = printed.remove(0);
        let place = match listening["url"].as_str() {
            Some(url) => Ok(url.strip_prefix("http://").unwrap().to_owned()),
            None => {
                let text = listening["listening"].as_str().unwrap();
                Err(PathBuf::from(text.strip_prefix("the socket ").unwrap()))
            }
        };
        let mut sources = printed.iter().filter_map(|token| token["secret"].as_str());
        let file = sources.find(|source| source.starts_with('/'));
        let secret = file.map(|file| std::fs::read_to_string(file).unwrap().trim().to_owned());
        Self { child, place, tokens: printed, secret: secret.unwrap_or_default() }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send("GET", path, &self.bearer(&self.secret), None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &self.bearer(&self.secret), Some(body)).await
    }

    /// Returns the header of a token.
    pub(crate) fn bearer(&self, secret: &str) -> String {
        format!("Authorization: Bearer {secret}")
    }

    /// Sends a request with one more header.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        header: &str,
        body: Option<&Value>,
    ) -> Response {
        let body = body.map(Value::to_string).unwrap_or_default();
        let host = self.place.as_deref().unwrap_or("localhost");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{header}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        match &self.place {
            Ok(address) => exchange(TcpStream::connect(address).await.unwrap(), &request).await,
            Err(socket) => exchange(UnixStream::connect(socket).await.unwrap(), &request).await,
        }
    }

    /// Opens a websocket for notifications.
    pub(crate) async fn listen(&self) -> Socket {
        let url = format!("ws://{}/v1/notifications", self.place.as_deref().unwrap());
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", self.secret).parse().unwrap());
        connect_async(request).await.unwrap().0
    }

    /// Starts a run, and returns its id.
    pub(crate) async fn start_run(&self, text: &str) -> String {
        let started = self.post("/v1/runs", &json!({ "text": text })).await;
        assert_eq!(started.status, 201, "{started:?}");
        started.body["run"].as_str().unwrap().to_owned()
    }

    /// Waits until a run has this status.
    pub(crate) async fn until(&self, run: &str, status: &str) -> Value {
        for _ in 0..600 {
            let head = self.get(&format!("/v1/runs/{run}")).await.body;
            if head["status"] == status {
                return head;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{run} is not {status}: {:?}", self.get(&format!("/v1/runs/{run}/records")).await)
    }

    /// Returns the ids of the open questions.
    pub(crate) async fn questions(&self) -> Vec<String> {
        let open = self.get("/v1/approvals").await.body;
        let open = open["approvals"].as_array().unwrap().iter();
        open.map(|open| open["request_id"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn answer(&self, question: &str, answer: &str) -> Response {
        self.post(&format!("/v1/approvals/{question}/answer"), &json!({ "answer": answer })).await
    }

    /// Sends a signal, and returns the exit code; `None` for a process that was killed.
    pub(crate) async fn end(mut self, signal: Signal) -> Option<i32> {
        let id = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(id, signal).unwrap();
        self.child.wait().await.unwrap().code()
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Response {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
}
