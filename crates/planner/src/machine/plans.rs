//! Applies the planner's answers: an accepted plan, or a rejected one.

use archon_types::{CallId, CommandId, Confirm, FailureKind, Task};

use super::{Asked, Nodes, Phase, PlanMachine};

impl PlanMachine {
    /// Adopts the planner's plan, which a person may have to approve.
    pub(super) fn take_plan(&mut self, command: CommandId, task: &Task) {
        self.adopt(task);
        if self.phase == Phase::Following && self.settings.confirm != Confirm::Never {
            self.phase = Phase::Confirming { call: CallId::new(command, 0), asked: Asked::No };
        }
    }

    /// Adopts a plan without changes. A plan that cannot be followed fails the run.
    pub(super) fn adopt(&mut self, task: &Task) {
        if !task.goal.trim().is_empty() {
            self.task.goal.clone_from(&task.goal);
        }
        self.task.context.extend(task.context.clone());
        self.nodes = Nodes::default();
        self.nodes.limit(&self.settings);
        self.add(&task.subtasks);
        self.phase = match self.nodes.rebuild() {
            Ok(()) => Phase::Following,
            Err(error) => Phase::Broken { kind: FailureKind::Plan, error },
        };
    }

    pub(super) fn rejected(
        &mut self,
        (command, attempt): (CommandId, u32),
        problems: &[String],
        retryable: bool,
        failure: Option<FailureKind>,
    ) {
        let most = self.settings.planning_attempts.max(1);
        let Some(ask) = self.open_ask(command, attempt) else { return };
        if retryable && attempt + 1 < most {
            ask.attempt += 1;
            ask.asked = Asked::No;
            ask.problems = problems.to_vec();
            return;
        }
        let why = problems.join("; ");
        match self.replan.take() {
            Some(ask) => self.replan_failed(&ask, &why),
            None => {
                let kind = failure.unwrap_or(FailureKind::Plan);
                self.phase = Phase::Broken { kind, error: format!("there is no plan: {why}") };
            }
        }
    }
}
