//! `cargo xtask fuzz [TARGET...] [--seconds N]`: fuzzes the parsers of foreign text. The targets are the
//! files of `tests/fuzz/fuzz_targets`, each run by itself for N seconds.
//!
//! They are built with coverage by the normal compiler, so neither a nightly compiler nor cargo-fuzz is
//! needed. Interesting inputs stay in `tests/fuzz/corpus`, where the next run begins; an input that breaks a
//! target is written to `tests/fuzz/artifacts`, and its path is printed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::args::Args;
use crate::command_line::{CommandLine, with_suffix};
use crate::repository;

/// Default seconds for each target.
const SECONDS: u64 = 600;

/// The compiler flags of cargo-fuzz, without a sanitizer, which needs a nightly compiler.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

const FOLDER: &str = "tests/fuzz";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let seconds = seconds(args.option("--seconds")?.as_deref())?;
    let targets = chosen(args.rest(), &targets()?)?;
    let host = host(&CommandLine::new("rustc").args(["-vV"]).output()?)?;
    for target in &targets {
        build(target, &host).run()?;
    }
    for target in &targets {
        let (corpus, artifacts) =
            (format!("{FOLDER}/corpus/{target}"), format!("{FOLDER}/artifacts/{target}/"));
        for folder in [&corpus, &artifacts] {
            let folder = repository::root().join(folder);
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        program(target, &host, seconds, &corpus, &artifacts).run()?;
    }
    Ok(())
}

/// Returns the names of all targets, which are those of their files.
fn targets() -> Result<Vec<String>> {
    let folder = repository::root().join(FOLDER).join("fuzz_targets");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the chosen targets; by default all.
fn chosen(words: Vec<String>, targets: &[String]) -> Result<Vec<String>> {
    if let Some(word) = words.iter().find(|word| !targets.contains(word)) {
        bail!("there is no fuzz target `{word}`; there are: {}", targets.join(", "));
    }
    Ok(if words.is_empty() { targets.to_vec() } else { words })
}

/// Parses a number of seconds; 0 is refused, since the fuzzer would run for ever.
pub(crate) fn seconds(said: Option<&str>) -> Result<u64> {
    let Some(said) = said else { return Ok(SECONDS) };
    let seconds = said.parse().unwrap_or(0);
    ensure!(seconds > 0, "`{said}` is not a whole number of seconds above 0; give one, or leave it out");
    Ok(seconds)
}

/// Returns the host platform of the compiler, from `rustc -vV`.
fn host(version: &str) -> Result<String> {
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` does not say what it builds for")?.trim().to_owned())
}

/// Builds a target. `--target` keeps coverage out of build scripts and macros.
fn build(target: &str, host: &str) -> CommandLine {
    CommandLine::cargo(&format!(
        "build --quiet --release --manifest-path {FOLDER}/Cargo.toml --target-dir {FOLDER}/target --target {host} --bin {target}"
    ))
    .env("RUSTFLAGS", COVERAGE)
}

fn program(target: &str, host: &str, seconds: u64, corpus: &str, artifacts: &str) -> CommandLine {
    let program = Path::new(FOLDER).join("target").join(host).join("release").join(with_suffix(target));
    // An input that takes a minute counts as a failure.
    CommandLine::new(program.display().to_string())
        .args([format!("-max_total_time={seconds}"), "-timeout=60".to_owned()])
        .args(["-verbosity=0", "-print_funcs=0", "-print_final_stats=1"])
        .args([format!("-artifact_prefix={artifacts}"), corpus.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_target_is_run_unless_some_are_named() {
        let all = targets().unwrap();
        assert!(all.iter().any(|name| name == "sse"), "{all:?}");
        assert_eq!(chosen(words(""), &all).unwrap(), all);
        assert_eq!(chosen(words("sse record"), &all).unwrap(), ["sse", "record"]);
        for wrong in ["sse lunch", "lunch"] {
            let error = chosen(words(wrong), &words("record sse")).unwrap_err().to_string();
            assert_eq!(error, "there is no fuzz target `lunch`; there are: record, sse");
        }
    }

    #[test]
    fn every_target_is_a_program_of_the_package() {
        let manifest = fs::read_to_string(repository::root().join(FOLDER).join("Cargo.toml")).unwrap();
        for target in targets().unwrap() {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
        }
    }

    #[test]
    fn seconds_are_a_number_above_nothing() {
        assert_eq!(seconds(None).unwrap(), 600);
        assert_eq!(seconds(Some("30")).unwrap(), 30);
        for wrong in ["0", "-1", "ten", "1.5", ""] {
            let error = seconds(Some(wrong)).unwrap_err().to_string();
            let problem = "is not a whole number of seconds above 0; give one, or leave it out";
            assert_eq!(error, format!("`{wrong}` {problem}"));
        }
    }

    #[test]
    fn fuzz_target_starts_from_its_saved_corpus() {
        assert_eq!(host("rustc 1.0.0\nhost: here\nrelease: 1.0.0\n").unwrap(), "here");
        assert!(host("rustc 1.0.0").is_err());
        let line =
            program("sse", "here", 30, "tests/fuzz/corpus/sse", "tests/fuzz/artifacts/sse/").to_string();
        assert!(line.contains("release/sse"), "{line}");
        assert!(line.ends_with("-artifact_prefix=tests/fuzz/artifacts/sse/ tests/fuzz/corpus/sse"), "{line}");
    }
}
