//! `cargo xtask accept security`: runs the tests behind each promise of `SECURITY.md`, one line each, in full
//! length. They run as the current user; if that is root, also as an ordinary user, who has no cgroups.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command_line::find_on_path;
use crate::repository;

pub(crate) const NAME: &str = "security";

mod promises;
use promises::{PROMISES, Promise};

/// An ordinary user id that no system uses.
const USER: &str = "54321";

pub(crate) fn run(seed: Option<&str>) -> Result<()> {
    let mut failed = Vec::new();
    for who in users() {
        println!("\n# as {}", who.name());
        failed.extend(try_all(&who, seed)?);
    }
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("the tests of {} promises of SECURITY.md failed: {}", failed.len(), failed.join("; "))
    }
}

enum User {
    Myself,
    /// An ordinary user, through `setpriv`.
    Ordinary,
}

/// Returns the users to test as; for root there are two.
fn users() -> Vec<User> {
    let id = Command::new("id").arg("-u").output().map(|output| output.stdout).unwrap_or_default();
    if id.trim_ascii() != b"0" {
        return vec![User::Myself];
    }
    if find_on_path("setpriv").is_none() {
        println!("SKIP: as an ordinary user: there is no `setpriv` (package util-linux)");
        return vec![User::Myself];
    }
    vec![User::Myself, User::Ordinary]
}

impl User {
    fn name(&self) -> &'static str {
        match self {
            Self::Myself => "the user who started this",
            Self::Ordinary => "an ordinary user, without cgroups",
        }
    }

    fn command(&self, program: &Path, home: &Path) -> Command {
        match self {
            Self::Myself => Command::new(program),
            Self::Ordinary => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs", "--"]);
                command.arg(program).env("HOME", home).env("TMPDIR", home);
                command
            }
        }
    }
}

/// Prints a line for each promise; returns those whose tests failed.
fn try_all(who: &User, seed: Option<&str>) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    let mut built: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    for promise in PROMISES {
        if matches!(who, User::Ordinary) && !promise.of_kernel {
            continue;
        }
        let programs = match built.get(promise.build) {
            Some(programs) => programs,
            None => built.entry(promise.build).or_insert(build(promise.build)?),
        };
        let found = try_one(promise, programs, who, seed)?;
        println!(
            "{}: {} ({})",
            if found.is_held() { "held" } else { "NOT HELD" },
            promise.text,
            found.text()
        );
        if !found.is_held() {
            failed.push(promise.text.to_owned());
        }
    }
    Ok(failed)
}

/// Builds the tests of a package; returns the test programs.
fn build(line: &str) -> Result<Vec<PathBuf>> {
    println!("$ cargo test {line} --no-run");
    let mut command = Command::new("cargo");
    command.arg("test").args(line.split_whitespace());
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    command.current_dir(repository::root()).stderr(Stdio::inherit());
    let output = command.output().context("cargo could not be started")?;
    if !output.status.success() {
        bail!("`cargo test {line} --no-run` failed");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|message| message["profile"]["test"] == true);
    Ok(tests.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect())
}

/// The outcome of a promise's tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    passed: usize,
    failed: Vec<String>,
    missing: Vec<String>,
}

impl Found {
    fn is_held(&self) -> bool {
        self.failed.is_empty() && self.missing.is_empty()
    }

    fn text(&self) -> String {
        let mut text = format!("{} passed", self.passed);
        for (what, names) in [("failed", &self.failed), ("not there", &self.missing)] {
            if !names.is_empty() {
                text.push_str(&format!(", {what}: {}", names.join(", ")));
            }
        }
        text
    }

    /// Adds the results that a test program printed.
    fn read(&mut self, printed: &str) {
        for line in printed.lines() {
            let Some((name, outcome)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
            else {
                continue;
            };
            // Programs without the standard harness pad the names.
            let name = name.trim_end();
            self.missing.retain(|wanted| !name.contains(wanted.as_str()));
            match outcome {
                "ok" => self.passed += 1,
                "FAILED" => self.failed.push(name.to_owned()),
                // Helper processes, and tests that this machine cannot run.
                _ => {}
            }
        }
    }
}

fn try_one(promise: &Promise, programs: &[PathBuf], who: &User, seed: Option<&str>) -> Result<Found> {
    let mut found =
        Found { missing: promise.tests.iter().map(|&name| name.to_owned()).collect(), ..Found::default() };
    let home = std::env::temp_dir().join(format!("archon-accept-security-{}", std::process::id()));
    std::fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    let _ = Command::new("chmod").arg("777").arg(&home).status();
    for program in programs {
        let mut command = who.command(program, &home);
        command.args(promise.tests).arg("--test-threads=2").env("ARCHON_ACCEPT", "full");
        if let Some(seed) = seed {
            command.env("ARCHON_ACCEPT_SEED", seed);
        }
        // In the package's own folder, as cargo does it.
        if let Some(folder) = promise.folder() {
            command.current_dir(repository::root().join(folder));
        }
        let output = command.output().with_context(|| format!("cannot start {}", program.display()))?;
        found.read(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            println!("{}", String::from_utf8_lossy(&output.stdout));
        }
    }
    let _ = std::fs::remove_dir_all(&home);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_of_test_output_counts_passed_and_lists_missing_tests() {
        let mut found = Found { missing: vec!["one".into(), "three".into()], ..Found::default() };
        found.read("running 2 tests\ntest a::one_is   ... ok\ntest b::one_more ... FAILED\n");
        assert_eq!(found.text(), "1 passed, failed: b::one_more, not there: three");
        assert!(!found.is_held());
    }

    #[test]
    fn folders_of_promises_are_in_the_repository() {
        for promise in PROMISES {
            let folder = promise.folder().unwrap();
            assert!(
                repository::root().join(&folder).join("Cargo.toml").exists(),
                "{}: {folder}",
                promise.build
            );
        }
    }

    #[test]
    fn promises_name_existing_tests() {
        let files = crate::repository::text_files().unwrap();
        // Without the list of promises, which names them all.
        let sources = files.into_iter().filter(|file| file.is_rust() && !file.path.ends_with("promises.rs"));
        let sources: String = sources.map(|file| file.text).collect();
        for promise in PROMISES {
            for test in promise.tests {
                let name = test.rsplit("::").next().unwrap_or(test);
                assert!(sources.contains(name), "{}: no test {name}", promise.text);
            }
        }
    }
}
