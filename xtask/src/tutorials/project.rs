//! The project of a tutorial in a folder of its own, and its commands, in a clean environment and without the network.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::lesson::Part;
use crate::book::output::Ids;
use crate::book::session::{self, Step, Verdict};
use crate::repository;

/// Only a command that hangs takes so long, also the first build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(45 * 60);
/// The clone in the dependencies of the pages, which is beside the reader's project.
const CLONE: &str = "\"../archon/";

pub(crate) struct Project {
    /// The folder of the page, which is also the home directory.
    home: PathBuf,
    /// The current folder of the commands.
    folder: PathBuf,
    /// What cargo builds for all projects.
    builds: PathBuf,
    /// Lines that define aliases. Each command has a shell of its own.
    aliases: String,
    ids: Ids,
}

impl Project {
    /// Creates the folder of a page, which must not exist. `builds` is the shared folder of cargo's results.
    pub(crate) fn create(home: &Path, builds: &Path) -> Result<Self> {
        fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
        let (home, builds) = (home.to_owned(), builds.to_owned());
        Ok(Self { folder: home.clone(), home, builds, aliases: String::new(), ids: Ids::default() })
    }

    /// Takes a step that is no command.
    pub(crate) fn prepare(&mut self, part: &Part) -> Result<()> {
        match part {
            Part::Project { script, name } => {
                let (exit, printed) = self.execute(&format!("set -e\n{script}"), None)?;
                if exit != Some(0) {
                    bail!("the project cannot be created: {}", printed.join("\n"));
                }
                self.folder = self.home.join(name);
                // The versions that were fetched for the workspace; others would need the network.
                fs::copy(repository::root().join("Cargo.lock"), self.folder.join("Cargo.lock"))
                    .context("cannot copy Cargo.lock")?;
            }
            Part::Dependencies(table) => self.set_dependencies(table)?,
            Part::File { name, text } => self.write(name, text)?,
            Part::Appended { name, text } => {
                let mut file = OpenOptions::new().append(true).open(self.folder.join(name))?;
                write!(file, "\n{text}").with_context(|| format!("cannot write {name}"))?;
            }
            Part::Edit { name, old, new } => {
                let text = self.read(name)?;
                match text.matches(old.as_str()).count() {
                    1 => self.write(name, &text.replace(old.as_str(), new))?,
                    times => bail!("{name} has `{old}` {times} times, not once: the edit does not fit"),
                }
            }
            Part::Command { .. } | Part::LeftOut => {}
        }
        Ok(())
    }

    /// Runs a command and compares its output with the page.
    pub(crate) fn check(&mut self, step: &Step, typed: Option<&str>) -> Result<Verdict> {
        if let [id, ..] = self.ids.unknown(&step.command)[..] {
            return Ok(Verdict::Problem(format!("no output above this command has {id}")));
        }
        if step.command.starts_with("alias ") {
            self.aliases.push_str(&format!("{}\n", step.command));
            return Ok(Verdict::Fits);
        }
        let (mut exit, mut printed) = self.execute(&self.ids.to_real(&step.command), typed)?;
        if exit.is_none() && printed.last().is_none_or(|line| line != "Killed") {
            // The reader's shell says so; here, the shell itself may be the process that was killed.
            printed.push("Killed".to_owned());
        }
        if printed.last().is_some_and(|line| line == "Killed") && exit.is_none_or(|code| code == 128 + 9) {
            exit = Some(session::expected_exit(&step.command));
        }
        if step.shown.first().is_none_or(|line| !line.is_empty()) {
            let blank = printed.iter().take_while(|line| line.is_empty()).count();
            printed.drain(..blank);
        }
        if let Some((at, line)) =
            typed.and_then(|typed| step.shown.iter().enumerate().find(|(_, line)| *line == typed))
        {
            // A terminal shows what is typed.
            printed.insert(at.min(printed.len()), line.clone());
        }
        Ok(session::verdict(step, exit, &printed, &mut self.ids))
    }

    /// Puts the page's table in the place of the empty one that `cargo new` writes, or of an earlier one.
    fn set_dependencies(&self, table: &str) -> Result<()> {
        let manifest = self.read("Cargo.toml")?;
        let package = manifest.split_once("[dependencies]").map_or(manifest.as_str(), |(package, _)| package);
        let root = format!("\"{}/", repository::root().display());
        self.write("Cargo.toml", &format!("{package}{}", table.replace(CLONE, &root)))
    }

    fn read(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.folder.join(name)).with_context(|| format!("cannot read {name}"))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.folder.join(name), text).with_context(|| format!("cannot write {name}"))
    }

    /// Runs a command in a shell. Returns its exit code, none after a signal, and the lines on both streams.
    fn execute(&self, command: &str, typed: Option<&str>) -> Result<(Option<i32>, Vec<String>)> {
        // In files, so that a process that the command leaves behind cannot block us.
        let (input, output) = (self.home.join(".input"), self.home.join(".output"));
        fs::write(&input, typed.map(|typed| format!("{typed}\n")).unwrap_or_default())?;
        let printed = File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
        // Cargo names itself here; the program of that name on the path may be rustup's, which needs the real home.
        let cargo = env::var_os("CARGO").map(PathBuf::from).unwrap_or_default();
        let tools = cargo.parent().unwrap_or(&cargo).display().to_string();
        let child = Command::new("sh")
            .args(["-c", &format!("{}{command}", self.aliases)])
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", format!("{tools}:/usr/local/bin:/usr/bin:/bin"))
            .env("CARGO_HOME", cargo_home())
            .env("CARGO_BUILD_BUILD_DIR", &self.builds)
            .envs([
                ("LANG", "C.UTF-8"),
                ("TZ", "UTC"),
                ("NO_COLOR", "1"),
                ("CARGO_NET_OFFLINE", "true"),
                // Nobody debugs these programs, and each of them would take some 100 MB more.
                ("CARGO_PROFILE_DEV_DEBUG", "0"),
                // Warnings of the compiler are not part of the output that pages show.
                ("RUSTFLAGS", "-Awarnings"),
            ])
            .stdin(Stdio::from(File::open(&input)?))
            .stdout(printed.try_clone()?)
            .stderr(printed)
            .spawn()
            .with_context(|| format!("cannot start `{command}`"))?;
        let exit = session::wait(child, command, PATIENCE)?;
        let text = String::from_utf8_lossy(&fs::read(&output)?).into_owned();
        let text = text.replace(&self.home.display().to_string(), "~");
        Ok((exit, text.lines().map(str::to_owned).collect()))
    }
}

/// Returns the folder with the crates that were fetched for the workspace.
fn cargo_home() -> PathBuf {
    let default = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(default, PathBuf::from)
}
