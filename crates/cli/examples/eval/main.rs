//! Measures what a local model makes of the framework, greedy, with the real loop, the real guards and the real tools:
//!
//! - `tasks`: 40 tasks of `tasks.json`, each a run of its own of at most three turns;
//! - `plans`: 12 goals of `plans.json`, each planned and followed to its end;
//! - `talk`: 20 turns of `talk.json`, which need no tool.
//!
//! `cargo xtask eval local` fetches the model and runs it; `… --example eval -- MODEL.gguf [--verbose] [--check]
//! [--only NAME]` takes any in a folder `models` beside the folder `engines`, as `archon model pull` keeps them. With
//! `--check` it fails if a share is below what is required. One thread and one kernel compute, so that figures repeat.

#![allow(clippy::print_stdout, reason = "a program prints")]

mod plans;
mod talk;
mod tasks;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use archon::tools::{Workspace, builtin};
use archon::types::{ExecutionLimits, OnLimit};
use archon::{Archon, Provider};
use archon_local_model::{LocalEngineOptions, LocalModel, LocalModelOptions, engine_path, prebuilt};
use serde::de::DeserializeOwned;

/// A run that has not ended by then has failed.
const MAX_TURNS: u32 = 3;

/// The parts that can be measured alone.
const PARTS: [&str; 3] = ["tasks", "plans", "talk"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let Arguments { path, verbose, check, only } = arguments()?;
    let model = LocalModel::load(&path, LocalModelOptions::default().with_engine(engine(&path)?))?;
    println!("model: {} ({})", model.name(), path.file_name().unwrap_or_default().display());
    let agent = agent(Arc::new(model), &folder().join("workspace"))?;

    let mut missed = Vec::new();
    for part in PARTS.into_iter().filter(|part| only.as_deref().is_none_or(|only| only == *part)) {
        let begun = Instant::now();
        let mut found = match part {
            "tasks" => tasks::measure(&agent, verbose).await?,
            "plans" => plans::measure(&agent, verbose).await?,
            _ => talk::measure(&agent, verbose).await?,
        };
        println!("{:.0} s\n", begun.elapsed().as_secs_f64());
        missed.append(&mut found);
    }
    if check && !missed.is_empty() {
        bail!("below what is required: {}", missed.join(", "));
    }
    Ok(())
}

/// Reads one of the files beside this program.
fn read<T: DeserializeOwned>(file: &str) -> Result<T> {
    Ok(serde_json::from_str(&std::fs::read_to_string(folder().join(file))?)?)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/eval")
}

fn mark(good: bool) -> &'static str {
    if good { "ok" } else { "--" }
}

/// A row of a table: what was counted, of how many, and the least percentage.
struct Row {
    what: &'static str,
    of: usize,
    right: usize,
    required: usize,
}

/// Prints a table and returns the rows that miss what is required of them.
fn table(rows: &[Row]) -> Vec<String> {
    let mut missed = Vec::new();
    println!("\n| | of | right | share | required |\n|---|---|---|---|---|");
    for Row { what, of, right, required } in rows {
        let share = 100.0 * *right as f64 / (*of).max(1) as f64;
        println!("| {what} | {of} | {right} | {share:.0} % | {required} % |");
        if *of == 0 || 100 * right < required * of {
            missed.push(format!("{what} ({right} of {of}, {required} % wanted)"));
        }
    }
    println!();
    missed
}

/// The kernel that every processor with AVX2 has.
const KERNEL: &str = "haswell";

/// The engine beside the model, with one thread and one kernel: others give other last digits, and so other answers.
fn engine(model: &Path) -> Result<LocalEngineOptions> {
    let prebuilt = prebuilt().context("no engine is built for this machine")?;
    let data = model.parent().and_then(Path::parent).context("the model's folder has none above it")?;
    let folder = engine_path(&data.join("engines"), prebuilt);
    Ok(LocalEngineOptions::default().with_folder(folder).with_kernel(KERNEL).with_threads(1))
}

struct Arguments {
    path: PathBuf,
    verbose: bool,
    check: bool,
    only: Option<String>,
}

/// The model's path: the first argument, or the variable that the tests use too.
fn arguments() -> Result<Arguments> {
    let mut path = std::env::var_os("ARCHON_TEST_MODEL").map(PathBuf::from);
    let (mut verbose, mut check, mut only) = (false, false, None);
    let mut words = std::env::args().skip(1);
    while let Some(argument) = words.next() {
        match argument.as_str() {
            "--verbose" => verbose = true,
            "--check" => check = true,
            "--only" => only = words.next().filter(|part| PARTS.contains(&part.as_str())),
            other if other.starts_with('-') => {
                bail!("unknown option {other}; there is: --verbose, --check, --only {}", PARTS.join("|"))
            }
            file => path = Some(file.into()),
        }
    }
    let path = path.context("name a model: eval MODEL.gguf, or set ARCHON_TEST_MODEL")?;
    Ok(Arguments { path, verbose, check, only })
}

fn agent(model: Arc<dyn Provider>, workspace: &Path) -> Result<Archon> {
    let mut limits = ExecutionLimits::default();
    (limits.max_turns, limits.on_limit) = (MAX_TURNS, OnLimit::Error);
    let tools = builtin::builtin_tools(&Workspace::new(workspace)?);
    Ok(Archon::builder().provider(model, "local").tools(tools).limits(limits).build()?)
}

/// Whether the text holds the part as whole words, whatever the case.
fn says(text: &str, part: &str) -> bool {
    let (text, part) = (without_thousands(&text.to_lowercase()), part.to_lowercase());
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(&part).any(|(at, _)| {
        let after = &text[at + part.len()..];
        let goes_on = is_word(after.chars().next())
            || (part.ends_with(|c: char| c.is_ascii_digit())
                && after.starts_with('.')
                && is_word(after.chars().nth(1)));
        let before = text[..at].chars().next_back();
        // -5 is not 5.
        let is_negative = before == Some('-') && part.starts_with(|c: char| c.is_ascii_digit());
        !is_word(before) && !is_negative && !goes_on
    })
}

/// `1,081` as `1081`; any other comma stays.
fn without_thousands(text: &str) -> String {
    let digit = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    let between = |at: usize| digit(at.checked_sub(1)) && (1..=3).all(|n| digit(Some(at + n)));
    text.char_indices().filter(|(at, c)| *c != ',' || !between(*at)).map(|(_, c)| c).collect()
}
