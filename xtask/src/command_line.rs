//! Runs other programs visibly: each command is printed as a person would type it, so that any step can be
//! repeated by hand.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repository;

/// A program with its arguments, run at the top of the repository unless another folder is set.
pub(crate) struct CommandLine {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

impl CommandLine {
    pub(crate) fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), folder: None }
    }

    /// Creates a `cargo` command from one line; no argument may contain a space.
    pub(crate) fn cargo(line: &str) -> Self {
        Self::new("cargo").args(line.split_whitespace())
    }

    pub(crate) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the folder to run in.
    pub(crate) fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Prints the command after `$ `, runs it on our own terminal and fails if it does.
    pub(crate) fn run(&self) -> Result<()> {
        println!("$ {self}");
        let status = self.command().status().with_context(|| self.not_started())?;
        if !status.success() {
            bail!("`{self}` failed ({status})");
        }
        Ok(())
    }

    /// Runs the command without printing it and returns its output; its stderr is in the error.
    pub(crate) fn output(&self) -> Result<String> {
        let output = self.command().output().with_context(|| self.not_started())?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("`{self}` failed ({}): {}", output.status, complaint.trim());
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("`{self}` printed something that is not UTF-8"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(self.folder.clone().unwrap_or_else(repository::root));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn not_started(&self) -> String {
        format!("`{}` could not be started; is it installed and on PATH?", self.program)
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// Returns the file that the shell would run for `program`.
pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(with_suffix(program)))
        .find(|file| file.is_file())
}

/// Returns the name of an executable on this system.
pub(crate) fn with_suffix(program: impl AsRef<Path>) -> PathBuf {
    let mut name = program.as_ref().as_os_str().to_owned();
    name.push(OsStr::new(std::env::consts::EXE_SUFFIX));
    name.into()
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@^~".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("\"{word}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_display_equals_its_source() {
        let line = CommandLine::cargo("doc --no-deps").env("RUSTDOCFLAGS", "-D warnings").args(["two words"]);
        assert_eq!(line.to_string(), r#"RUSTDOCFLAGS="-D warnings" cargo doc --no-deps "two words""#);
    }

    #[test]
    fn a_failure_names_the_line_and_a_missing_program() {
        let message = CommandLine::cargo("no-such-chore").output().unwrap_err().to_string();
        assert!(message.starts_with("`cargo no-such-chore` failed ("), "{message}");
        let message = CommandLine::new("no-such-program").output().unwrap_err().to_string();
        assert_eq!(message, "`no-such-program` could not be started; is it installed and on PATH?");
    }
}
