//! Read access to the state of a machine.

use archon_types::{
    AgentState, CallId, Lease, LimitReached, MoreLimits, Outcome, OutcomeStatus, PlanSettings, RunId,
    Spending, SubTask, SubTaskId, SubTaskStatus, Timestamp,
};

use super::{Ask, Asked, NodeState, Phase, PlanMachine, PlanNode};
use crate::{diff::does_same, invariants};

/// Maximum number of subtasks of a plan that is checked after each record in debug builds.
const SMALL: usize = 32;

impl PlanMachine {
    /// Returns the fixed plan; `None` if the planner is asked.
    pub fn fixed(&self) -> Option<&[SubTask]> {
        self.fixed.as_deref()
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns the settings of the plan.
    pub fn settings(&self) -> &PlanSettings {
        &self.settings
    }

    /// Returns the memories that were recalled for the goal.
    pub fn memories(&self) -> &[String] {
        &self.memories
    }

    /// Returns the background text that the agents read besides the goal.
    pub fn background(&self) -> &str {
        &self.background
    }

    /// Returns the problems of the planner's last answer to the open request.
    pub fn problems(&self) -> &[String] {
        self.open_request().map_or(&[], |ask| &ask.problems)
    }

    /// Returns the number of the attempt at the open request to the planner, from 0.
    pub fn attempt(&self) -> u32 {
        self.open_request().map_or(0, |ask| ask.attempt)
    }

    fn open_request(&self) -> Option<&Ask> {
        match &self.phase {
            Phase::Planning(ask) => Some(ask),
            _ => self.replan.as_ref(),
        }
    }

    /// Returns an earlier subtask that does the same work as `subtask`, and that a person refused to run
    /// again.
    pub fn refused_repeat(&self, subtask: &SubTask) -> Option<&SubTask> {
        self.refused_repeats.iter().find(|other| does_same(other, subtask))
    }

    /// Returns the targets of the open replan. The targets and all subtasks that depend on them may
    /// change.
    pub fn targets(&self) -> &[SubTaskId] {
        self.replan.as_ref().map(|ask| ask.targets.as_slice()).unwrap_or_default()
    }

    /// Returns the state of the run.
    pub fn state(&self) -> AgentState {
        match (&self.ended, &self.phase) {
            (Some(outcome), _) if outcome.is_finished() => AgentState::Finished,
            (Some(outcome), _) if outcome.status != OutcomeStatus::Cancelled => AgentState::Error,
            (_, Phase::Fresh) => AgentState::Idle,
            (_, Phase::Planning(_) | Phase::Confirming { .. }) => AgentState::Planning,
            (_, Phase::Broken { .. }) => AgentState::Error,
            _ if self.replan.is_some() => AgentState::Replanning,
            _ => AgentState::Executing,
        }
    }

    /// Returns the outcome; `None` while no outcome is recorded.
    pub fn ended(&self) -> Option<&Outcome> {
        self.ended.as_deref()
    }

    /// Returns the limit that ended the run, if a limit is still reached after `more` raises the limits.
    pub fn ended_at(&self, more: &MoreLimits) -> Option<LimitReached> {
        let mut budget = self.budget.clone();
        budget.raise(more);
        // Leases are not lost, because their calls continue with them.
        self.limit.and_then(|_| budget.reached())
    }

    /// Returns true if the run was cancelled or a limit was reached, so that running work must end.
    pub fn is_stopping(&self) -> bool {
        self.cancelled || self.limit.is_some()
    }

    /// Returns true if all open work waits for people. Such time does not count against the time limit.
    pub fn waits_for_people(&self) -> bool {
        match &self.phase {
            Phase::Confirming { asked: Asked::Yes, .. } => true,
            Phase::Following => {
                let is_proposed = self.proposed.as_ref().is_some_and(|proposed| proposed.asked == Asked::Yes);
                let is_planning = self.replan.is_some() && self.proposed.is_none();
                (is_proposed || self.nodes.has_questions())
                    && !is_planning
                    && self.nodes.running() == 0
                    && self.nodes.next_due().is_none()
            }
            _ => false,
        }
    }

    /// Returns the time at which the run's time limit is reached.
    pub fn deadline(&self) -> Timestamp {
        self.budget.deadline()
    }

    /// Returns the part of the remaining budget that is not reserved for running calls.
    pub fn remaining_budget(&self) -> Lease {
        self.budget.lease(1)
    }

    /// Returns the whole remaining budget, with the parts that are reserved for running calls. A plan with running
    /// calls is checked against this budget.
    pub fn unspent(&self) -> Lease {
        self.budget.unspent()
    }

    /// Returns the spending of the subtasks and of the planner.
    pub fn spending(&self) -> Spending {
        self.budget.ledger.spent()
    }

    /// Returns the budget that the child run of a call may use: an equal share for each call that can run concurrently.
    pub fn lease(&self, call: CallId) -> Option<Lease> {
        let node = self.nodes.of_call(call)?;
        if let Some(lease) = node.money.lease(call) {
            return Some(lease);
        }
        let running = self.nodes.running();
        let free = u64::from(self.settings.max_concurrent.max(1).saturating_sub(running));
        let to_come = (self.nodes.open() as u64).saturating_sub(u64::from(running));
        Some(self.budget.lease(free.min(to_come).max(1)))
    }

    /// Returns the node of a call.
    pub fn node(&self, call: CallId) -> Option<&PlanNode> {
        self.nodes.of_call(call)
    }

    /// Returns the nodes in the order of the plan, without those that a replan removed.
    pub fn nodes(&self) -> impl Iterator<Item = &PlanNode> {
        self.nodes.live()
    }

    /// Returns the running calls, in the order of the plan.
    pub fn under_way(&self) -> Vec<CallId> {
        let running = self.nodes().filter(|node| matches!(node.state, NodeState::Running { .. }));
        running.map(PlanNode::call).collect()
    }

    /// Returns a description of each violated invariant: those of [`invariants`] for the machine's
    /// [task](Self::task), and running subtasks without a start time.
    pub fn invariants(&self) -> Vec<String> {
        let mut broken = invariants(&self.task());
        let timeless = |n: &&PlanNode| n.status() == SubTaskStatus::Executing && n.started_at.is_none();
        let text = |n: &PlanNode| format!("{} is executing and has no start time", n.subtask.id);
        broken.extend(self.nodes().filter(timeless).map(text));
        broken
    }

    /// Returns true if the [`invariants`](Self::invariants) hold. Only small plans that are being
    /// followed are checked.
    pub(super) fn is_sound(&self) -> bool {
        self.phase != Phase::Following || self.nodes.len() > SMALL || self.invariants().is_empty()
    }

    /// Returns the permission rules that people trusted for this run with an "always allow" answer.
    pub fn trusted(&self) -> &[String] {
        &self.trusted
    }

    /// Returns the number of replans so far.
    pub fn replans(&self) -> u32 {
        self.replans
    }
}
