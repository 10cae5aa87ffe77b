//! The script of one HTTP response: status, headers, the pieces of the body, and the waits between them.

use std::sync::Arc;

use archon_types::Json;
use tokio::sync::Semaphore;

/// A gate in a scripted response: the server waits at it until a test opens it. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets the server through once, even if it comes to the gate later.
    pub fn open(&self) {
        self.0.add_permits(1);
    }

    pub(crate) async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// One scripted response. The body is sent in HTTP chunks, one for each call of [`chunk`](Self::chunk).
///
/// ```
/// use archon_testkit::{Gate, MockResponse};
///
/// let gate = Gate::new();
/// let cut_off = MockResponse::new(200)
///     .header("content-type", "text/event-stream")
///     .event("{\"n\": 1}")
///     .wait(&gate) // until `gate.open()`
///     .chunk("data: {\"n\": 2}\n\n")
///     .close()
///     .split_every_byte();
/// let silent = MockResponse::events(["{\"n\": 1}"]).hang().at_once();
/// ```
#[derive(Clone, Debug, Default)]
pub struct MockResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) every_byte: bool,
    pub(crate) at_once: bool,
    /// True if the connection is closed without sending anything, not even a status.
    pub(crate) is_nothing: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Gate),
    /// Closes the connection in the middle of the body.
    Close,
    /// Sends nothing more until the client goes away.
    Hang,
}

impl MockResponse {
    /// Creates a response with an empty body.
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// Creates no response: the connection is closed as soon as the request is read.
    pub fn nothing() -> Self {
        Self { is_nothing: true, ..Self::default() }
    }

    /// Creates a stream of server-sent events with this text and status 200.
    pub fn sse(body: impl AsRef<[u8]>) -> Self {
        Self::events::<&str>([]).chunk(body)
    }

    /// Creates a stream of server-sent events with one `data:` line for each item and status 200.
    pub fn events<T: AsRef<str>>(data: impl IntoIterator<Item = T>) -> Self {
        let empty = Self::new(200).header("content-type", "text/event-stream");
        data.into_iter().fold(empty, |r, data| r.event(data.as_ref()))
    }

    /// Creates a response with a JSON body.
    pub fn json(status: u16, body: &Json) -> Self {
        Self::new(status).header("content-type", "application/json").chunk(body.to_string())
    }

    /// Adds a header. The server itself sends `transfer-encoding` and `content-length`.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a piece of the body, sent as one HTTP chunk.
    pub fn chunk(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Send(bytes.as_ref().to_vec()))
    }

    /// Adds one server-sent event with this data.
    pub fn event(self, data: &str) -> Self {
        self.chunk(format!("data: {data}\n\n"))
    }

    /// Waits at the gate before the steps that follow.
    pub fn wait(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// Closes the connection here, in the middle of the body.
    pub fn close(self) -> Self {
        self.step(Step::Close)
    }

    /// Sends nothing more and keeps the connection until the client goes away.
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Sends every byte of the body as an HTTP chunk of its own.
    pub fn split_every_byte(mut self) -> Self {
        self.every_byte = true;
        self
    }

    /// Writes the chunks to the connection in as few pieces as possible, not each by itself.
    pub fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }
}
