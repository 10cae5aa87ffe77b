//! Runs `cargo build` and follows its progress: JSON messages say what was built, stderr says what it is
//! doing.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::repository;

/// Output of a running program.
pub(super) enum Heard {
    /// A line of stdout.
    Out(String),
    /// A line of stderr.
    Beside(String),
    /// One of the two ended.
    Silent,
}

/// Starts a program whose output comes through `to`; each stream keeps its order.
pub(super) fn listen<T: Send + 'static>(
    mut command: Command,
    to: &Sender<T>,
    wrap: impl Fn(Heard) -> T + Copy + Send + 'static,
) -> Result<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    let command = command.current_dir(repository::root()).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{name}` could not be started; is it installed and on PATH?"))?;
    let (out, beside) = (child.stdout.take(), child.stderr.take());
    let to_out = to.clone();
    thread::spawn(move || {
        lines(out, |line| to_out.send(wrap(line.map_or(Heard::Silent, Heard::Out))).is_ok())
    });
    let to_beside = to.clone();
    thread::spawn(move || {
        lines(beside, |line| to_beside.send(wrap(line.map_or(Heard::Silent, Heard::Beside))).is_ok())
    });
    Ok(child)
}

/// Passes each line to `take`, and `None` at the end, as long as it returns true.
fn lines(stream: Option<impl Read>, mut take: impl FnMut(Option<String>) -> bool) {
    if let Some(stream) = stream {
        let mut stream = BufReader::new(stream);
        let mut bytes = Vec::new();
        while matches!(stream.read_until(b'\n', &mut bytes), Ok(n) if n > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
            if !take(Some(line)) {
                return;
            }
            bytes.clear();
        }
    }
    take(None);
}

/// Cargo's work so far.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Number of crates that were downloaded.
    pub(super) fetched: usize,
    /// Number of crates that are built.
    pub(super) done: usize,
    /// Cargo has built everything.
    finished: bool,
    /// Cargo's current work, in a word and a name.
    pub(super) now: String,
    /// Programs that are built.
    programs: Vec<(String, PathBuf)>,
    /// Everything that cargo said besides progress: errors and warnings.
    complaints: String,
}

impl Work {
    /// Reads a line of `--message-format=json-render-diagnostics`.
    pub(super) fn message(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        self.finished = message["reason"] == "build-finished";
        if message["reason"] != "compiler-artifact" {
            return;
        }
        let target = &message["target"];
        if let (Some(name), Some(path)) = (target["name"].as_str(), message["executable"].as_str()) {
            self.programs.push((name.to_owned(), path.into()));
        }
        let is_script = |kind: &Value| kind == "custom-build";
        if !target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(is_script)) {
            self.done += 1;
        }
    }

    /// Reads a line of cargo's messages for people.
    pub(super) fn word(&mut self, line: &str) {
        let plain = without_colours(line);
        let mut words = plain.split_whitespace();
        let (word, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match word {
            // The last of them is a sum: `Downloaded 12 crates (3.4MB) in 1.2s`.
            "Downloaded" if words.next() == Some("crates") => {}
            "Downloaded" => {
                self.fetched += 1;
                self.now = format!("got {name}");
            }
            "Compiling" => self.now = format!("compiling {name}"),
            "Blocking" => self.now = "waiting for another cargo".to_owned(),
            "Updating" => self.now = "reading the index".to_owned(),
            "Downloading" | "Finished" | "Fresh" | "Dirty" | "Locking" | "Building" => {}
            _ => {
                let _ = writeln!(self.complaints, "{line}");
            }
        }
    }

    /// Returns whether the build is finished.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns the path of a built program.
    pub(super) fn program(&self, name: &str) -> Option<&PathBuf> {
        self.programs.iter().find(|(known, _)| known == name).map(|(_, path)| path)
    }

    /// Returns cargo's whole errors.
    pub(super) fn complaints(&self) -> &str {
        self.complaints.trim_end()
    }

    /// Prepares for another build, which goes over the built crates again.
    pub(super) fn again(&mut self) {
        self.done = 0;
        self.finished = false;
        self.complaints.clear();
    }
}

/// Returns the text without the marks that colour it on a terminal.
fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, mark)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = mark.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work_after(messages: &[&str], words: &[&str]) -> Work {
        let mut work = Work::default();
        messages.iter().for_each(|line| work.message(line));
        words.iter().for_each(|line| work.word(line));
        work
    }

    #[test]
    fn cargo_message_of_a_build_script_is_ignored_and_of_a_program_recorded() {
        let work = work_after(
            &[
                r#"{"reason":"compiler-artifact","target":{"name":"build-script-build","kind":["custom-build"]},"executable":null,"fresh":false}"#,
                r#"{"reason":"build-script-executed","package_id":"x"}"#,
                r#"{"reason":"compiler-artifact","target":{"name":"serde","kind":["lib"]},"executable":null,"fresh":true}"#,
                r#"{"reason":"compiler-artifact","target":{"name":"archon","kind":["bin"]},"executable":"/t/archon","fresh":false}"#,
                r#"{"reason":"build-finished","success":true}"#,
                "no json",
            ],
            &[],
        );
        assert_eq!(work.done, 2);
        assert_eq!(work.program("archon"), Some(&PathBuf::from("/t/archon")));
        assert_eq!(work.program("serde"), None);
    }

    #[test]
    fn cargo_progress_words_are_separated_from_errors() {
        let error =
            ["error[E0432]: unresolved import", "  --> src/lib.rs:1:5", "", "error: could not compile `a`"];
        let progress = [
            "   Compiling syn v2.0.1",
            "\x1b[1m\x1b[32m  Downloaded\x1b[0m serde v1.0.0",
            "  Downloaded a v1.0",
        ];
        let work = work_after(&[], &[&progress[..], &error[..]].concat());
        assert_eq!(work.complaints(), error.join("\n"));
        assert_eq!((work.fetched, work.now.as_str()), (2, "got a"));
    }

    #[test]
    fn word_of_the_sum_of_downloads_is_no_crate() {
        assert_eq!(work_after(&[], &["  Downloaded 12 crates (3.4MB) in 1.2s"]).fetched, 0);
    }
}
