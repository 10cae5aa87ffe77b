//! The conversation in tmux, which breaks lines anew at a resize: each line is in the history of the pane once.

use std::{
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use archon_testkit::{Gate, MockResponse, MockServer, may_skip};
use serde_json::json;
use tokio::process::Command;

use crate::setup::{Place, chunk, text};

/// The time after which a test fails that waits for something on the pane, and the time between two looks.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(50);

/// A tmux server of its own, with one pane.
struct Pane<'a> {
    place: &'a Place,
}

impl<'a> Pane<'a> {
    /// Opens a pane of this width with a conversation; `None` without tmux.
    async fn open(place: &'a Place, columns: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().await.is_err() {
            assert!(may_skip(), "the conversation is not tried in tmux: install `tmux`");
            eprintln!("SKIP: the conversation is not tried in tmux: there is no `tmux`");
            return None;
        }
        let archon = place.command("chat", &[]);
        let words = std::iter::once(archon.as_std().get_program()).chain(archon.as_std().get_args());
        let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        std::fs::write(place.path("run.sh"), format!("exec {}\n", line.join(" "))).expect("a script");
        std::fs::write(place.path("tmux.conf"), "set -g history-limit 20000\nset -g escape-time 0\n")
            .expect("settings");
        let pane = Self { place };
        let size = [columns.to_string(), "24".to_owned()];
        pane.tmux(&["new-session", "-d", "-x", &size[0], "-y", &size[1], "sh run.sh"]).await;
        Some(pane)
    }

    async fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.env_clear();
        for (name, value) in self.place.command("chat", &[]).as_std().get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.env("SHELL", "/bin/sh").current_dir(self.place.dir.path()).stdin(Stdio::null());
        // The path of a socket may not be long, so it is relative.
        command.args(["-u", "-f", "tmux.conf", "-S", "tmux.socket"]).args(words);
        let Output { status, stdout, stderr } = command.output().await.expect("tmux runs");
        assert!(status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).expect("UTF-8")
    }

    /// The lines of the history and the screen; a line that the pane broke is one.
    async fn lines(&self) -> Vec<String> {
        let text = self.tmux(&["capture-pane", "-p", "-J", "-S", "-", "-E", "-"]).await;
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until this is on the pane or above it.
    async fn shows(&self, text: &str) {
        let since = Instant::now();
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            let lines = self.lines().await;
            if lines.iter().any(|line| line.contains(text)) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "waited in vain for {text:?}: {lines:#?}");
        }
    }

    async fn says(&self, text: &str) {
        self.shows("›").await;
        self.tmux(&["send-keys", "-l", text]).await;
        self.tmux(&["send-keys", "Enter"]).await;
    }

    async fn resize(&self, columns: u16, rows: u16) {
        let size = [columns.to_string(), rows.to_string()];
        self.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]).await;
    }
}

impl Drop for Pane<'_> {
    fn drop(&mut self) {
        // The server ends with its session; the place is removed in any case.
        let kill = std::process::Command::new("tmux")
            .args(["-S", "tmux.socket", "kill-server"])
            .current_dir(self.place.dir.path())
            .stderr(Stdio::null())
            .status();
        drop(kill);
    }
}

/// The number of lines of the answer, and of those between two resizes.
const LINES: usize = 120;
const BETWEEN: usize = 30;

fn line(number: usize) -> String {
    format!("line {number:04} of the answer, with ten words for a narrow pane")
}

/// An answer whose lines wait at the gate now and then.
fn answer_with_gates(gate: &Gate) -> MockResponse {
    let add = |response: MockResponse, number: usize| {
        let response = if number.is_multiple_of(BETWEEN) { response.wait(gate) } else { response };
        response.event(&text(&format!("{}\n\n", line(number))))
    };
    let response = (0..LINES).fold(MockResponse::events::<&str>([]), add);
    response.event(&text("the end")).event(&chunk(&json!({}), Some("stop"))).event("[DONE]")
}

#[tokio::test]
async fn answer_that_streams_through_resizes_is_once_in_the_history_of_tmux() {
    for columns in [80, 60] {
        let gate = Gate::new();
        let server = MockServer::start([answer_with_gates(&gate)]).await;
        let place = Place::with_server(&server);
        let Some(pane) = Pane::open(&place, columns).await else { return };
        pane.shows("· mock ·").await;
        pane.says("Count.").await;
        pane.shows("the model works").await;
        for (number, size) in (0..LINES).step_by(BETWEEN).zip([(60, 20), (100, 40), (62, 12), (80, 24)]) {
            gate.open();
            pane.shows(&line(number + BETWEEN - 1)).await;
            pane.resize(size.0, size.1).await;
        }
        pane.shows("the end").await;
        let lines = pane.lines().await;
        let found: Vec<&str> =
            lines.iter().map(String::as_str).filter(|line| line.starts_with("line ")).collect();
        let expected: Vec<String> = (0..LINES).map(line).collect();
        assert_eq!(found, expected, "{columns} columns: {lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.contains("› Count.")).count(), 1, "{lines:#?}");
    }
}
