//! Builds the outcomes of a plan's run.

use archon_types::{FailureKind, Outcome, OutcomeStatus, SubTask};

use super::{NodeState, PlanMachine, PlanNode, failures::why};

impl PlanMachine {
    pub(super) fn outcome(&self, status: OutcomeStatus) -> Outcome {
        let mut outcome = Outcome::new(self.run.clone(), status);
        outcome.child_spending = self.budget.ledger.spent();
        if status != OutcomeStatus::Finished {
            outcome.set_answer(self.partial_results());
            self.note_output(&mut outcome);
        }
        outcome
    }

    pub(super) fn failed_outcome(&self, kind: FailureKind, error: String) -> Outcome {
        let mut outcome = self.outcome(OutcomeStatus::Failed);
        (outcome.failure, outcome.error) = (Some(kind), Some(error));
        outcome
    }

    /// Returns the outcome of a run that cannot continue, because subtasks failed or wait for each other.
    pub(super) fn stuck(&self) -> Outcome {
        let is = |state: fn(&NodeState) -> bool| -> Vec<&PlanNode> {
            self.nodes.live().filter(|node| state(&node.state)).collect()
        };
        let failed = is(|state| matches!(state, NodeState::Failed | NodeState::Troubled));
        if failed.is_empty() {
            let waiting = is(|state| matches!(state, NodeState::Waiting | NodeState::Ready));
            let error = format!("deadlock: these wait and nothing can begin: {}", names(&waiting));
            return self.failed_outcome(FailureKind::Plan, error);
        }
        let all = self.nodes.live().count();
        let reason = |node: &&PlanNode| {
            format!("{} ({})", node.subtask.id, node.result.as_deref().map(why).unwrap_or_default())
        };
        let reasons: Vec<String> = failed.iter().map(reason).collect();
        let mut text = format!("{} of {all} subtasks failed: {}", failed.len(), reasons.join("; "));
        let lost = is(|state| *state == NodeState::Unreachable);
        if !lost.is_empty() {
            text.push_str(&format!(". Not done because of that: {}", names(&lost)));
        }
        let reasons = self.reasons_against_plans.join(" / ");
        if !reasons.is_empty() {
            text.push_str(&format!(". Plans that were given up: {reasons}"));
        }
        let subtasks: Vec<&SubTask> = failed.iter().map(|node| &*node.subtask).collect();
        text.push_str(&format!(". {}", SubTask::simpler_goal(&subtasks, all)));
        self.failed_outcome(FailureKind::Subtasks, text)
    }

    /// Returns the results so far, one subtask after the other.
    fn partial_results(&self) -> String {
        use NodeState::{Done, Reviewed, ToReview};
        let done = self.nodes.live().filter(|node| matches!(node.state, Done | ToReview | Reviewed));
        let text = |node: &PlanNode| {
            let text = node.result.as_deref().map(archon_types::ToolResult::text).unwrap_or_default();
            format!("[{}] {}", node.subtask.id, text.trim())
        };
        done.map(text).collect::<Vec<_>>().join("\n\n")
    }
}

fn names(nodes: &[&PlanNode]) -> String {
    nodes.iter().map(|node| node.subtask.id.as_str()).collect::<Vec<_>>().join(", ")
}
