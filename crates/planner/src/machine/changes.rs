//! Another plan for the rest: a diff against the running one. What is done or under way is never touched.

use archon_types::{PlanDiff, SubTaskId};

use super::{NodeState, Phase, PlanMachine};

impl PlanMachine {
    pub(super) fn changed(&mut self, diff: &PlanDiff) {
        let Some(ask) = self.replan.take() else { return };
        self.given_up.extend(ask.reason.clone());
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
            self.phase = Phase::Broken { error: format!("the changed plan cannot be followed: {problem}") };
            return;
        }
        // What the other plan leaves as it was has failed for good.
        self.give_up(&ask.targets);
    }

    /// Whether a subtask is neither done nor under way.
    pub fn may_change(&self, id: &SubTaskId) -> bool {
        use NodeState::{Asked, Done, DoneWithout, Running, Skipped};
        let node = self.nodes.of_id(id.as_str());
        node.is_some_and(|n| !matches!(n.state, Running { .. } | Asked | Done | DoneWithout | Skipped))
    }
}
