//! Applies a replan as a diff against the current plan. Subtasks that are done or running never change.

use archon_types::{Answer, CallId, CommandId, Confirm, PlanDiff, SubTaskId, Task};

use super::{Asked, NodeState, PlanMachine, Proposed, failures::refusal};
use crate::diff;

impl PlanMachine {
    /// Applies a replan, or waits for a person's approval. A replan that only restarts the same subtasks
    /// needs no approval.
    pub(super) fn proposed(&mut self, command: CommandId, diff: &PlanDiff) {
        match self.settings.confirm {
            Confirm::Each if !diff::is_unchanged(&self.task(), diff) => {
                let call = CallId::new(command, 0);
                self.proposed = Some(Proposed { call, diff: Box::new(diff.clone()), asked: Asked::No });
            }
            _ => self.changed(diff),
        }
    }

    /// Returns true if a replan may remove the subtask, so that the subtask must not start now.
    pub(super) fn is_held(&self, id: &SubTaskId) -> bool {
        let is_touched = |proposed: &Proposed| {
            proposed.diff.remove.contains(id) || proposed.diff.replace.iter().any(|new| new.id == *id)
        };
        self.targets().contains(id) || self.proposed.as_ref().is_some_and(is_touched)
    }

    /// Returns the diff of a replan that a person must approve, and the resulting plan.
    pub fn proposal(&self) -> Option<(&PlanDiff, Task)> {
        let diff = &self.proposed.as_ref()?.diff;
        Some((diff, diff::changed(&self.task(), diff)))
    }

    /// Applies a person's answer about a replan. A refusal ends the run, because the failed subtasks have
    /// no alternative.
    pub(super) fn change_answered(&mut self, answer: &Answer) {
        let Some(proposed) = self.proposed.take() else { return };
        const REFUSED: &str = "the other plan was not approved";
        match answer.edited_plan() {
            _ if !answer.is_consent() => self.break_off(REFUSED, &refusal(answer)),
            Some(Ok(task)) => self.changed(&diff::edited(&self.task(), &proposed.diff, &task)),
            Some(Err(error)) => self.break_off(REFUSED, &format!("its edit cannot be read: {error}")),
            None => self.changed(&proposed.diff),
        }
    }

    /// Applies the diff of a replan to the plan.
    pub(super) fn changed(&mut self, diff: &PlanDiff) {
        let Some(ask) = self.replan.take() else { return };
        self.reasons_against_plans.extend(ask.reason.clone());
        for id in diff.remove.iter().chain(diff.replace.iter().map(|subtask| &subtask.id)) {
            if self.may_change(id) {
                self.nodes.drop_node(id);
            }
        }
        for subtask in diff.replace.iter().chain(&diff.add) {
            if self.nodes.of_id(subtask.id.as_str()).is_none() {
                let command = self.take_command();
                self.nodes.add(subtask.clone(), command);
            }
        }
        if let Err(problem) = self.nodes.rebuild() {
            return self.break_off("the changed plan cannot be followed", &problem);
        }
        // A subtask that the replan did not change has failed finally.
        self.fail_targets(&ask.targets);
    }

    /// Returns true if a replan may change a subtask: the subtask is not done, skipped or running, and no person is
    /// asked about it. Returns false for an id that is not in the current plan.
    pub fn may_change(&self, id: &SubTaskId) -> bool {
        use NodeState::{Delayed, Failed, Gated, Ready, Troubled, Unreachable, Waiting};
        self.nodes.of_id(id.as_str()).is_some_and(|node| {
            matches!(node.state, Waiting | Ready | Delayed { .. } | Gated | Troubled | Failed | Unreachable)
        })
    }
}
