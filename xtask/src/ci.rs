//! `cargo xtask ci`: runs all checks, a short list that a person can type. It stops at the first failure. The
//! tests come last, so that their summary is the last thing on the screen.
//!
//! It needs no network once everything was fetched. Checks that depend on news from outside run before a
//! release: `cargo xtask advisories`.

use std::env;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::crate_downloads;

/// A command of cargo or xtask, with its purpose.
struct Step {
    what: &'static str,
    env: &'static [(&'static str, &'static str)],
    /// Arguments of cargo, without spaces inside.
    line: &'static str,
}

const fn step(what: &'static str, line: &'static str) -> Step {
    Step { what, env: &[], line }
}

/// Features of lints and tests: all but those that need a compiler for C++, so that one build has every test.
macro_rules! features {
    () => {
        "archon-agents/tokens,archon-agents/git,archon-agents/mcp-sign-in,archon-agents/mcp-serve-http,archon-agents/server-tls,archon-agents/server-websocket,archon-agents/openai-serve,archon-agents/openapi,archon-agents/hooks,archon-agents/skills,archon-agents/web,archon-agents/triggers,archon-agents/notify-mail,archon-agents/oauth,archon-agents/answers-mail,archon-agents/event-sources-imap,archon-agents/code-python,archon-agents/code-javascript,archon-agents-cli/embedder,archon-store/sqlite-memory,archon-store/postgres-memory,archon-tests/postgres"
    };
}

/// Cheap checks come first.
const STEPS: &[Step] = &[
    step("formatting", "fmt --all -- --check"),
    step("downloads, once and exactly as locked", "fetch --locked"),
    step("the Rust version that is declared", "xtask rust-version"),
    step("edges between crates, circles in them", "xtask layers"),
    step("house rules", "xtask tidy"),
    step("citations of the specification", "xtask spec --summary"),
    step("tools that cargo does not bring", "xtask prepare"),
    step("generated pages are current", "xtask codegen --check"),
    step("the book: links, blocks, commands and HTML", "xtask book --check"),
    step("licences, bans and sources", "deny --offline check --hide-inclusion-graph bans licenses sources"),
    step("how many crates ours bring", "xtask deps"),
    step("lints", concat!("clippy --workspace --all-targets --features ", features!(), " -- -D warnings")),
    step(
        "lints of the command without local models",
        "clippy -p archon-agents-cli --no-default-features --all-targets -- -D warnings",
    ),
    step(
        "tests of the command without its features",
        "test -p archon-agents-cli --no-default-features --test cli -- absent::",
    ),
    // The commit decides which, so that all have their turn; `cargo xtask accept features` checks all.
    step("each feature alone, a sample", "xtask features --sample 8"),
    Step {
        what: "documentation builds without warnings",
        env: &[("RUSTDOCFLAGS", "-D warnings")],
        line: "doc --workspace --no-deps",
    },
    step(
        "packages",
        "package --workspace --exclude archon-tests --exclude archon-evals --exclude xtask --no-verify --allow-dirty",
    ),
    Step {
        what: "tests of the local engine, with the models and not without",
        env: &[("ARCHON_REQUIRE_MODELS", "1")],
        line: "test -p archon-local-model --features engine,pull",
    },
    step("the project of `archon new` builds and passes its tests", "xtask new"),
    step("instructions of a turn, a delta, an append and a call", "xtask instructions"),
    step("mail servers for a test, where they can be installed", "xtask native-tools --mail"),
    // With their own servers, so that no test is skipped.
    step("tests of the bus and the pool across processes", "xtask redis test -p archon-redis"),
    step("tests", concat!("xtask postgres test --workspace --exclude archon-redis --features ", features!())),
];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let list = args.flag("--list");
    args.finish()?;
    if list {
        print!("{}", listing());
        return Ok(());
    }
    if let Some(cache) = cache_outside_the_clone(|name| env::var(name).ok()) {
        println!("building in {}", cache.display());
        let this = env::current_exe().context("cannot find our own program")?.display().to_string();
        // Starts itself again with the variables set for everything below. A CI service builds each thing
        // once, so it needs no incremental state and no debug info; that halves the cache.
        return CommandLine::new(this)
            .args(["ci"])
            .env("CARGO_TARGET_DIR", cache.display().to_string())
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .run();
    }
    let mut took = Vec::new();
    for (number, step) in STEPS.iter().enumerate() {
        // Before the last step, so that the tests' summary stays last on the screen.
        if number + 1 == STEPS.len() {
            println!("\n{}", durations(&took));
        }
        println!("\n[{}/{}] {}", number + 1, STEPS.len(), step.what);
        let begun = Instant::now();
        run_step(step)?;
        took.push((step.what, begun.elapsed().as_secs()));
    }
    Ok(())
}

/// Formats the time of each step, for docs/benchmarks.md.
fn durations(took: &[(&str, u64)]) -> String {
    let row = |(what, seconds): &(&str, u64)| format!("{:>4} s  {what}\n", seconds);
    let total: u64 = took.iter().map(|(_, seconds)| seconds).sum();
    format!("{}{total:>4} s  all of these", took.iter().map(row).collect::<String>())
}

fn run_step(step: &Step) -> Result<()> {
    let line = step.command_line();
    // Our own commands run in this process; a nested `cargo run` would wait for this one.
    let Some(ours) = step.line.strip_prefix("xtask ") else {
        // The step that downloads all crates of the lock file.
        return if step.line.starts_with("fetch ") { crate_downloads::run(&line) } else { line.run() };
    };
    println!("$ {line}");
    let mut words = ours.split_whitespace().map(str::to_owned);
    let name = words.next().unwrap_or_default();
    crate::dispatch(&name, words.collect()).with_context(|| format!("`{line}` failed"))
}

impl Step {
    fn command_line(&self) -> CommandLine {
        self.env.iter().fold(CommandLine::cargo(self.line), |line, (name, value)| line.env(name, *value))
    }
}

fn listing() -> String {
    STEPS.iter().map(|step| format!("{:72} # {}\n", step.command_line().to_string(), step.what)).collect()
}

/// Returns a cache folder outside the clone for a CI service, which keeps its cache directory but not the
/// clone's `target`. `None` on a person's machine, or if a target folder is set.
fn cache_outside_the_clone(var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if var("CI").as_deref() != Some("true") || var("CARGO_TARGET_DIR").is_some() {
        return None;
    }
    let cache = var("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(var("HOME")?).join(".cache")))?;
    Some(cache.join("archon-ci").join("target"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_typed_and_ends_with_the_tests() {
        let listing = listing();
        assert!(
            listing.contains("RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps "),
            "{listing}"
        );
        assert!(
            listing.lines().last().unwrap().starts_with("cargo xtask postgres test --workspace "),
            "{listing}"
        );
    }

    #[test]
    fn durations_are_listed_with_their_sum() {
        let listed = durations(&[("lints", 61), ("tests", 9)]);
        assert_eq!(listed, "  61 s  lints\n   9 s  tests\n  70 s  all of these");
    }

    #[test]
    fn every_step_of_ours_is_a_command() {
        for ours in STEPS.iter().filter_map(|step| step.line.strip_prefix("xtask ")) {
            let name = ours.split_whitespace().next().unwrap();
            assert!(crate::COMMANDS.iter().any(|command| command.name == name), "{name}");
        }
    }

    #[test]
    fn only_a_service_builds_outside_the_clone() {
        let cache = |vars: &[(&str, &str)]| {
            cache_outside_the_clone(|name| {
                vars.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned())
            })
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(cache(&[("HOME", "/h")]), None);
        assert_eq!(cache(&[("CI", "true"), ("HOME", "/h")]), path("/h/.cache/archon-ci/target"));
        assert_eq!(cache(&[("CI", "true"), ("XDG_CACHE_HOME", "/c")]), path("/c/archon-ci/target"));
        assert_eq!(cache(&[("CI", "true"), ("HOME", "/h"), ("CARGO_TARGET_DIR", "t")]), None);
    }
}
