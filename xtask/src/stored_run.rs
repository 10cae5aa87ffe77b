//! Checks the log of a run that the command has stored.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command_line::CommandLine;

/// Fails unless the newest run of `archon` called `tool` and answered with `text` in it. `options` choose the
/// data folder.
pub(crate) fn check_newest(archon: &str, options: &[&str], tool: &str, text: &str) -> Result<()> {
    let ask = |words: &[&str]| {
        CommandLine::new(archon).args(words.iter().chain(options).copied()).args(["--json"]).output()
    };
    let runs = ask(&["runs", "list"])?;
    let newest: Value = serde_json::from_str(runs.lines().next().unwrap_or_default())?;
    let id = newest["run_id"].as_str().context("the first entry of `runs list` has no `run_id`")?;
    let log = ask(&["runs", "events", id])?;
    ensure!(
        is_right(&log, tool, text),
        "run {id} did not call {tool} and answer {text}; see: {archon} runs show {id} {}",
        options.join(" ")
    );
    Ok(())
}

/// Returns whether a run, given as lines of JSON, called the tool and answered rightly.
fn is_right(log: &str, tool: &str, text: &str) -> bool {
    let records: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |kind: &'static str| records.iter().filter(move |record| record["type"] == kind);
    let called = of("model_call_finished")
        .filter_map(|record| record["message"]["content"].as_array())
        .flatten()
        .any(|part| part["type"] == "toolCall" && part["name"] == tool);
    let answered = of("run_finished")
        .any(|record| record["answer"].as_str().is_some_and(|answer| answer.contains(text)));
    called && answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_answer_comes_from_the_tool() {
        let asked = r#"{"type": "model_call_finished", "message": {"content": [{"type": "toolCall", "name": "calculator"}]}}"#;
        let right = |log: &str| is_right(log, "calculator", "30");
        let said = |answer: &str| format!(r#"{{"type": "run_finished", "answer": "{answer}"}}"#);
        assert!(right(&format!("{asked}\n{}", said("15% of 200 is 30."))));
        assert!(!right(&format!("{asked}\n{}", said("It is 15."))));
        assert!(!right(&said("30")));
    }
}
