//! `cargo xtask rust-version`: checks that the workspace builds with the Rust version that `Cargo.toml` declares. If that
//! is the version in use, every other check has shown it.

use std::fs;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::repository;

const CHECK: &str = "check --workspace --exclude xtask --all-targets";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    let manifest =
        fs::read_to_string(repository::root().join("Cargo.toml")).context("cannot read Cargo.toml")?;
    let declared = declared(&manifest).context("Cargo.toml declares no rust-version")?;
    let used = CommandLine::new("rustc").args(["--version"]).output()?;
    if is_of(&used, declared) {
        println!("{} is the declared version, so every other check proves it", used.trim());
        return Ok(());
    }
    let toolchain = format!("+{declared}");
    let line = CommandLine::new("cargo").args([toolchain]).args(CHECK.split(' '));
    line.run().with_context(|| format!("if the toolchain is missing: `rustup toolchain install {declared}`"))
}

fn declared(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "))?;
    Some(line.trim_matches('"'))
}

/// Returns whether `rustc --version` printed a version such as `1.95` or `1.95.2` for `1.95`.
fn is_of(printed: &str, declared: &str) -> bool {
    let version = printed.split(' ').nth(1).unwrap_or_default();
    version == declared || version.strip_prefix(declared).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_of_compares_major_and_minor_version() {
        assert!(is_of("rustc 1.95.0 (f2d3ce0bd 2026-03-21)", "1.95"));
        assert!(!is_of("rustc 1.950.0", "1.95") && !is_of("rustc 1.96.0", "1.95") && !is_of("", "1.95"));
        assert_eq!(declared("[workspace.package]\nrust-version = \"1.95\"\n"), Some("1.95"));
    }
}
