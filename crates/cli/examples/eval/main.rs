//! Measures how well a local model uses tools: the 40 tasks of `tasks.json`, each a run of its own of at most three
//! turns, greedy, with the real loop, the real guards and the real tools. Prints one line a task and a table.
//!
//! `cargo xtask eval local` fetches the model and runs it; `… --example eval -- MODEL.gguf [--verbose] [--check]`
//! takes any in a folder `models` beside the folder `engines`, as `archon model pull` keeps them. With `--check` it
//! fails if a share is below what is [required](REQUIRED). One thread and one kernel compute, so that figures repeat.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use archon::tools::{Workspace, builtin};
use archon::types::{Content, ExecutionLimits, Json, OnLimit, RecordBody, ToolCall, ToolResult, Usage};
use archon::{Archon, Provider};
use archon_local_model::{EngineOptions, LocalModel, LocalModelOptions, engine_path, prebuilt};
use serde::Deserialize;

/// The rows of the table, and the percentage that each must reach. The first is what the grammar guarantees, the
/// others are what the smallest model that can be fetched must make of it.
const REQUIRED: [(&str, usize); 4] = [
    ("calls valid against their schema", 100),
    ("right tool, or none", 75),
    ("right arguments", 55),
    ("right final answer", 50),
];

/// A run that has not ended by then has failed.
const MAX_TURNS: u32 = 3;

#[derive(Deserialize)]
struct Tasks {
    tasks: Vec<Task>,
}

/// What a task is, and how it is judged; `about` in the file says what the fields mean.
#[derive(Deserialize)]
struct Task {
    id: String,
    task: String,
    tool: Option<String>,
    args: Option<Expected>,
    answer: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Value(f64),
    Path(String),
    Keywords(Vec<String>),
}

/// What came of one task.
struct Outcome {
    calls: usize,
    valid_calls: usize,
    tool: bool,
    args: bool,
    answer: bool,
    said: String,
    first: String,
    usage: Usage,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let Arguments { path, verbose, check } = arguments()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/eval");
    let tasks: Tasks = serde_json::from_str(&std::fs::read_to_string(folder.join("tasks.json"))?)?;
    let model = LocalModel::load(&path, LocalModelOptions::default().with_engine(engine(&path)?))?;
    println!("model: {} ({})", model.name(), path.file_name().unwrap_or_default().display());
    let agent = agent(Arc::new(model), &folder.join("workspace"))?;

    let begun = Instant::now();
    let mut outcomes = Vec::new();
    for task in &tasks.tasks {
        let outcome = run(&agent, task).await?;
        let mark = |good: bool| if good { "ok" } else { "--" };
        println!(
            "{}  tool {}  args {}  answer {}  {}",
            task.id,
            mark(outcome.tool),
            mark(outcome.args),
            mark(outcome.answer),
            task.task
        );
        if verbose || !(outcome.tool && outcome.args && outcome.answer) {
            println!("     first: {}\n     said: {}", outcome.first, outcome.said.replace('\n', "\\n"));
        }
        outcomes.push(outcome);
    }
    let missed = table(&outcomes, begun.elapsed().as_secs_f64());
    if check && !missed.is_empty() {
        bail!("below what is required: {}", missed.join(", "));
    }
    Ok(())
}

/// The kernel that every processor with AVX2 has.
const KERNEL: &str = "haswell";

/// The engine beside the model, with one thread and one kernel: others give other last digits, and so other answers.
fn engine(model: &Path) -> Result<EngineOptions> {
    let prebuilt = prebuilt().context("no engine is built for this machine")?;
    let data = model.parent().and_then(Path::parent).context("the model's folder has none above it")?;
    let folder = engine_path(&data.join("engines"), prebuilt);
    Ok(EngineOptions::default().with_folder(folder).with_kernel(KERNEL).with_threads(1))
}

struct Arguments {
    path: PathBuf,
    verbose: bool,
    check: bool,
}

/// The model's path: the first argument, or the variable that the tests use too.
fn arguments() -> Result<Arguments> {
    let mut path = std::env::var_os("ARCHON_TEST_MODEL").map(PathBuf::from);
    let (mut verbose, mut check) = (false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--verbose" => verbose = true,
            "--check" => check = true,
            other if other.starts_with('-') => bail!("unknown option {other}; there is: --verbose, --check"),
            file => path = Some(file.into()),
        }
    }
    let path = path.context("name a model: eval MODEL.gguf, or set ARCHON_TEST_MODEL")?;
    Ok(Arguments { path, verbose, check })
}

fn agent(model: Arc<dyn Provider>, workspace: &Path) -> Result<Archon> {
    let mut limits = ExecutionLimits::default();
    (limits.max_turns, limits.on_limit) = (MAX_TURNS, OnLimit::Error);
    let tools = builtin::builtin_tools(&Workspace::new(workspace)?);
    Ok(Archon::builder().provider(model, "local").tools(tools).limits(limits).build()?)
}

async fn run(agent: &Archon, task: &Task) -> Result<Outcome> {
    let outcome = agent.run(&task.task).await?;
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for record in agent.journal().read(&outcome.run).await? {
        match &record.body {
            RecordBody::ModelAnswered { message, .. } => calls.extend(message.tool_calls().cloned()),
            RecordBody::ToolFinished { result, .. } | RecordBody::ToolRefused { result, .. } => {
                results.push((**result).clone());
            }
            _ => {}
        }
    }
    let first = calls.first();
    let tool = first.map(|call| &call.name) == task.tool.as_ref();
    let args = match (first, &task.args) {
        (Some(call), Some(expected)) => fits(call, results.first(), expected),
        (call, expected) => call.is_none() && expected.is_none(),
    };
    Ok(Outcome {
        calls: calls.len(),
        valid_calls: calls.iter().filter(|call| is_valid(agent, call)).count(),
        tool,
        args: tool && args,
        answer: task.answer.iter().all(|any| any.split('|').any(|part| says(&outcome.answer, part))),
        first: first.map_or_else(|| "answer".into(), |c| format!("{} {}", c.name, c.arguments)),
        said: outcome.answer,
        usage: outcome.usage,
    })
}

/// Judged apart from the guards, by another run of the validator.
fn is_valid(agent: &Archon, call: &ToolCall) -> bool {
    let specs = agent.toolbox().specs();
    let spec = specs.iter().find(|spec| spec.name == call.name);
    call.malformed.is_none()
        && spec.is_some_and(|spec| jsonschema::is_valid(&spec.parameters, &call.arguments))
}

fn fits(call: &ToolCall, result: Option<&ToolResult>, expected: &Expected) -> bool {
    let text = |name: &str| call.arguments.get(name).and_then(Json::as_str).unwrap_or_default();
    match expected {
        Expected::Value(value) => result
            .and_then(|result| Content::join_text(&result.content).trim().parse::<f64>().ok())
            .is_some_and(|found| (found - value).abs() < 1e-6),
        Expected::Path(path) => plain_path(text("path")) == path,
        Expected::Keywords(words) => {
            let pattern = text("pattern").to_lowercase();
            words.iter().all(|word| pattern.contains(word.as_str()))
        }
    }
}

fn plain_path(path: &str) -> &str {
    let path = if path.len() > 2 { path.strip_prefix("./").unwrap_or(path) } else { path };
    match path.trim_end_matches('/') {
        "" => ".",
        path => path,
    }
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
        !is_word(text[..at].chars().next_back()) && !goes_on
    })
}

/// `1,081` as `1081`; any other comma stays.
fn without_thousands(text: &str) -> String {
    let digit = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    let between = |at: usize| digit(at.checked_sub(1)) && (1..=3).all(|n| digit(Some(at + n)));
    text.char_indices().filter(|(at, c)| *c != ',' || !between(*at)).map(|(_, c)| c).collect()
}

/// Prints the table and returns the rows that miss what is required of them.
fn table(outcomes: &[Outcome], seconds: f64) -> Vec<String> {
    let all = outcomes.len();
    let count = |good: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| good(outcome)).count();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let (calls, valid): (usize, usize) =
        outcomes.iter().fold((0, 0), |(calls, valid), o| (calls + o.calls, valid + o.valid_calls));
    let shares =
        [(calls, valid), (all, count(|o| o.tool)), (all, count(|o| o.args)), (all, count(|o| o.answer))];
    let mut missed = Vec::new();
    println!("\n| | of | right | share | required |\n|---|---|---|---|---|");
    for ((what, required), (of, right)) in REQUIRED.into_iter().zip(shares) {
        let share = 100.0 * right as f64 / of.max(1) as f64;
        println!("| {what} | {of} | {right} | {share:.0} % | {required} % |");
        if of == 0 || 100 * right < required * of {
            missed.push(format!("{what} ({right} of {of}, {required} % wanted)"));
        }
    }
    println!(
        "\n{seconds:.0} s; prompt tokens read {}, reused {}; tokens written {}",
        sum(|o| o.usage.input),
        sum(|o| o.usage.cache_read),
        sum(|o| o.usage.output)
    );
    missed
}
