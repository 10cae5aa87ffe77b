//! Makes the outcome of a team's run.

use archon_types::{FailureKind, Outcome, OutcomeStatus, Spending, SubTask};

use super::{JobState, TeamMachine, progress::skips};
use crate::response::text_of;

impl TeamMachine {
    pub(super) fn outcome(&self, status: OutcomeStatus) -> Outcome {
        let mut outcome = Outcome::new(self.run.clone(), status);
        outcome.child_spending = self.charged();
        outcome.set_answer(self.answer.clone().unwrap_or_else(|| self.contributions()));
        if matches!(status, OutcomeStatus::Limit(_)) && self.output.is_some() {
            outcome.error = Some("there is no answer yet that fits the schema".to_owned());
        }
        outcome
    }

    /// Returns the spending of the run. A delegation whose spending is not known counts with its whole lease.
    pub(crate) fn charged(&self) -> Spending {
        let mut budget = self.budget.clone();
        for (_, hand) in self.hands() {
            let mut money = hand.money.clone();
            if hand.is_suspended() {
                budget.ledger.release_rest(&mut money);
            }
            budget.ledger.close(&mut money);
        }
        budget.ledger.spent()
    }

    pub(super) fn failed_outcome(&self, kind: FailureKind, error: String) -> Outcome {
        let mut outcome = self.outcome(OutcomeStatus::Failed);
        (outcome.failure, outcome.error) = (Some(kind), Some(error));
        outcome
    }

    /// Returns the outcome of a run with an answer: finished, or failed if a required subtask failed.
    pub(super) fn final_outcome(&self) -> Outcome {
        match self.failed() {
            None => self.outcome(OutcomeStatus::Finished),
            Some(failed) => self.failed_outcome(FailureKind::Subtasks, failed),
        }
    }

    /// Returns the results of the subtasks, and the settled conflicts.
    pub(super) fn contributions(&self) -> String {
        let done = self.contributors().map(|(id, text)| format!("[{id}] {}", text.trim()));
        let settled = self.settlements().map(|(conflict, value, how)| {
            format!("[{} contradicted; {} holds: {how}]", conflict.key, text_of(value))
        });
        done.chain(settled).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the reason why no subtask can continue.
    pub(super) fn stuck(&self) -> String {
        self.failed().unwrap_or_else(|| {
            let open = self.jobs.iter().filter(|job| !job.is_over()).map(|job| self.title(job));
            match open.collect::<Vec<_>>().join("; ") {
                open if open.is_empty() => "the plan has no subtasks".to_owned(),
                open => format!("deadlock: these wait for each other: {open}"),
            }
        })
    }

    fn failed(&self) -> Option<String> {
        let failed = self.jobs.iter().filter(|job| !skips(job)).filter_map(|job| match &job.state {
            JobState::Failed { reason } => Some((job.subtask()?, reason)),
            _ => None,
        });
        let failed: Vec<(&SubTask, &String)> = failed.collect();
        if failed.is_empty() {
            return None;
        }
        let all = self.steps().count();
        let subtasks: Vec<&SubTask> = failed.iter().map(|(subtask, _)| *subtask).collect();
        let old_plans = match self.replan_reasons.join(" / ") {
            none if none.is_empty() => none,
            plans => {
                format!(". Plans that were given up: {plans}. {}", SubTask::simpler_goal(&subtasks, all))
            }
        };
        let reasons: Vec<String> =
            failed.iter().map(|(subtask, reason)| format!("{} ({reason})", subtask.id)).collect();
        Some(format!("{} of {all} subtasks failed: {}{old_plans}", failed.len(), reasons.join("; ")))
    }
}
