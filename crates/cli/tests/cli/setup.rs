//! A place of its own for each test: data, workspace, no settings and no keys from this machine.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use archon_testkit::{MockResponse, MockServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

pub(crate) struct Place {
    pub(crate) dir: TempDir,
    server: Option<String>,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    /// The lines of standard output as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }

    /// The only answer to bad input: what, then what to do.
    pub(crate) fn check_refused(&self, code: i32, what: &str, remedy: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        let lines: Vec<_> = self.err.lines().collect();
        let [first, second] = lines.as_slice() else { panic!("not two lines: {self:?}") };
        assert!(first.starts_with("error: ") && first.contains(what), "{self:?}");
        assert!(!remedy.is_empty() && second.starts_with("  ") && second.contains(remedy), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
    }
}

/// Returns a line of a log that was changed, with its newline and the checksum that it then has.
pub(crate) fn sealed(line: &str) -> String {
    let body = &line[line.find(',').expect("a checksum") + 1..];
    let crc = body.bytes().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    });
    format!("{{\"crc\":\"{:08x}\",{body}\n", !crc)
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), server: None }
    }

    pub(crate) fn with_server(server: &MockServer) -> Self {
        Self { server: Some(format!("{}/v1", server.url())), ..Self::new() }
    }

    /// Lets another server be the model from now on.
    pub(crate) fn serve(&mut self, server: &MockServer) {
        self.server = Some(format!("{}/v1", server.url()));
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    /// A command in this place. Words with spaces are given as further arguments.
    pub(crate) fn command(&self, line: &str, more: &[&str]) -> Command {
        self.command_at(self.server.as_deref(), line, more)
    }

    fn command_at(&self, server: Option<&str>, line: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archon"));
        command.env_clear().env("HOME", self.dir.path()).env("PATH", "/usr/bin:/bin");
        // Nothing is fetched unless a test says from where.
        command
            .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
            .env("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9");
        // What listens on this machine's ports is no part of a test.
        command.env("ARCHON_LOCAL_SERVERS", "none");
        command.current_dir(self.dir.path()).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut words = line.split_whitespace();
        command.args(words.by_ref().take(1)).args(["--data-dir".as_ref(), self.data().as_os_str()]);
        command.args(words);
        let mut words = line.split(' ');
        let asks = match (words.next(), words.next()) {
            (Some("chat" | "run" | "resume" | "plan" | "team"), second) => second != Some("show"),
            // Lets a run go on.
            (Some("approvals"), second) => !matches!(second, Some("list" | "show")),
            _ => false,
        };
        if let (Some(url), true) = (server, asks) {
            command.args(["--base-url", url, "--model", "mock"]);
        }
        command.args(more);
        command
    }

    /// Runs a command in another folder, with nothing but the place of the data: no model, no address.
    pub(crate) async fn alone(&self, line: &str, more: &[&str]) -> Ran {
        let elsewhere = tempfile::tempdir().expect("a directory");
        let mut command = self.command_at(None, line, more);
        command.current_dir(elsewhere.path()).output().await.expect("the program runs").into()
    }

    pub(crate) async fn archon(&self, line: &str, more: &[&str]) -> Ran {
        self.command(line, more).output().await.expect("the program runs").into()
    }

    /// Runs the command with a text on its standard input. Only tests of stored keys write to it.
    #[cfg(feature = "credentials")]
    pub(crate) async fn pipe(&self, line: &str, more: &[&str], text: &str) -> Ran {
        use tokio::io::AsyncWriteExt as _;

        let mut child = self.command(line, more).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        // A command that refuses does not read.
        let _ = input.write_all(text.as_bytes()).await;
        drop(input);
        child.wait_with_output().await.expect("it ends").into()
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.dir.path()).join(name)
    }
}

pub(crate) fn chunk(delta: &Value, finish: Option<&str>) -> String {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock",
           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    .to_string()
}

pub(crate) fn text(text: &str) -> String {
    chunk(&json!({"content": text}), None)
}

pub(crate) fn answer(words: &str) -> MockResponse {
    MockResponse::events([text(words), chunk(&json!({}), Some("stop")), "[DONE]".into()])
}

pub(crate) fn asks_for(name: &str, arguments: &str) -> MockResponse {
    says_and_asks_for("", name, arguments)
}

/// A call behind words.
pub(crate) fn says_and_asks_for(words: &str, name: &str, arguments: &str) -> MockResponse {
    let function = json!({"name": name, "arguments": arguments});
    let call =
        json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]});
    let words = (!words.is_empty()).then(|| text(words));
    let end = [chunk(&call, None), chunk(&json!({}), Some("tool_calls")), "[DONE]".into()];
    MockResponse::events(words.into_iter().chain(end))
}
