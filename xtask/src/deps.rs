//! `cargo xtask deps`: what each of our crates costs whoever depends on it, in crates and in build time.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs, process};

use anyhow::{Context, Result};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::metadata::Metadata;

/// Packages that nobody depends on.
const NOT_SHIPPED: &[&str] = &["archon-tests", "xtask"];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = args.flag("--build");
    args.finish()?;
    let packages = Metadata::load()?.packages;
    println!("{:22} {:>6}{}", "crate", "crates", if build { "  build CPU s" } else { "" });
    for package in packages.iter().filter(|package| !NOT_SHIPPED.contains(&&*package.name)) {
        let name = &package.name;
        let tree =
            CommandLine::cargo(&format!("tree --edges normal --prefix none --package {name}")).output()?;
        print!("{name:22} {:>6}", count(&tree));
        if build {
            print!("  {:>11.1}", build_seconds(name)?);
        }
        println!();
    }
    println!("(with default features; the crate itself counts as one)");
    Ok(())
}

/// Distinct crates in the lines of `cargo tree --prefix none`: repeated ones are marked and folded.
fn count(tree: &str) -> usize {
    let mark = " (*)";
    tree.lines().map(|line| line.strip_suffix(mark).unwrap_or(line)).collect::<BTreeSet<_>>().len()
}

/// CPU time of a clean build, which wall time on a busy machine would not tell. The shell's own `times` measures
/// it: the standard library cannot.
fn build_seconds(package: &str) -> Result<f64> {
    let target = env::temp_dir().join(format!("archon-deps-{}", process::id()));
    let measured = measure(package, &target);
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    }
    measured
}

fn measure(package: &str, target: &Path) -> Result<f64> {
    let build = format!("cargo build --quiet --package {package} || exit; times");
    let line =
        CommandLine::new("sh").args(["-c", &build]).env("CARGO_TARGET_DIR", target.display().to_string());
    let times = line.output()?;
    children_seconds(&times)
        .with_context(|| format!("the shell's `times` printed something unexpected: {times:?}"))
}

/// The second line of `times` holds user and system time of the children, as `1m2.50s 0m4.00s`.
fn children_seconds(times: &str) -> Option<f64> {
    times.lines().nth(1)?.split_whitespace().map(seconds).sum()
}

fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_crate_counts_once() {
        assert_eq!(count("archon v0.1.0 (a)\nserde v1.0.0\nitoa v1.0.0\nserde v1.0.0 (*)\n"), 3);
    }

    #[test]
    fn the_shell_measures_the_children() {
        assert_eq!(children_seconds("0m0.00s 0m0.01s\n1m2.50s 0m4.00s\n"), Some(66.5));
        assert_eq!(children_seconds("nonsense"), None);
    }
}
