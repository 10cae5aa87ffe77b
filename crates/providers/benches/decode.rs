//! Measures the cost of a streamed answer: `cargo bench -p archon-providers`. Prints the framing of events in MB/s
//! (fails below 150) and the CPU time of an answer of 20,000 pieces beside the least that does the
//! same work (fails above 1.5 times that): reqwest, eventsource-stream and serde_json by hand. The parser of events
//! copies what it has left after each line, so there is a second floor, whose parser gets a few lines at once.
//!
//! Only the CPU time of the reading thread counts, so other processes on the machine disturb little; the
//! load is printed all the same. The server is a thread of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    borrow::Cow,
    convert::Infallible,
    future::poll_fn,
    hint::black_box,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    pin::Pin,
    thread,
};

use archon_providers::{OpenAiCompatible, OpenAiOptions};
use archon_types::{CancellationToken, Message, ModelEvent, Provider, Request, Timestamp};
use bytes::Bytes;
use eventsource_stream::EventStream;
use futures_core::Stream;
use futures_util::stream;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

const PIECES: usize = 20_000;
const ROUNDS: usize = 9;
const CHUNK: usize = 16 * 1024;
const FEW_LINES: usize = 2 * 1024;

fn main() {
    let body = answer();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());

    let framing = median(|| runtime.block_on(frame(&body)));
    println!("framing: {:.0} MB/s (wanted: 150)", body.len() as f64 / framing / 1e6);

    let url = serve(body.clone());
    let provider = OpenAiCompatible::new(&url, OpenAiOptions::default()).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ours = || runtime.block_on(read(&provider));
    let floor = |at_once| runtime.block_on(floor(&client, &url, at_once));
    // In turns, so that a change of the machine's mood meets all.
    let (mut of_ours, mut of_floor, mut of_fed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_floor.push(cpu(|| floor(usize::MAX)));
        of_fed.push(cpu(|| floor(FEW_LINES)));
        of_ours.push(cpu(ours));
    }
    let (ours, theirs, fed) = (middle(of_ours), middle(of_floor), middle(of_fed));
    let each = |seconds: f64| seconds / PIECES as f64 * 1e6;
    println!("an answer of {PIECES} pieces, {:.1} MB, CPU of the reading thread:", body.len() as f64 / 1e6);
    println!("  floor            {:.2} µs a piece", each(theirs));
    println!("  floor, few lines {:.2} µs a piece", each(fed));
    println!("  archon           {:.2} µs a piece, {:.0} MB/s", each(ours), body.len() as f64 / ours / 1e6);
    println!("  ratio {:.2} and {:.2} (wanted: at most 1.5)", ours / theirs, ours / fed);
    assert!(body.len() as f64 >= framing * 150e6, "missed: events in 150 MB/s");
    assert!(ours <= 1.5 * theirs.min(fed), "missed: an answer for 1.5 times of what it costs by hand");
}

/// An answer as services stream it.
fn answer() -> Vec<u8> {
    let mut body = String::new();
    for n in 0..PIECES {
        body += &format!(
            "data: {{\"id\":\"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG\",\"object\":\"chat.completion.chunk\",\"created\":1741570283,\"model\":\"gpt-5-mini-2025-08-07\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_50cad350e4\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{n}\"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n"
        );
    }
    body += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    body.into_bytes()
}

/// CPU seconds of this thread.
fn cpu(work: impl Fn()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let begun = now();
    work();
    now() - begun
}

fn median(work: impl Fn()) -> f64 {
    middle((0..ROUNDS).map(|_| cpu(&work)).collect())
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The framing alone, with the parser that the providers use.
async fn frame(body: &[u8]) {
    let chunks = body.chunks(CHUNK).map(|chunk| Ok::<_, Infallible>(Bytes::copy_from_slice(chunk)));
    let mut events = EventStream::new(stream::iter(chunks.collect::<Vec<_>>()));
    let mut count = 0;
    while let Some(event) = next(&mut events).await {
        black_box(event.unwrap());
        count += 1;
    }
    assert_eq!(count, PIECES + 2);
}

async fn read(provider: &OpenAiCompatible) {
    let request = Request::new("m", vec![Message::user("hi", Timestamp::default())]);
    let mut events = provider.stream(request, CancellationToken::new());
    let mut pieces = 0;
    while let Some(event) = next(&mut events).await {
        match event.unwrap() {
            ModelEvent::TextDelta(text) => {
                black_box(text);
                pieces += 1;
            }
            ModelEvent::Done(message) => assert!(message.text().len() > PIECES),
            _ => {}
        }
    }
    assert_eq!(pieces, PIECES);
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

/// The least that does the same: pieces handed on, and the whole text at the end.
async fn floor(client: &reqwest::Client, url: &str, at_once: usize) {
    let request = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let post = client.post(format!("{url}/chat/completions")).header("content-type", "application/json");
    let body = reqwest::Body::from(post.body(request).send().await.unwrap());
    let mut events = EventStream::new(Frames { body, rest: Bytes::new(), at_once });
    let (mut text, mut pieces) = (String::new(), 0);
    while let Some(event) = next(&mut events).await {
        let event = event.unwrap();
        if event.data == "[DONE]" {
            break;
        }
        let chunk: Chunk<'_> = serde_json::from_str(&event.data).unwrap();
        for piece in chunk.choices.into_iter().filter_map(|choice| choice.delta.content) {
            let piece = piece.into_owned();
            text.push_str(&piece);
            black_box(piece);
            pieces += 1;
        }
    }
    // To its end, so that the connection can be used again.
    while next(&mut events).await.is_some() {}
    assert!(pieces == PIECES && text.len() > PIECES);
}

/// A body, and how many bytes of it are handed on at once, to the end of a line.
struct Frames {
    body: reqwest::Body,
    rest: Bytes,
    at_once: usize,
}

impl Stream for Frames {
    type Item = Result<Bytes, reqwest::Error>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        use http_body::Body as _;
        if self.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return std::task::Poll::Ready(Some(Err(error))),
                None => return std::task::Poll::Ready(None),
            }
        }
        let end = self.rest.iter().skip(self.at_once).position(|byte| *byte == b'\n');
        let end = end.map_or(self.rest.len(), |end| self.at_once + end + 1);
        std::task::Poll::Ready(Some(Ok(self.rest.split_to(end))))
    }
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

/// Gives this answer to every request, in chunks, on connections that are kept.
fn serve(body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let body = body.clone();
            thread::spawn(move || answer_all(connection.unwrap(), &body));
        }
    });
    url
}

fn answer_all(connection: TcpStream, body: &[u8]) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut writer = connection;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(body)).is_err() {
            return;
        }
    }
}
