//! The goal check: compares an answer with the expected output, and sends back an answer that falls short.

use archon_types::{AuxiliaryCall, GoalCheck, GoalVerdict, OutcomeStatus};

use super::{Phase, ReactMachine, ReactTask, Step};

/// Maximum number of answers of a run that the goal check sends back; the next answer is accepted.
const MOST_CHECKS: u32 = 2;

/// The data of a goal check: a model decides whether the answer meets the expected output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GoalDue {
    /// The expected output.
    pub expected: String,
    /// The answer to check.
    pub answer: String,
}

impl ReactMachine {
    /// Accepts the answer, or starts its goal check.
    pub(super) fn check_goal(&mut self) {
        let expected = self.config.expected_output.as_deref().filter(|text| !text.trim().is_empty());
        let (Some(check), Some(expected)) = (self.config.goal_check, expected) else { return self.accept() };
        if self.goal_checks >= MOST_CHECKS || self.cancelled {
            return self.accept();
        }
        match check {
            GoalCheck::Text if plain(&self.last_answer).contains(&plain(expected)) => self.accept(),
            GoalCheck::Text => self.fall_short("it is not in your answer"),
            // The check is skipped if the budget cannot pay for it.
            GoalCheck::Model if self.cost_due().is_some() => self.accept(),
            GoalCheck::Model => self.phase = Phase::Checking,
            _ => self.accept(),
        }
    }

    pub(super) fn goal_due(&self) -> Step {
        let expected = self.config.expected_output.clone().unwrap_or_default();
        let due = ReactTask::CheckGoal(GoalDue { expected, answer: self.last_answer.clone() });
        self.auxiliary_command(AuxiliaryCall::GoalCheck, Step::Do(due))
    }

    pub(super) fn goal_checked(&mut self, verdict: &GoalVerdict) {
        if !matches!(self.phase, Phase::Checking) {
            return;
        }
        self.pay_auxiliary_call(&verdict.usage, verdict.met.is_some());
        match verdict.met {
            Some(false) => self.fall_short(verdict.reason.trim()),
            _ => self.accept(),
        }
    }

    fn accept(&mut self) {
        self.phase = Phase::Finishing(Box::new(self.outcome(OutcomeStatus::Finished)));
        self.take_follow_ups();
    }

    fn fall_short(&mut self, why: &str) {
        self.goal_checks += 1;
        let expected = self.config.expected_output.as_deref().unwrap_or_default();
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        self.note(format!(
            "Your answer is not what was expected yet{why}. Expected output: {expected}\nGo on until it is, or say \
             plainly why that cannot be done."
        ));
    }
}

/// Normalizes case and white space for comparison.
fn plain(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
