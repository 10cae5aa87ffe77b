//! Measures how well a local model uses tools: the 40 tasks of `eval/tasks.json`, each in a fresh
//! conversation of at most three turns, greedy. Prints one line a task and a table.
//!
//! `cargo run --release -p archon-local-model --features engine --example eval -- MODEL.gguf [--verbose]`
//!
//! The tools are small stand-ins with the specs and the result formats of the real ones.

#![allow(clippy::print_stdout)]

#[path = "eval/expression.rs"]
mod expression;
#[path = "eval/tools.rs"]
mod tools;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use archon_local_model::{LocalModel, LocalModelOptions};
use archon_types::{
    AssistantMessage, CancellationToken, Message, ModelEvent, Provider as _, Request, Timestamp, ToolCall,
    ToolSpec,
};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::Value;

/// A conversation that has not ended by then has failed.
const MAX_TURNS: usize = 3;

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
#[derive(Default)]
struct Outcome {
    calls: usize,
    valid_calls: usize,
    tool: bool,
    args: bool,
    answer: bool,
    said: String,
    first: String,
    read: u64,
    reused: u64,
    written: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (path, verbose) = arguments()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval");
    let tasks: Tasks = serde_json::from_str(&std::fs::read_to_string(folder.join("tasks.json"))?)?;
    let specs = tools::specs();
    let model = LocalModel::load(&path, LocalModelOptions::default())?;
    println!("model: {} ({})", model.name(), path.file_name().unwrap_or_default().display());

    let begun = Instant::now();
    let mut outcomes = Vec::new();
    for task in &tasks.tasks {
        let outcome = run(&model, task, &specs, &folder.join("workspace")).await?;
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
    table(&outcomes, begun.elapsed().as_secs_f64());
    Ok(())
}

/// The model's path: the first argument, or the variable that the tests use too.
fn arguments() -> Result<(PathBuf, bool)> {
    let mut path = std::env::var_os("ARCHON_TEST_MODEL").map(PathBuf::from);
    let mut verbose = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--verbose" => verbose = true,
            other if other.starts_with('-') => bail!("unknown option {other}; there is: --verbose"),
            file => path = Some(file.into()),
        }
    }
    Ok((path.context("name a model: eval MODEL.gguf, or set ARCHON_TEST_MODEL")?, verbose))
}

async fn run(model: &LocalModel, task: &Task, specs: &[ToolSpec], workspace: &Path) -> Result<Outcome> {
    let now = Timestamp::default();
    let mut messages = vec![Message::user(&task.task, now)];
    let mut outcome = Outcome::default();
    for turn in 0..MAX_TURNS {
        let mut request = Request::new("local", messages.clone());
        request.tools = std::sync::Arc::new(specs.to_vec().into());
        let said = ask(model, request).await?;
        outcome.read += said.usage.input;
        outcome.reused += said.usage.cache_read;
        outcome.written += said.usage.output;
        let calls: Vec<ToolCall> = said.tool_calls().cloned().collect();
        if turn == 0 {
            outcome.tool = calls.first().map(|call| &call.name) == task.tool.as_ref();
            outcome.args = outcome.tool && calls.first().is_none_or(|call| fits(call, task.args.as_ref()));
            outcome.first =
                calls.first().map_or_else(|| "answer".into(), |c| format!("{} {}", c.name, c.arguments));
        }
        outcome.said = said.text();
        messages.push(Message::Assistant(said));
        for call in &calls {
            outcome.calls += 1;
            outcome.valid_calls += usize::from(tools::is_valid(call, specs));
            messages.push(Message::tool_result(call, &tools::call(call, workspace), now));
        }
        if calls.is_empty() {
            outcome.answer =
                task.answer.iter().all(|any| any.split('|').any(|part| says(&outcome.said, part)));
            break;
        }
    }
    Ok(outcome)
}

async fn ask(model: &LocalModel, request: Request) -> Result<AssistantMessage> {
    let mut events = model.stream(request, CancellationToken::new());
    while let Some(event) = events.next().await {
        if let ModelEvent::Done(message) = event? {
            return Ok(*message);
        }
    }
    bail!("the model's stream ended without an answer")
}

fn fits(call: &ToolCall, expected: Option<&Expected>) -> bool {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    match expected {
        None => true,
        Some(Expected::Value(value)) => {
            expression::evaluate(text("expression")).is_some_and(|found| (found - value).abs() < 1e-6)
        }
        Some(Expected::Path(path)) => plain_path(text("path")) == path,
        Some(Expected::Keywords(words)) => {
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
    let (text, part) = (text.to_lowercase().replace(',', ""), part.to_lowercase());
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

fn table(outcomes: &[Outcome], seconds: f64) {
    let all = outcomes.len();
    let count = |good: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| good(outcome)).count();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let (calls, valid): (usize, usize) =
        outcomes.iter().fold((0, 0), |(calls, valid), o| (calls + o.calls, valid + o.valid_calls));
    println!("\n| | of | right | share |\n|---|---|---|---|");
    for (what, of, right) in [
        ("calls valid against their schema", calls, valid),
        ("right tool, or none", all, count(|o| o.tool)),
        ("right arguments", all, count(|o| o.args)),
        ("right final answer", all, count(|o| o.answer)),
    ] {
        println!("| {what} | {of} | {right} | {:.0} % |", 100.0 * right as f64 / of.max(1) as f64);
    }
    println!(
        "\n{seconds:.0} s; prompt tokens read {}, reused {}; tokens written {}",
        sum(|o| o.read),
        sum(|o| o.reused),
        sum(|o| o.written)
    );
}
