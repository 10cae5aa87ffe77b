//! The plans and the team behind the dashboard. Those with questions go on only when a person answers, so that a test
//! decides when their graph changes.

use std::sync::Arc;

use archon::{
    Archon, Planning, Teamwork,
    types::{FnPlanner, Member, OnFailure, SubTask, SubTaskRules, Task},
};
use serde_json::json;

/// A goal with this word gets the plan with questions.
const WITH_QUESTIONS: &str = "questions";

/// Returns the agent that makes plans.
pub(crate) fn planning(walker: &Archon) -> Planning {
    walker.planning(FnPlanner::new(|goal, _| async move {
        let steps = if goal.contains(WITH_QUESTIONS) { with_questions() } else { comparison() };
        Ok(Task::new("task", goal).with_subtasks(steps))
    }))
}

/// Returns a team that `walker` leads. Its only member asks before it steps anywhere.
pub(crate) fn team(walker: &Archon, scout: Archon) -> Teamwork {
    let planner = FnPlanner::new(|goal, _| async move {
        let steps = vec![
            think("towns", "List the towns", &[]),
            think("lyon", "step Lyon", &["towns"]),
            think("nice", "step Nice", &["lyon"]),
        ];
        Ok(Task::new("task", goal).with_subtasks(steps))
    });
    walker.team(planner).member(Member::new("scout", "researcher"), Arc::new(scout))
}

fn comparison() -> Vec<SubTask> {
    vec![
        look("lyon", "Lyon"),
        look("london", "London"),
        think("prices", "List the prices", &["lyon", "london"]),
        think("trips", "Plan a day in each", &["lyon", "london"]),
        think("compare", "Compare both", &["prices", "trips"]),
        think("report", "Write the report", &["compare"]),
    ]
}

/// Returns a step that succeeds, one that fails, and two in a row that each wait for a yes.
fn with_questions() -> Vec<SubTask> {
    let mut optional = SubTaskRules::default();
    (optional.on_failure, optional.max_attempts) = (OnFailure::Skip, Some(1));
    let lost = SubTask::new("lost", "Look for Atlantis");
    vec![
        look("lyon", "Lyon"),
        lost.with_tool("locate", Some(json!({ "place": "Atlantis" }))).with_rules(optional),
        gated("prices", "List the prices", "lyon"),
        gated("trips", "Plan a day", "prices"),
    ]
}

fn look(id: &str, town: &str) -> SubTask {
    SubTask::new(id, format!("Look at {town}")).with_tool("look", Some(json!({ "at": town })))
}

fn think(id: &str, does: &str, before: &[&str]) -> SubTask {
    SubTask::new(id, does).after(before.iter().copied())
}

/// Returns a step that starts only after a yes.
fn gated(id: &str, does: &str, before: &str) -> SubTask {
    let mut rules = SubTaskRules::default();
    rules.gate = Some(format!("{does}?"));
    think(id, does, &[before]).with_rules(rules)
}
