//! The 40 tasks: whether the right tool is called, with the right arguments, to the right answer.

use anyhow::Result;
use archon::Archon;
use archon::types::{Content, Json, RecordBody, ToolCall, ToolResult, Usage};
use serde::Deserialize;

use crate::{Row, mark, read, says, table};

/// The rows of the table, and the percentage that each must reach. The first is what the grammar guarantees, the
/// others are what the smallest model that can be fetched must make of it.
const REQUIRED: [(&str, usize); 4] = [
    ("calls valid against their schema", 100),
    ("right tool, or none", 85),
    ("right arguments", 80),
    ("right final answer", 72),
];

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

/// Runs each task and prints what came of it; returns what missed its share.
pub(crate) async fn measure(agent: &Archon, verbose: bool) -> Result<Vec<String>> {
    let tasks: Tasks = read("tasks.json")?;
    let mut outcomes = Vec::new();
    for task in &tasks.tasks {
        let outcome = run(agent, task).await?;
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
    Ok(summary(&outcomes))
}

async fn run(agent: &Archon, task: &Task) -> Result<Outcome> {
    let outcome = archon::Outcome::of_result(agent.run(&task.task).await)?;
    let said = outcome.last_text().unwrap_or_default();
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for record in agent.journal().read(&outcome.run).await? {
        match &record.body {
            RecordBody::ModelCallFinished { message, .. } => calls.extend(message.tool_calls().cloned()),
            RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } => {
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
        answer: task.answer.iter().all(|any| any.split('|').any(|part| says(said, part))),
        first: first.map_or_else(|| "answer".into(), |c| format!("{} {}", c.name, c.arguments)),
        said: said.to_owned(),
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

fn summary(outcomes: &[Outcome]) -> Vec<String> {
    let all = outcomes.len();
    let count = |good: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| good(outcome)).count();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let (calls, valid): (usize, usize) =
        outcomes.iter().fold((0, 0), |(calls, valid), o| (calls + o.calls, valid + o.valid_calls));
    let shares =
        [(calls, valid), (all, count(|o| o.tool)), (all, count(|o| o.args)), (all, count(|o| o.answer))];
    let row = |((what, required), (of, right))| Row { what, of, right, required };
    let missed = table(&REQUIRED.into_iter().zip(shares).map(row).collect::<Vec<_>>());
    println!(
        "prompt tokens read {}, reused {}; tokens written {}",
        sum(|o| o.usage.input),
        sum(|o| o.usage.cache_read),
        sum(|o| o.usage.output)
    );
    missed
}
