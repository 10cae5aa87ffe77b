//! Sessions of pages: commands after `$ ` with the lines below them. Runs nothing itself: compares what a command printed
//! with the page, and writes the printed lines into the page.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::output::{self, Ids};
use crate::markdown::Fence;

/// A command of a page and the lines that the page shows below it, or the whole of an `sh` block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// Line of the page, counted from 1.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) shown: Vec<String>,
    /// The first line of `shown`.
    pub(crate) shown_at: usize,
}

/// The result for a page.
pub(crate) struct Ran {
    /// Problems that only an author can solve.
    pub(crate) problems: Vec<String>,
    /// Output that differs from the page.
    pub(crate) differences: Vec<String>,
    /// The page's text with the printed output in place of what differed.
    pub(crate) updated: String,
}

impl Ran {
    pub(crate) fn is_as_shown(&self) -> bool {
        self.problems.is_empty() && self.differences.is_empty()
    }
}

pub(crate) enum Verdict {
    Fits,
    Problem(String),
    /// The output is another one: a text for people, and the printed lines.
    Differs(String, Vec<String>),
}

/// Returns the commands of a block: lines that begin with `$ `, continued after a `\`.
pub(crate) fn steps(fence: &Fence) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continues = false;
    for (number, line) in (fence.line + 1..).zip(&fence.lines) {
        if continues {
            if let Some(step) = steps.last_mut() {
                step.command.push('\n');
                step.command.push_str(line.strip_prefix("> ").unwrap_or(line));
                step.shown_at = number + 1;
            }
            continues = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ") {
            let step =
                Step { line: number, command: command.to_owned(), shown: vec![], shown_at: number + 1 };
            steps.push(step);
            continues = line.ends_with('\\');
        } else if let Some(step) = steps.last_mut() {
            step.shown.push(line.clone());
        }
    }
    steps
}

/// Returns the exit code that a command is expected to have: that of a comment `# exit 3` behind it, else 0.
pub(crate) fn expected_exit(command: &str) -> i32 {
    let comment = command.rsplit_once("# exit ").map(|(_, code)| code.trim());
    comment.and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// Compares the exit code, which is none after a signal, and the printed lines with the page, and learns their ids.
pub(crate) fn verdict(step: &Step, exit: Option<i32>, printed: &[String], ids: &mut Ids) -> Verdict {
    let (shown, lines) = (without_last_blank(&step.shown), without_last_blank(printed));
    let fits = output::matches(shown, lines, ids);
    ids.pair(&shown.join("\n"), &lines.join("\n"));
    let lines: Vec<String> = lines.iter().map(|line| ids.to_page(line)).collect();
    let command = &step.command;
    let wanted = expected_exit(command);
    if exit != Some(wanted) {
        let ending = exit.map_or("was killed".to_owned(), |code| format!("ended with exit code {code}"));
        return Verdict::Problem(format!("`{command}` {ending}, not {wanted}:\n{}", quoted(&lines)));
    }
    if fits {
        return Verdict::Fits;
    }
    let text = format!("`{command}` printed:\n{}  the page shows:\n{}", quoted(&lines), quoted(shown));
    Verdict::Differs(text, lines)
}

/// Waits until a command has ended, at most for `patience`. Returns its exit code, none after a signal.
pub(crate) fn wait(mut child: Child, command: &str, patience: Duration) -> Result<Option<i32>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if begun.elapsed() > patience {
            child.kill()?;
            bail!("`{command}` did not end within {} s", patience.as_secs());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn without_last_blank(lines: &[String]) -> &[String] {
    let kept = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    &lines[..kept]
}

fn quoted(lines: &[String]) -> String {
    lines.iter().map(|line| format!("    {line}\n")).collect()
}

/// Puts the printed lines in place of those that the page shows.
pub(crate) fn updated(text: &str, mut changes: Vec<(Step, Vec<String>)>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    changes.reverse();
    for (step, printed) in changes {
        let command = &lines[step.line - 1];
        let indent = " ".repeat(command.len() - command.trim_start().len());
        let from = step.shown_at - 1;
        let to = from + without_last_blank(&step.shown).len();
        lines.splice(from..to, printed.iter().map(|line| format!("{indent}{line}").trim_end().to_owned()));
    }
    lines.join("\n") + "\n"
}
