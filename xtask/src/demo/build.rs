//! Builds the command, and fetches the model meanwhile.
//!
//! The program that fetches is built first, from crates that the command needs anyway: both builds name the
//! same packages and features, so cargo builds no crate twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::cargo::{Heard, Work, listen};
use super::download::Download;
use super::machine::cargo_home;
use super::progress::{Progress, remaining, remaining_text, seconds};
use crate::command_line::CommandLine;

/// The demo's build: the command with the features that the demo needs, and the program that fetches. No
/// change may make this list longer, since everybody waits for it before they see anything.
const WHAT: &str = "build --profile demo --locked -p archon-agents-cli -p archon-local-model --no-default-features --features archon-agents-cli/local,archon-agents-cli/yaml";

/// The programs, in the order of their builds.
const PROGRAMS: [&str; 2] = ["archon-pull", "archon"];

/// Approximate number of crates to build. Progress is measured in crates, since time is proportional to them
/// within a tenth. A test keeps the number near the truth, and low.
const CRATES: usize = 301;

/// The built program, and the time of each part.
pub(super) struct Built {
    pub(super) archon: PathBuf,
    pub(super) fetch: Duration,
    pub(super) build: Duration,
    /// Time that the model took after the build.
    pub(super) model: Duration,
}

/// Builds the command, and fetches `model` with its engine into the folder `data`.
pub(super) fn build(data: &Path, model: &str) -> Result<Built> {
    let mut builder = Builder::new(data, model);
    let built = builder.build();
    builder.progress.clear();
    built
}

enum Event {
    Cargo(Heard),
    Pull(Heard),
}

/// A program that runs meanwhile, until both of its streams have ended.
struct Running {
    child: Child,
    streams: u8,
}

impl Running {
    /// Notes that a stream has ended; returns the exit status after the last one.
    fn silent(&mut self) -> Result<Option<ExitStatus>> {
        self.streams = self.streams.saturating_sub(1);
        if self.streams > 0 {
            return Ok(None);
        }
        Ok(Some(self.child.wait().context("cannot wait for the end of a started program")?))
    }
}

impl Drop for Running {
    /// Ends the program if the build ends before it.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Builder<'a> {
    data: &'a Path,
    model: &'a str,
    began: Instant,
    /// The time at which the first crate was built or found.
    compiling: Option<Instant>,
    progress: Progress,
    work: Work,
    download: Download,
    crates: Crates,
    cargo: Option<Running>,
    pull: Option<Running>,
    send: Sender<Event>,
    receive: Receiver<Event>,
}

impl<'a> Builder<'a> {
    fn new(data: &'a Path, model: &'a str) -> Self {
        let (send, receive) = channel();
        Self {
            data,
            model,
            began: Instant::now(),
            compiling: None,
            progress: Progress::new(),
            work: Work::default(),
            download: Download::default(),
            crates: Crates::look(),
            cargo: None,
            pull: None,
            send,
            receive,
        }
    }

    fn build(&mut self) -> Result<Built> {
        for program in PROGRAMS {
            self.run_cargo(program)?;
            if program == PROGRAMS[0] {
                self.start_pull()?;
            }
        }
        let built = Instant::now();
        while self.pull.is_some() {
            self.hear()?;
        }
        let compiling = self.compiling.unwrap_or(built);
        Ok(Built {
            archon: self.program(PROGRAMS[1])?,
            fetch: compiling - self.began,
            build: built - compiling,
            model: built.elapsed(),
        })
    }

    fn program(&self, name: &str) -> Result<PathBuf> {
        self.work.program(name).cloned().with_context(|| format!("cargo built no {name}"))
    }

    fn run_cargo(&mut self, program: &str) -> Result<()> {
        let words = || WHAT.split_whitespace().chain(["--bin", program]);
        self.progress.say(&format!("$ {}", CommandLine::new("cargo").args(words())));
        self.work.again();
        let mut command = Command::new("cargo");
        command.args(words()).args(["--message-format", "json-render-diagnostics"]);
        let child = listen(command, &self.send, Event::Cargo)?;
        self.cargo = Some(Running { child, streams: 2 });
        while self.cargo.is_some() {
            self.hear()?;
        }
        Ok(())
    }

    fn start_pull(&mut self) -> Result<()> {
        let mut command = Command::new(self.program(PROGRAMS[0])?);
        command.arg(self.data).arg(self.model);
        let child = listen(command, &self.send, Event::Pull)?;
        self.pull = Some(Running { child, streams: 2 });
        Ok(())
    }

    /// Waits a moment for the next event, and shows the progress.
    fn hear(&mut self) -> Result<()> {
        match self.receive.recv_timeout(Duration::from_millis(250)) {
            Ok(Event::Cargo(heard)) => self.hear_cargo(heard)?,
            Ok(Event::Pull(heard)) => self.hear_pull(heard)?,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let line = || line(self.compiling, self.began, &self.work, &self.download, &self.crates);
        self.progress.tick(line);
        Ok(())
    }

    fn hear_cargo(&mut self, heard: Heard) -> Result<()> {
        match heard {
            Heard::Out(line) => {
                self.work.message(&line);
                if self.work.done > 0 {
                    self.compiling.get_or_insert_with(Instant::now);
                }
            }
            Heard::Beside(line) => self.work.word(&line),
            Heard::Silent => {
                let Some(running) = &mut self.cargo else { return Ok(()) };
                let Some(status) = running.silent()? else { return Ok(()) };
                self.cargo = None;
                if !status.success() {
                    let said = self.work.complaints();
                    ensure!(
                        !said.is_empty(),
                        "cargo was ended before the command was built ({status}); run this again"
                    );
                    self.progress.say(said);
                    bail!("cargo could not build the command ({status}); what it said stands above");
                }
            }
        }
        Ok(())
    }

    fn hear_pull(&mut self, heard: Heard) -> Result<()> {
        match heard {
            Heard::Out(line) => {
                if let Some(text) = self.download.line(&line) {
                    self.progress.say(&text);
                }
            }
            Heard::Beside(line) => self.progress.say(&line),
            Heard::Silent => {
                let Some(running) = &mut self.pull else { return Ok(()) };
                let Some(status) = running.silent()? else { return Ok(()) };
                self.pull = None;
                let why = self.download.failure().unwrap_or("the program that fetches it does not say why");
                ensure!(status.success() && self.download.is_complete(), "the model was not fetched: {why}");
            }
        }
        Ok(())
    }
}

/// Returns the line of progress: the current work, its share, the time that is left.
fn line(
    compiling: Option<Instant>,
    began: Instant,
    work: &Work,
    download: &Download,
    crates: &Crates,
) -> String {
    let now = if work.now.is_empty() { String::new() } else { format!(" ({})", work.now) };
    let Some(compiling) = compiling else {
        let share = work.fetched as f64 / CRATES as f64;
        let left = remaining_text(remaining(share, began.elapsed()));
        let megabytes = crates.bytes_since() / 1_000_000;
        let elapsed = seconds(began.elapsed());
        return format!(
            "fetching: {} of about {CRATES} crates, {megabytes} MB{now}; {elapsed}{left}",
            work.fetched
        );
    };
    let elapsed = compiling.elapsed();
    if work.is_finished() {
        return format!("downloading: {}; {}", download.text(), seconds(elapsed));
    }
    let left = remaining_text(remaining(work.done as f64 / CRATES as f64, elapsed));
    let (done, elapsed) = (work.done, seconds(elapsed));
    format!("building: {done} of about {CRATES} crates{now}; {elapsed}{left}; {}", download.text())
}

/// Size of the crates that cargo has fetched.
struct Crates {
    before: u64,
}

impl Crates {
    fn look() -> Self {
        Self { before: Self::bytes() }
    }

    fn bytes_since(&self) -> u64 {
        Self::bytes().saturating_sub(self.before)
    }

    fn bytes() -> u64 {
        let Some(cache) = cargo_home().map(|home| home.join("registry/cache")) else { return 0 };
        let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries(cache).flat_map(|registry| entries(registry.path()));
        files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_crates_count_matches_the_progress() {
        let tree =
            format!("{} --edges normal,build --prefix none", WHAT.replace("build --profile demo", "tree"));
        let tree = CommandLine::cargo(&tree).output().unwrap();
        let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let there: std::collections::BTreeSet<String> = tree.lines().map(name).collect();
        let there = there.len();
        assert!(there <= CRATES, "{there} crates: the demo's build has become longer, which nobody may do");
        assert!(there + 60 > CRATES, "{there} crates: lower CRATES, so that the progress is right");
    }
}
