//! Diffs between a running plan and another plan: the resulting plan, and the diff as text.

use archon_types::{PlanDiff, SubTask, SubTaskStatus, Task};

use crate::texts::{join, tool_mark};

/// Returns the change that a person wants instead of a proposed one. `wanted` is the proposed plan after
/// the person's edit. Unlike [`difference`](crate::difference), this function keeps changes that are not
/// allowed, so that [`check_diff`](crate::check_diff) reports them.
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

/// Returns the task that results when `diff` is applied to `running`. Replaced subtasks lose their state and result.
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

/// Returns true if a change only restarts subtasks without changing them.
pub(crate) fn is_unchanged(running: &Task, diff: &PlanDiff) -> bool {
    let is_as_before = |new: &SubTask| running.get_subtask(&new.id).is_some_and(|old| is_same(old, new));
    diff.add.is_empty() && diff.remove.is_empty() && diff.replace.iter().all(is_as_before)
}

/// Returns a change as lines: `+` for added, `~` for replaced, and `-` for removed subtasks.
pub fn show_diff(diff: &PlanDiff) -> String {
    let mut lines: Vec<String> = diff.remove.iter().map(|id| format!("- {id}")).collect();
    let line = |sign: char, subtask: &SubTask| {
        let after = match subtask.dependencies() {
            [] => String::new(),
            ids => format!(" (after {})", join(ids, ", ")),
        };
        format!("{sign} {}: {}{}{after}", subtask.id, subtask.description, tool_mark(subtask))
    };
    lines.extend(diff.replace.iter().map(|subtask| line('~', subtask)));
    lines.extend(diff.add.iter().map(|subtask| line('+', subtask)));
    lines.join("\n")
}

/// Returns true if two subtasks are planned identically, whatever their states.
pub(crate) fn is_same(a: &SubTask, b: &SubTask) -> bool {
    a.as_planned() == b.as_planned()
}

/// Returns true if two subtasks do the same work under any id: the same tool call, or the same
/// description for an agent.
pub(crate) fn does_same(a: &SubTask, b: &SubTask) -> bool {
    let is_call = a.tool_name().is_some() && a.tool_args().is_some();
    (a.tool_name(), a.tool_args()) == (b.tool_name(), b.tool_args())
        && (is_call || a.description == b.description)
}
