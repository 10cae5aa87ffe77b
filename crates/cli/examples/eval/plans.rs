//! The 12 goals: whether a plan comes that can be followed, whether it is followed to its end, and the answer.

use anyhow::{Context as _, Result};
use archon::Archon;
use archon::planner::{CheckOptions, PlanFormat, check, fold, render};
use archon::types::{OutcomeStatus, ToolSpec};
use serde::Deserialize;

use crate::{Row, mark, read, says, table};

/// The rows of the table, and the percentage that each must reach. A share of 66 % of 12 are 8.
const REQUIRED: [(&str, usize); 3] = [
    ("plans valid and without circles", 100),
    ("plans followed to the end", 100),
    ("right answer of a plan", 66),
];

#[derive(Deserialize)]
struct Plans {
    plans: Vec<Goal>,
}

/// A goal; `about` in the file says what the fields mean.
#[derive(Deserialize)]
struct Goal {
    id: String,
    goal: String,
    subtasks: usize,
    answer: Vec<String>,
}

/// Plans each goal, follows the plan and prints what came of it; returns what missed its share.
pub(crate) async fn measure(agent: &Archon, verbose: bool) -> Result<Vec<String>> {
    let plans: Plans = read("plans.json")?;
    let (mut valid, mut followed, mut right) = (0, 0, 0);
    let tools: Vec<_> = agent.toolbox().specs().iter().map(ToolSpec::definition).collect();
    for Goal { id, goal, subtasks, answer } in &plans.plans {
        let outcome = archon::Outcome::of_result(agent.run_task(goal).await)?;
        let records = agent.journal().read(&outcome.run).await?;
        let task = fold(&records).context("a run that follows a plan")?.task();
        let begun_at = |task: &archon::types::Task| {
            let mut fresh = archon::types::Task::new(task.id.clone(), &task.original_query);
            let plain = |s: &archon::types::SubTask| {
                let mut plain = archon::types::SubTask::new(s.id.as_str(), &s.description);
                if let Some(tool) = s.tool_name() {
                    plain = plain.with_tool(tool, s.tool_args().cloned());
                }
                plain.after(s.dependencies().iter().map(|id| id.as_str()))
            };
            fresh.subtasks = task.subtasks.iter().map(plain).collect();
            fresh
        };
        let problems = check(&begun_at(&task), &CheckOptions::new(tools.clone()));
        let is_valid = task.subtasks.len() >= *subtasks && !problems.iter().any(|p| p.is_error());
        let is_followed = outcome.status == OutcomeStatus::Finished;
        let said = outcome.last_text().unwrap_or_default().trim();
        let is_right = is_followed
            && !said.is_empty()
            && answer.iter().all(|any| any.split('|').any(|part| says(said, part)));
        valid += usize::from(is_valid);
        followed += usize::from(is_followed);
        right += usize::from(is_right);
        println!(
            "{id}  plan {}  followed {}  answer {}  {goal}",
            mark(is_valid),
            mark(is_followed),
            mark(is_right)
        );
        if verbose || !(is_valid && is_followed && is_right) {
            println!(
                "{}\n     said: {}",
                render(&task, PlanFormat::Text).trim_end(),
                said.replace('\n', "\\n")
            );
            if let Some(error) = &outcome.error {
                println!("     error: {error}");
            }
            problems.iter().for_each(|problem| println!("     problem: {problem}"));
        }
    }
    let counts = REQUIRED.into_iter().zip([valid, followed, right]);
    let of = plans.plans.len();
    Ok(table(&counts.map(|((what, required), right)| Row { what, of, right, required }).collect::<Vec<_>>()))
}
