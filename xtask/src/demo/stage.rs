//! The surroundings of the scenes: the command as a person types it, its own folder, and the logs of its
//! runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::progress::seconds;
use crate::command_line::CommandLine;

/// The command and its folders.
pub(super) struct Stage {
    archon: PathBuf,
    workspace: PathBuf,
    /// The folder of its runs.
    runs: PathBuf,
    /// A settings folder instead of the user's, if the user has one.
    settings: Option<PathBuf>,
}

/// The longest time without output, if there is no terminal on which something moves.
const QUIET: Duration = Duration::from_secs(9);

/// The longest time for one command, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The wait for a command.
pub(super) struct Waiting {
    began: Instant,
    said: Instant,
}

impl Waiting {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { began: now, said: now }
    }

    /// Returns whether it took too long. Prints a line from time to time; on a terminal the command itself
    /// shows that it is alive.
    pub(super) fn is_over(&mut self) -> bool {
        if self.said.elapsed() > QUIET && !io::stderr().is_terminal() {
            self.said = Instant::now();
            println!("(the model is at work: {})", seconds(self.began.elapsed()));
        }
        self.began.elapsed() > PATIENCE
    }
}

impl Stage {
    /// Empties the workspace and prints the folders.
    pub(super) fn set(archon: PathBuf, workspace: PathBuf, data: &Path) -> Result<Self> {
        if workspace.exists() {
            fs::remove_dir_all(&workspace)
                .with_context(|| format!("cannot empty {}", workspace.display()))?;
        }
        fs::create_dir_all(&workspace).with_context(|| format!("cannot create {}", workspace.display()))?;
        let settings = user_settings().map(|_| workspace.join(".settings"));
        let stage = Self { archon, workspace, runs: data.join("runs"), settings };
        println!("\n$ alias archon={}", stage.archon.display());
        println!("$ cd {}", stage.workspace.display());
        if let Some(folder) = &stage.settings {
            println!("$ export XDG_CONFIG_HOME={}  # your own settings stay out of this", folder.display());
        }
        Ok(stage)
    }

    /// Returns the path of a file in the workspace.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    /// Runs the command visibly and returns its exit code.
    pub(super) fn run(&self, words: &[&str]) -> Result<i32> {
        let mut child = self.start(words)?;
        let mut waiting = Waiting::new();
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for the command")? {
                return Ok(status.code().unwrap_or(-1));
            }
            thread::sleep(Duration::from_millis(20));
            if waiting.is_over() {
                let _ = child.kill();
                let _ = child.wait();
                bail!("`{}` did not end within {}", typed(words), seconds(PATIENCE));
            }
        }
    }

    /// As [`run`](Self::run), but fails for any other exit code.
    pub(super) fn run_to(&self, words: &[&str], expected: i32) -> Result<()> {
        let code = self.run(words)?;
        if code != expected {
            bail!("`{}` ended with the exit code {code} instead of {expected}", typed(words));
        }
        Ok(())
    }

    /// Prints the command line and starts it.
    pub(super) fn start(&self, words: &[&str]) -> Result<Child> {
        println!("\n$ {}", typed(words));
        let _ = io::stdout().flush();
        self.command(words).spawn().with_context(|| format!("cannot start {}", self.archon.display()))
    }

    /// Runs the command silently and returns its output.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String> {
        let output = self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
        let output = output.with_context(|| format!("cannot start {}", self.archon.display()))?;
        if !output.status.success() {
            bail!("`{}` failed: {}", typed(words), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// As [`ask`](Self::ask), for JSON: one value for each line.
    pub(super) fn ask_json(&self, words: &[&str]) -> Result<Vec<Value>> {
        let text = self.ask(&[words, &["--json"]].concat())?;
        text.lines()
            .map(|line| {
                serde_json::from_str(line).with_context(|| format!("`{}` printed no JSON", typed(words)))
            })
            .collect()
    }

    /// Returns the log of a run.
    pub(super) fn log(&self, run: &str) -> Result<Log> {
        Ok(Log { run: run.to_owned(), records: self.ask_json(&["runs", "events", run])? })
    }

    /// Returns the ids of the stored runs.
    pub(super) fn stored_runs(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.runs).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".jsonl")?.to_owned());
        entries.filter_map(name).collect()
    }

    /// Returns the run that works on `task` and is not in `before`, with the text of its log.
    pub(super) fn newest(&self, before: &BTreeSet<String>, task: &str) -> Option<(String, String)> {
        self.stored_runs().difference(before).find_map(|run| {
            let log = fs::read_to_string(self.runs.join(format!("{run}.jsonl"))).ok()?;
            log.contains(task).then(|| (run.clone(), log))
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.archon);
        command.args(words).current_dir(&self.workspace).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            // Settings of the person's own work would change the demo.
            if name.to_str().is_some_and(|name| name.starts_with("ARCHON_") && name != "ARCHON_DATA_DIR") {
                command.env_remove(name);
            }
        }
        if let Some(folder) = &self.settings {
            command.env("XDG_CONFIG_HOME", folder);
        }
        command
    }
}

/// Formats the command line as it is typed.
pub(super) fn typed(words: &[&str]) -> String {
    CommandLine::new("archon").args(words.iter().copied()).to_string()
}

/// Returns the user's settings folder, if it exists.
fn user_settings() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder =
        set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?.join("archon");
    folder.is_dir().then_some(folder)
}

/// The records of a run.
pub(super) struct Log {
    run: String,
    records: Vec<Value>,
}

impl Log {
    pub(super) fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.records.iter().filter(move |record| record["type"] == kind)
    }

    pub(super) fn count(&self, kind: &str) -> usize {
        self.of(kind).count()
    }

    /// Returns the answer of a run that has ended.
    pub(super) fn answer(&self) -> &str {
        self.of("run_finished").last().and_then(|record| record["answer"].as_str()).unwrap_or_default()
    }

    /// Returns the names of the called tools, in order.
    pub(super) fn called(&self) -> Vec<&str> {
        let parts = self
            .of("model_call_finished")
            .filter_map(|record| record["message"]["content"].as_array())
            .flatten();
        parts.filter(|part| part["type"] == "toolCall").filter_map(|part| part["name"].as_str()).collect()
    }

    /// Prints that a check holds, or fails with what was found and where to look.
    pub(super) fn check(&self, is_true: bool, what: &str, found: &str) -> Result<()> {
        if is_true {
            println!("checked in the log: {what}");
            return Ok(());
        }
        bail!("the log does not show that {what}: {found}\n  see: archon runs show {}", self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(records: &str) -> Log {
        Log {
            run: "run_1".into(),
            records: records.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        }
    }

    #[test]
    fn log_of_a_run_tells_its_calls_and_its_answer() {
        let log = log(concat!(
            r#"{"type":"model_call_finished","message":{"content":[{"type":"toolCall","name":"calculator"}]}}"#,
            "\n",
            r#"{"type":"tool_call_started"}"#,
            "\n",
            r#"{"type":"run_finished","answer":"It is 30."}"#
        ));
        assert_eq!(
            (log.called(), log.count("tool_call_started"), log.answer()),
            (vec!["calculator"], 1, "It is 30.")
        );
    }

    #[test]
    fn check_failure_names_the_found_value_and_the_place() {
        let error = log("").check(false, "the tool ran once", "it ran 2 times").unwrap_err().to_string();
        assert_eq!(
            error,
            "the log does not show that the tool ran once: it ran 2 times\n  see: archon runs show run_1"
        );
    }

    #[test]
    fn typed_line_can_be_typed() {
        assert_eq!(typed(&["run", "What is 15% of 200?"]), r#"archon run "What is 15% of 200?""#);
    }
}
