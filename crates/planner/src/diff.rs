//! Diffs between a running plan and another one: what may change, the checks, and the text form.

use std::collections::HashSet;

use archon_types::{PlanDiff, SubTask, SubTaskId, SubTaskStatus, Task};

use crate::{
    CheckOptions, PlanGraph, PlanMachine, check_running,
    problem::{PlanProblem, ProblemKind},
};

/// Returns the changes from the running plan to `wanted`, and remarks about changes that are not allowed.
///
/// Subtasks in `targets` and their dependents may change, and subtasks may be added. Everything else stays as
/// it is, even if the wanted plan leaves it out.
pub fn difference(machine: &PlanMachine, wanted: &Task) -> (PlanDiff, Vec<PlanProblem>) {
    let running = machine.task();
    let within = reach(&running, machine.targets());
    let mut diff = PlanDiff::default();
    let mut remarks = Vec::new();
    for new in &wanted.subtasks {
        let Some(old) = running.get_subtask(&new.id) else {
            diff.add.push(new.as_planned());
            continue;
        };
        let may_change = within.contains(&new.id) && machine.may_change(&new.id);
        let is_same = is_same(old, new);
        if may_change && (!is_same || old.status() == SubTaskStatus::Failed) {
            diff.replace.push(new.as_planned());
        } else if !may_change && !is_same {
            let why = match old.status() {
                SubTaskStatus::Completed => "it is done already; give the new one another id",
                SubTaskStatus::Executing => "it is being done; give the new one another id",
                _ => "it does not depend on what failed",
            };
            remarks.push(PlanProblem::of(&new.id, ProblemKind::Kept { why }));
        }
    }
    for old in &running.subtasks {
        let is_gone = wanted.get_subtask(&old.id).is_none();
        if is_gone && within.contains(&old.id) && machine.may_change(&old.id) {
            diff.remove.push(old.id.clone());
        }
    }
    (diff, remarks)
}

/// Returns all problems of a change and of the plan that results.
pub fn check_diff(machine: &PlanMachine, diff: &PlanDiff, options: &CheckOptions) -> Vec<PlanProblem> {
    let running = machine.task();
    let within = reach(&running, machine.targets());
    let mut problems = Vec::new();
    if diff.is_empty() {
        problems.push(PlanProblem::of_plan(ProblemKind::NoChange));
    }
    for id in diff.remove.iter().chain(diff.replace.iter().map(|subtask| &subtask.id)) {
        let kind = match running.get_subtask(id) {
            None => ProblemKind::NotInPlan,
            Some(old) if !machine.may_change(id) => {
                ProblemKind::TouchesDone { status: old.status().to_string() }
            }
            Some(_) if !within.contains(id) => ProblemKind::OutOfReach,
            Some(_) => continue,
        };
        problems.push(PlanProblem::of(id, kind));
    }
    for new in &diff.add {
        if running.get_subtask(&new.id).is_some() {
            problems.push(PlanProblem::of(&new.id, ProblemKind::DuplicateId { count: 2 }));
        }
    }
    for new in diff.replace.iter().chain(&diff.add).filter(|new| machine.said_no_to(new)) {
        problems.push(PlanProblem::of(&new.id, ProblemKind::SaidNo));
    }
    problems.extend(check_running(&changed(&running, diff), options));
    problems
}

/// Returns the change that a person wants in place of a proposed one; `wanted` is the proposed plan after the
/// person's edit. Unlike [`difference`], it keeps changes that are not allowed, so that [`check_diff`]
/// reports them.
pub(crate) fn edited(running: &Task, proposed: &PlanDiff, wanted: &Task) -> PlanDiff {
    let shown = changed(running, proposed);
    let mut diff = proposed.clone();
    for new in &wanted.subtasks {
        if shown.get_subtask(&new.id).is_some_and(|old| is_same(old, new)) {
            continue;
        }
        diff.add.retain(|subtask| subtask.id != new.id);
        diff.replace.retain(|subtask| subtask.id != new.id);
        diff.remove.retain(|id| *id != new.id);
        match running.get_subtask(&new.id) {
            Some(old) if is_same(old, new) && old.status() != SubTaskStatus::Failed => {}
            Some(_) => diff.replace.push(new.as_planned()),
            None => diff.add.push(new.as_planned()),
        }
    }
    for old in shown.subtasks.iter().filter(|old| wanted.get_subtask(&old.id).is_none()) {
        diff.add.retain(|subtask| subtask.id != old.id);
        diff.replace.retain(|subtask| subtask.id != old.id);
        if running.get_subtask(&old.id).is_some() {
            diff.remove.push(old.id.clone());
        }
    }
    diff
}

/// Returns the task after a change. Replaced subtasks that had failed are as planned again.
pub fn changed(running: &Task, diff: &PlanDiff) -> Task {
    let mut task = running.clone();
    task.subtasks.retain(|subtask| !diff.remove.contains(&subtask.id));
    for subtask in &mut task.subtasks {
        if let Some(new) = diff.replace.iter().find(|new| new.id == subtask.id) {
            *subtask = new.clone();
        }
    }
    task.subtasks.extend(diff.add.iter().cloned());
    task
}

/// Returns true if a change only restarts subtasks that are the same as before.
pub(crate) fn is_unchanged(running: &Task, diff: &PlanDiff) -> bool {
    let is_as_before = |new: &SubTask| running.get_subtask(&new.id).is_some_and(|old| is_same(old, new));
    diff.add.is_empty() && diff.remove.is_empty() && diff.replace.iter().all(is_as_before)
}

/// Returns a change as lines: `+` for added, `~` for restarted, and `-` for removed subtasks.
pub fn show_diff(diff: &PlanDiff) -> String {
    let mut lines: Vec<String> = diff.remove.iter().map(|id| format!("- {id}")).collect();
    let line = |sign: char, subtask: &SubTask| {
        let after: Vec<&str> = subtask.dependencies().iter().map(SubTaskId::as_str).collect();
        let after = if after.is_empty() { String::new() } else { format!(" (after {})", after.join(", ")) };
        let tool = subtask.tool_name().map(|tool| format!(" [{tool}]")).unwrap_or_default();
        format!("{sign} {}: {}{tool}{after}", subtask.id, subtask.description)
    };
    lines.extend(diff.replace.iter().map(|subtask| line('~', subtask)));
    lines.extend(diff.add.iter().map(|subtask| line('+', subtask)));
    lines.join("\n")
}

/// Returns the targets and all their dependents.
fn reach(task: &Task, targets: &[SubTaskId]) -> HashSet<SubTaskId> {
    let graph = PlanGraph::new(&task.subtasks);
    let mut within: HashSet<SubTaskId> = targets.iter().cloned().collect();
    for target in targets {
        within.extend(graph.downstream(target).into_iter().cloned());
    }
    within
}

/// Returns true if two subtasks are planned the same, whatever their states.
fn is_same(a: &SubTask, b: &SubTask) -> bool {
    a.as_planned() == b.as_planned()
}

/// Returns true if two subtasks do the same under any id: the same tool call, or the same description for an
/// agent.
pub(crate) fn does_same(a: &SubTask, b: &SubTask) -> bool {
    let is_call = a.tool_name().is_some() && a.tool_args().is_some();
    (a.tool_name(), a.tool_args()) == (b.tool_name(), b.tool_args())
        && (is_call || a.description == b.description)
}
