//! The process of a server: its pipes carry the messages, and its error output is kept for reports of
//! failures.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    pin::Pin,
    process::Command,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use archon_process::ServerProcess;
use serde::de::IgnoredAny;
use tokio::{
    io::{AsyncRead, AsyncReadExt, DuplexStream, ReadBuf},
    process::ChildStdout,
};

use crate::{
    McpProblem, StdioServer,
    server::Sandbox,
    text::{MESSAGE, plain},
};

/// Number of bytes that are kept from the end of the error output.
const KEPT: usize = 4 << 10;
/// Maximum number of characters of the error output in a report.
const REPORTED: usize = 1_000;

/// A running server.
pub(crate) struct Running {
    pub(crate) process: ServerProcess,
    pub(crate) input: DuplexStream,
    pub(crate) output: Messages<ChildStdout>,
    pub(crate) errors: Tail,
}

/// Starts the process of a server, in its sandbox if it has one.
pub(crate) fn start(
    server: &StdioServer,
    sandbox: Option<&Sandbox>,
    max_message: usize,
) -> Result<Running, McpProblem> {
    let mut command = Command::new(&server.command);
    command.args(&server.args).envs(&server.plain_env);
    command.envs(server.env.iter().map(|(name, value)| (name, value.expose())));
    if let Some(folder) = &server.folder {
        command.current_dir(folder);
    }
    let failed = |e: io::Error| McpProblem::Io(format!("the server's process cannot be started: {e}"));
    let mut process = match sandbox {
        None => ServerProcess::spawn(&command).map_err(failed)?,
        Some(Sandbox(sandbox)) => ServerProcess::spawn_sandboxed(&command, &**sandbox)
            .map_err(|e| McpProblem::Sandbox(plain(&e.to_string(), MESSAGE)))?,
    };
    let gone = || failed(io::ErrorKind::BrokenPipe.into());
    let (input, output, errors) = process.take_pipes();
    let tail = Tail::default();
    tokio::spawn(tail.clone().read(errors.ok_or_else(gone)?));
    let output = Messages::new(output.ok_or_else(gone)?, max_message);
    let (near, mut far) = tokio::io::duplex(UNREAD);
    let mut input = input.ok_or_else(gone)?;
    tokio::spawn(async move { tokio::io::copy(&mut far, &mut input).await });
    Ok(Running { process, input: near, output, errors: tail })
}

/// Maximum number of bytes that are buffered for a server that does not read. The library reads nothing while
/// it waits to write, so without this buffer a server that writes at the same time would block for ever, and
/// so would this program.
const UNREAD: usize = 64 << 20;

/// The messages in a server's output. Lines that are not messages are dropped, because the library would
/// answer each of them. The output ends at a line that is too long.
pub(crate) struct Messages<R> {
    inner: R,
    most: usize,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// Complete lines; `taken` is the number of their bytes that were read.
    whole: Vec<u8>,
    taken: usize,
    is_too_long: Arc<AtomicBool>,
}

impl<R> Messages<R> {
    fn new(inner: R, most: usize) -> Self {
        Self { inner, most, line: Vec::new(), whole: Vec::new(), taken: 0, is_too_long: Arc::default() }
    }

    /// Returns the flag that is set when a line was too long.
    pub(crate) fn is_too_long(&self) -> Arc<AtomicBool> {
        self.is_too_long.clone()
    }

    /// Adds a piece of the output, and keeps its whole lines that are messages.
    fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() > self.most {
                self.is_too_long.store(true, Ordering::Relaxed);
                return Err(io::Error::other("the line is too long"));
            }
            if part.ends_with(b"\n") {
                if is_message(&self.line) {
                    self.whole.append(&mut self.line);
                }
                self.line.clear();
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Messages<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.taken == self.whole.len() {
            self.whole.clear();
            self.taken = 0;
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.inner).poll_read(task, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.add(piece.filled())?;
        }
        let rest = &self.whole[self.taken..];
        let taken = rest.len().min(into.remaining());
        into.put_slice(&rest[..taken]);
        self.taken += taken;
        Poll::Ready(Ok(()))
    }
}

/// Number of bytes of one read.
const PIECE: usize = 8 << 10;

/// Returns whether a line is a JSON object with a field that only messages have.
fn is_message(line: &[u8]) -> bool {
    // Some programs begin their output with a byte order mark.
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let parts: Result<BTreeMap<String, IgnoredAny>, _> = serde_json::from_slice(line);
    parts.is_ok_and(|parts| ["method", "result", "error"].iter().any(|part| parts.contains_key(*part)))
}

/// The last bytes of a server's error output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads the error output to its end, so that the server never blocks on a full pipe.
    async fn read(self, mut from: impl AsyncRead + Unpin) {
        let mut piece = vec![0; KEPT];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&piece[..read]);
            let surplus = kept.len().saturating_sub(KEPT);
            kept.drain(..surplus);
        }
    }

    /// Returns the end of the error output as text that can be shown; `None` if there is none.
    pub(crate) fn text(&self) -> Option<String> {
        let bytes: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        let start = text.char_indices().rev().nth(REPORTED - 1).map_or(0, |(at, _)| at);
        Some(plain(&text[start..], REPORTED)).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_all_that_is_read_and_end_at_a_line_that_is_too_long() {
        let one = "{\"result\":1}\n";
        for (text, expected, is_too_long) in [
            (format!("{one}{one}"), format!("{one}{one}"), false),
            (format!("not json\n{one}[]\n{{\"a\":1}}\n\n{one}\0\n{{\"resul"), format!("{one}{one}"), false),
            (format!("{one}{}", "x".repeat(20)), one.to_owned(), false),
            (format!("{one}{}\n{one}", "x".repeat(30)), String::new(), true),
        ] {
            // In pieces of seven bytes, so that lines are cut.
            let mut messages = Messages::new(in_pieces(text.as_bytes()), 20);
            let flag = messages.is_too_long();
            let mut read = String::new();
            let result = messages.read_to_string(&mut read).await;
            assert_eq!(
                (result.is_err(), flag.load(Ordering::Relaxed)),
                (is_too_long, is_too_long),
                "{text:?}"
            );
            assert!(is_too_long || read == expected, "{text:?}: {read:?}");
        }
    }

    /// Reads a text in pieces.
    fn in_pieces(text: &[u8]) -> impl AsyncRead + Unpin + '_ {
        text.chunks(7).fold(Box::new(&b""[..]) as Box<dyn AsyncRead + Unpin + '_>, |before, piece| {
            Box::new(before.chain(piece))
        })
    }

    #[tokio::test]
    async fn a_tail_keeps_the_last_of_a_long_output() {
        let tail = Tail::default();
        let long = format!("{}the\u{1b}[1m end\n", "x\n".repeat(100_000));
        tail.clone().read(long.as_bytes()).await;
        let text = tail.text().unwrap_or_default();
        assert!(text.ends_with("x\nthe[1m end") && text.chars().count() <= REPORTED, "{text}");
        assert_eq!(Tail::default().text(), None);
    }
}
