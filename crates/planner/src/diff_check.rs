//! Checks a diff to a running plan, and computes the allowed diff to a wanted plan.

use std::collections::HashSet;

use archon_types::{PlanDiff, SubTaskId, SubTaskStatus, Task};

use crate::{
    CheckOptions, PlanGraph, PlanMachine, check_running,
    diff::{changed, is_same},
    problem::{PlanProblem, ProblemKind},
};

/// Returns the changes from the running plan to `wanted`, and warnings about changes that are not
/// allowed.
///
/// Subtasks that are targets of the replan, and their dependents, may change, and subtasks may be added.
/// All other subtasks stay as they are, even if the wanted plan leaves them out.
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
                SubTaskStatus::Completed => "the subtask is done or skipped; give the new one another id",
                SubTaskStatus::Executing => "the subtask has started; give the new one another id",
                _ => "the replan may not change this subtask",
            };
            remarks.push(PlanProblem::of(&new.id, ProblemKind::MustStay { why }));
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

/// Returns all problems of a change, and of the plan that results from the change.
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
    for new in diff.replace.iter().chain(&diff.add) {
        let earlier = machine.refused_repeat(new).map(|earlier| earlier.id.clone());
        let kind = earlier.map(|earlier| ProblemKind::RepeatRefused { earlier });
        problems.extend(kind.map(|kind| PlanProblem::of(&new.id, kind)));
    }
    problems.extend(check_running(&changed(&running, diff), options));
    problems
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
