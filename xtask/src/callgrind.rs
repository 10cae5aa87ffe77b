//! Counts instructions of our programs with valgrind's callgrind: unlike times, the counts are repeatable.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command_line::find_on_path;
use crate::repository;

/// Behaviour if nothing can be counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Without {
    /// An error, since an acceptance run must have a result.
    Fail,
    /// A message on a person's machine; an error in CI.
    Skip,
}

/// Returns whether to skip because nothing can be counted here; then prints a message.
pub(crate) fn is_skipped(without: Without) -> Result<bool> {
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let is_there = find_on_path("valgrind").is_some();
    let skipped = skips(is_there, if is_ci { Without::Fail } else { without })?;
    if skipped {
        println!("SKIP: instructions are not counted: {MISSING}");
    }
    Ok(skipped)
}

fn skips(is_there: bool, without: Without) -> Result<bool> {
    if !is_there && without == Without::Fail {
        bail!("instructions cannot be counted: {MISSING}");
    }
    Ok(!is_there)
}

const MISSING: &str = "there is no `valgrind`; install that package, as with `apt-get install valgrind` or `dnf install valgrind`";

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository::root().join("target"), PathBuf::from)
}

/// Builds programs of a checkout with one cargo command, and returns their paths.
pub(crate) fn build<const N: usize>(
    root: &Path,
    target: &Path,
    line: &str,
    names: [&str; N],
) -> Result<[PathBuf; N]> {
    println!("$ cargo {line}");
    let mut build = Command::new("cargo");
    build.args(line.split(' ')).args(["--message-format", "json-render-diagnostics"]);
    build.current_dir(root).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit());
    let output = build.output().context("cargo could not be started")?;
    if !output.status.success() {
        bail!("`cargo {line}` failed");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut programs = [const { PathBuf::new() }; N];
    for (program, name) in programs.iter_mut().zip(names) {
        *program = executable(&messages, name).with_context(|| format!("cargo built no `{name}`"))?;
    }
    Ok(programs)
}

fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    messages
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// Result of a run: its instructions, and its output.
pub(crate) struct Counted {
    pub(crate) instructions: u64,
    pub(crate) stdout: String,
}

/// Runs a program under callgrind.
pub(crate) fn count(program: &Path, args: &[&str]) -> Result<Counted> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(args);
    let output = command.output().context("valgrind could not be started")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let collected = collected(&printed).filter(|_| output.status.success());
    let instructions = collected.with_context(|| {
        format!("valgrind could not count `{} {}`: {printed}", program.display(), args.join(" "))
    })?;
    Ok(Counted { instructions, stdout: String::from_utf8_lossy(&output.stdout).into_owned() })
}

/// Parses the number in the line `==12== Collected : 345`.
fn collected(printed: &str) -> Option<u64> {
    let line = printed.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_valgrind_is_an_error_where_a_result_is_wanted_and_a_skip_elsewhere() {
        assert!(!skips(true, Without::Fail).unwrap() && !skips(true, Without::Skip).unwrap());
        assert!(skips(false, Without::Skip).unwrap());
        let error = skips(false, Without::Fail).unwrap_err().to_string();
        assert!(error.contains("apt-get install valgrind"), "{error}");
    }

    #[test]
    fn collected_reads_the_count_of_valgrinds_output() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 345\n"), Some(345));
        assert_eq!(collected("==1== error"), None);
    }
}
