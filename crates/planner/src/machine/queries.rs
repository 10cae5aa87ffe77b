//! What can be asked of a machine.

use archon_types::{
    AgentState, CallId, Lease, LimitReached, MoreLimits, Outcome, OutcomeStatus, PlanSettings, RunId,
    Spending, SubTask, SubTaskId, SubTaskStatus, Timestamp,
};

use super::{Asked, NodeState, Phase, PlanMachine, PlanNode};
use crate::{diff::does_same, invariants};

/// Plans of so many subtasks are looked at after each record, where assertions are on.
const SMALL: usize = 32;

impl PlanMachine {
    /// The plan, where it is fixed and nobody is asked for one.
    pub fn fixed(&self) -> Option<&[SubTask]> {
        self.fixed.as_deref()
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// How it works.
    pub fn settings(&self) -> &PlanSettings {
        &self.settings
    }

    /// What was remembered for the goal.
    pub fn memories(&self) -> &[String] {
        &self.memories
    }

    /// What the agents read beside the goal.
    pub fn background(&self) -> &str {
        &self.background
    }

    /// What was wrong with the planner's last answer to the question that is open.
    pub fn problems(&self) -> &[String] {
        match (&self.phase, &self.replan) {
            (Phase::Planning(ask), _) | (_, Some(ask)) => &ask.problems,
            _ => &[],
        }
    }

    /// Which attempt at the open question to the planner is under way.
    pub fn attempt(&self) -> u32 {
        match (&self.phase, &self.replan) {
            (Phase::Planning(ask), _) | (_, Some(ask)) => ask.attempt,
            _ => 0,
        }
    }

    /// Whether a person said no to a second run of a subtask that does the same.
    pub fn said_no_to(&self, subtask: &SubTask) -> bool {
        self.said_no.iter().any(|other| does_same(other, subtask))
    }

    /// The subtasks that the open question about another plan is about; they and what depends on them may change.
    pub fn targets(&self) -> &[SubTaskId] {
        self.replan.as_ref().map(|ask| ask.targets.as_slice()).unwrap_or_default()
    }

    /// What the run is doing.
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

    /// The outcome, once the last record is written.
    pub fn ended(&self) -> Option<&Outcome> {
        self.ended.as_deref()
    }

    /// The limit that ended the run, if one did that still holds with so much more.
    pub fn ended_at(&self, more: &MoreLimits) -> Option<LimitReached> {
        let mut budget = self.budget.clone();
        budget.raise(more);
        // What is lent is not lost: the calls that have it go on with it.
        self.limit.and_then(|_| budget.reached())
    }

    /// Whether the run was asked to stop, or a limit was reached: what is under way is to end.
    pub fn is_stopping(&self) -> bool {
        self.cancelled || self.limit.is_some()
    }

    /// Whether nothing new begins.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether nothing goes on but what people are asked: time that passes now is not the run's.
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

    /// When the run's time is up.
    pub fn deadline(&self) -> Timestamp {
        self.budget.deadline()
    }

    /// All that is left for one who works alone.
    pub fn left(&self) -> Lease {
        self.budget.lease(1)
    }

    /// As [`left`](Self::left), with what is lent to calls under way: a plan that has them in it is measured by it.
    pub fn unspent(&self) -> Lease {
        self.budget.unspent()
    }

    /// All that the subtasks used, and the planner.
    pub fn spending(&self) -> Spending {
        self.budget.spent()
    }

    /// The part of what is left that a call's run may use: an equal share among those that can run side by side.
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

    /// How far a call is: a node of the plan that is being followed.
    pub fn node(&self, call: CallId) -> Option<&PlanNode> {
        self.nodes.of_call(call)
    }

    /// The subtasks of the plan with their states, in the order of the plan; those that a change took out are
    /// left out.
    pub fn nodes(&self) -> impl Iterator<Item = &PlanNode> {
        self.nodes.live()
    }

    /// The calls that are under way, in the order of the plan.
    pub fn under_way(&self) -> Vec<CallId> {
        self.nodes
            .live()
            .filter(|n| matches!(n.state, NodeState::Running { .. }))
            .map(PlanNode::call)
            .collect()
    }

    /// What is not as it must be, in words: as [`invariants`] of its [task](Self::task), and what is under way began
    /// at some time.
    pub fn invariants(&self) -> Vec<String> {
        let mut broken = invariants(&self.task());
        let timeless = |n: &&PlanNode| n.status() == SubTaskStatus::Executing && n.started_at.is_none();
        let names = self.nodes.live().filter(timeless).map(|n| &n.subtask.id);
        broken.extend(names.map(|id| format!("{id} is executing and has no time at which it began")));
        broken
    }

    /// Whether [`invariants`](Self::invariants) hold, as far as that is looked at: after each record of a small plan.
    pub(super) fn is_sound(&self) -> bool {
        self.phase != Phase::Following || self.nodes.len() > SMALL || self.invariants().is_empty()
    }

    /// Rules under which a person wants no more questions about calls of tools.
    pub fn trusted(&self) -> &[String] {
        &self.trusted
    }

    /// Other plans that the run had so far.
    pub fn replans(&self) -> u32 {
        self.replans
    }
}
