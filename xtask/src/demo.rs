//! `cargo xtask demo`: from a fresh clone to an agent's answer on this machine, with no account and no key. Each
//! command is shown as a person would type it. With `--check` it fails unless the answer was calculated and is right.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::native_tools;

/// Small enough for a laptop, and wrong without a calculator often enough to show that one is used.
const TASK: &str = "What is 15% of 200?";

/// What a right answer holds, and the tool that it comes from.
const ANSWER: &str = "30";
const TOOL: &str = "calculator";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let check = args.flag("--check");
    args.finish()?;
    native_tools::prepare()?;
    CommandLine::cargo("build --release -p archon-cli --features local").run()?;
    let archon = Metadata::load()?.binary("release", "archon").display().to_string();
    CommandLine::new(&archon).args(["model", "pull"]).run()?;
    // Named, so that no key or server of this machine is used instead.
    let file = CommandLine::new(&archon).args(["model", "path"]).output()?;
    let name = Path::new(file.trim()).file_stem().unwrap_or_default().display();
    CommandLine::new(&archon).args(["run", "--model", &format!("local:{name}"), TASK]).run()?;
    if check {
        let runs = CommandLine::new(&archon).args(["runs", "list", "--json"]).output()?;
        let newest: Value = serde_json::from_str(runs.lines().next().unwrap_or_default())?;
        let id = newest["run_id"].as_str().context("the list of runs names none")?;
        let log = CommandLine::new(&archon).args(["runs", "events", id, "--json"]).output()?;
        ensure!(is_right(&log), "run {id} did not calculate {ANSWER} with {TOOL}; `archon runs show {id}`");
    }
    Ok(())
}

/// Whether a run, given as lines of JSON, called the tool and answered rightly.
fn is_right(log: &str) -> bool {
    let records: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |kind: &'static str| records.iter().filter(move |record| record["type"] == kind);
    let called = of("model_answered")
        .filter_map(|record| record["message"]["content"].as_array())
        .flatten()
        .any(|part| part["type"] == "toolCall" && part["name"] == TOOL);
    let answered =
        of("run_finished").any(|record| record["answer"].as_str().is_some_and(|text| text.contains(ANSWER)));
    called && answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_answer_comes_from_the_tool() {
        let asked = r#"{"type": "model_answered", "message": {"content": [{"type": "toolCall", "name": "calculator"}]}}"#;
        let said = |answer: &str| format!(r#"{{"type": "run_finished", "answer": "{answer}"}}"#);
        assert!(is_right(&format!("{asked}\n{}", said("15% of 200 is 30."))));
        assert!(!is_right(&format!("{asked}\n{}", said("It is 15."))));
        assert!(!is_right(&said("30")));
    }
}
