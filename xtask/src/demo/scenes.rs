//! The demo's four scenes, each with a proof from the log of its run.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::stage::{Stage, Waiting};
use super::{ANSWER, MODEL, TASK, TOOL};

type Scene = (&'static str, fn(&Stage) -> Result<()>);

/// The scenes, in order.
const SCENES: [Scene; 4] = [
    ("A tool call: the model asks the calculator and answers with its result", tool_call),
    ("A plan: drawn, followed, answered", plan),
    ("Killed in the middle and resumed: nothing is done twice", kill_and_resume),
    ("A question that waits for its answer, as long as it takes", approval),
];

/// Parses the number of a single scene.
pub(super) fn numbered(text: &str) -> Result<usize> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=SCENES.len()).contains(number));
    Ok(number.with_context(|| {
        format!("there is no scene `{text}`; they are numbered from 1 to {}", SCENES.len())
    })? - 1)
}

/// Plays all scenes, or one.
pub(super) fn play(stage: &Stage, only: Option<usize>) -> Result<()> {
    for (place, (heading, scene)) in SCENES.iter().enumerate() {
        if only.is_some_and(|only| only != place) {
            continue;
        }
        let number = place + 1;
        println!("\n== {number} of {}. {heading}", SCENES.len());
        scene(stage).with_context(|| format!("scene {number} of the demo went wrong ({heading})"))?;
    }
    Ok(())
}

/// The model is always named, so that no key or server of this machine is used instead.
const LOCAL: [&str; 2] = ["--model", MODEL];

fn tool_call(stage: &Stage) -> Result<()> {
    let before = stage.stored_runs();
    stage.run_to(&[&["run"], &LOCAL[..], &[TASK]].concat(), 0)?;
    let (run, _) = stage.newest(&before, TASK).context("the command stored no run")?;
    let log = stage.log(&run)?;
    log.check(
        log.called().contains(&TOOL) && log.answer().contains(ANSWER),
        &format!("the {TOOL} was called, and the answer has {ANSWER}"),
        &format!("it called {:?} and answered {:?}", log.called(), log.answer()),
    )
}

/// A goal of three steps, of which the last needs the others.
const GOAL: &str = "Compute 15% of 200, compute 23*47, then add both results";

/// The result: 30 + 1081.
const SUM: &str = "1111";

fn plan(stage: &Stage) -> Result<()> {
    let before = stage.stored_runs();
    stage.run_to(&[&["plan", "--execute"], &LOCAL[..], &[GOAL]].concat(), 0)?;
    let (run, _) = stage.newest(&before, GOAL).context("the command stored no run")?;
    let log = stage.log(&run)?;
    let of = |kind: &'static str| log.of("plan").filter(move |record| record["event"] == kind);
    let subtasks = of("planned").filter_map(|record| record["task"]["subtasks"].as_array()).flatten();
    let needs = subtasks.filter_map(|subtask| subtask["dependencies"].as_array()).map(Vec::len).max();
    log.check(
        needs == Some(2),
        "a plan was made in which one step needs two others",
        &format!("a step needs at most {}", needs.unwrap_or(0)),
    )?;
    log.check(
        log.answer().replace([',', ' '], "").contains(SUM),
        &format!("the answer has {SUM}"),
        &format!("it is {:?}", log.answer()),
    )
}

/// Not the first scene's task, so that the logs cannot be confused.
const OTHER_TASK: &str = "What is 12% of 350?";
const OTHER_ANSWER: &str = "42";

fn kill_and_resume(stage: &Stage) -> Result<()> {
    let before = stage.stored_runs();
    let mut child = stage.start(&[&["run"], &LOCAL[..], &[OTHER_TASK]].concat())?;
    let mut waiting = Waiting::new();
    let run = loop {
        match stage.newest(&before, OTHER_TASK) {
            Some((run, log)) if has_result(&log) => break Some(run),
            _ if waiting.is_over() || matches!(child.try_wait(), Ok(Some(_)) | Err(_)) => {
                break None;
            }
            _ => thread::sleep(Duration::from_millis(5)),
        }
    };
    let killed = child.kill();
    child.wait().context("cannot wait for the command")?;
    let run = run.context("the run ended, or did nothing for long, before its tool had answered")?;
    killed.context("cannot kill the command")?;
    println!("\r$ kill -9 {}  # the tool has answered, the model has not", child.id());
    let log = stage.log(&run)?;
    log.check(
        log.count("tool_call_finished") == 1 && log.count("run_finished") == 0,
        "the tool's result is there, an answer is not",
        &format!(
            "there are {} results and {} ends",
            log.count("tool_call_finished"),
            log.count("run_finished")
        ),
    )?;
    stage.run_to(&["resume", &run], 0)?;
    let log = stage.log(&run)?;
    let ran = log.count("tool_call_started");
    log.check(
        ran == 1 && log.answer().contains(OTHER_ANSWER),
        &format!("the tool ran once in both lives of the run, and the answer has {OTHER_ANSWER}"),
        &format!("it ran {ran} times, and the answer is {:?}", log.answer()),
    )
}

/// Returns whether the log, which may end within a line, has a tool's result.
fn has_result(log: &str) -> bool {
    log.rsplit_once('\n').is_some_and(|(whole, _)| whole.contains(r#""type":"tool_call_finished""#))
}

/// The model makes this call with its first answer.
const WRITE_TASK: &str = "Write Hello from Archon into hello.txt.";
const FILE: &str = "hello.txt";

/// The exit code of `archon` for a suspended run.
const WAITS: i32 = 3;

fn approval(stage: &Stage) -> Result<()> {
    let before = stage.stored_runs();
    stage.run_to(
        &[&["run", "--ask-later", "--tools", "write_file"], &LOCAL[..], &[WRITE_TASK]].concat(),
        WAITS,
    )?;
    let (run, _) = stage.newest(&before, WRITE_TASK).context("the command stored no run")?;
    if stage.file(FILE).exists() {
        bail!("{FILE} was written before anybody said yes");
    }
    stage.run_to(&["approvals", "list"], 0)?;
    let open = stage.ask_json(&["approvals", "list"])?;
    let ours = open.iter().find(|question| question["run"] == run.as_str());
    let id = ours.and_then(|question| question["request_id"].as_str());
    let id = id.with_context(|| format!("run {run} has no open question"))?;
    // The answer lets the run go on.
    stage.run_to(&["approvals", "approve", id], 0)?;
    let log = stage.log(&run)?;
    let text = fs::read_to_string(stage.file(FILE)).unwrap_or_default();
    println!("\n$ cat {FILE}\n{}", text.trim_end());
    log.check(
        text.contains("Hello") && log.count("tool_call_started") == 1,
        &format!("{FILE} was written, once, after the yes"),
        &format!("it holds {text:?} after {} calls", log.count("tool_call_started")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_result_waits_for_the_end_of_the_line() {
        let line = r#"{"seq":5,"type":"tool_call_finished","result":{}}"#;
        assert!(has_result(&format!("{{}}\n{line}\n")));
        assert!(!has_result(&format!("{{}}\n{line}")) && !has_result("{}\n"));
    }

    #[test]
    fn numbered_scene_has_to_be_there() {
        assert_eq!(numbered("1").unwrap(), 0);
        assert_eq!(numbered("4").unwrap(), 3);
        for text in ["0", "5", "x"] {
            let error = numbered(text).unwrap_err().to_string();
            assert_eq!(error, format!("there is no scene `{text}`; they are numbered from 1 to 4"));
        }
    }
}
