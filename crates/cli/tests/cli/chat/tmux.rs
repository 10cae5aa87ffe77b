//! The conversation in tmux, which breaks lines anew at a resize: each line is in the history of the pane once.

use std::{
    os::fd::OwnedFd,
    path::PathBuf,
    process::{Command, Stdio},
};

use archon_testkit::{Gate, MockResponse, MockServer, may_skip};
use rustix::fs::{Mode, OFlags};
use serde_json::json;

use super::window::Window;
use crate::setup::{Place, chunk, text};

/// Settings of a server that ends with its window.
const SETTINGS: &str = "\
set -g history-limit 20000
set -g escape-time 0
set -g status off
set -g exit-unattached on
set -g default-shell /bin/sh
";

/// The pane of a tmux server of its own, which a window shows.
pub(super) struct Pane {
    folder: PathBuf,
}

/// Returns true if there is `tmux`. Where no test may be skipped, it fails instead.
pub(super) fn is_there() -> bool {
    let is_there = Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        assert!(may_skip(), "the conversation is not tried in tmux: install `tmux`");
        eprintln!("SKIP: the conversation is not tried in tmux: there is no `tmux`");
    }
    is_there
}

/// Opens a window with a script in tmux; `"$0" "$@"` in it runs this command line of `archon`. The script has no
/// single quotes. The pane stays after its end.
pub(super) fn open(place: &Place, script: &str, line: &str) -> Window {
    let archon = place.command(line, &[]);
    let archon = archon.as_std();
    let words = std::iter::once(archon.get_program()).chain(archon.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let run = format!("exec bash -c '{script}; exec cat' {}\n", words.join(" "));
    std::fs::write(place.path("run.sh"), run).expect("a script");
    std::fs::write(place.path("tmux.conf"), SETTINGS).expect("settings");
    // The path of a socket may not be long, so it is relative.
    let words = ["tmux", "-u", "-f", "tmux.conf", "-S", "tmux.socket", "new-session", "sh run.sh"];
    let mut window = Window::program(place, &words);
    window.pane = Some(Pane { folder: place.dir.path().to_owned() });
    window
}

impl Pane {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.env_clear().env("PATH", "/usr/bin:/bin").args(["-u", "-S", "tmux.socket"]).args(words);
        command.current_dir(&self.folder).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns the output of a tmux command; it is empty if the server is not there yet.
    fn prints(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("tmux runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let rows: Vec<&str> = text.lines().map(str::trim_end).collect();
        rows.join("\n")
    }

    pub(super) fn screen(&self) -> String {
        self.prints(&["capture-pane", "-p"])
    }

    /// The lines of the history and the screen; a line that the pane broke is one.
    pub(super) fn all(&self) -> String {
        self.prints(&["capture-pane", "-p", "-J", "-S", "-", "-E", "-"])
    }

    /// The terminal of the pane's program.
    pub(super) fn terminal(&self) -> Option<OwnedFd> {
        let path = self.prints(&["display-message", "-p", "#{pane_tty}"]);
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open(path.trim(), flags, Mode::empty()).ok()
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        // The server ends with its window in any case, but later.
        let _ = self.command(&["kill-server"]).stdout(Stdio::null()).status();
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
    if !is_there() {
        return;
    }
    let gate = Gate::new();
    let server = MockServer::start([answer_with_gates(&gate)]).await;
    let place = Place::with_server(&server);
    let mut window = open(&place, r#""$0" "$@""#, "chat");
    window.shows("· mock ·").await;
    window.says("Count.").await;
    window.shows("the model works").await;
    for (number, size) in (0..LINES).step_by(BETWEEN).zip([(60, 20), (100, 40), (62, 12), (80, 24)]) {
        gate.open();
        window.shows(&line(number + BETWEEN - 1)).await;
        window.resize(size.0, size.1);
        window.until("the size", |window| window.has_size(size.0, size.1)).await;
    }
    window.shows("the end").await;
    let all = window.all();
    let found: Vec<&str> = all.lines().filter(|line| line.starts_with("line ")).collect();
    let expected: Vec<String> = (0..LINES).map(line).collect();
    assert_eq!(found, expected, "{all}");
    assert_eq!(all.matches("› Count.").count(), 1, "{all}");
}
