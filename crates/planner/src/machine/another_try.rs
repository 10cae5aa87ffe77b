//! Retries of failed runs at a resume: runs that have no plan or no answer.

use archon_types::OutputChecker;

use super::{Phase, PlanMachine};

/// The part that a failed run lacks: the plan or the answer.
enum Missing {
    Plan,
    Answer,
}

impl PlanMachine {
    /// Returns true if a resume may help the failed run, because it has no plan, no answer, or no answer
    /// that fits the schema, for a reason that may pass.
    pub fn may_try_again(&self) -> bool {
        self.missing().is_some()
    }

    fn missing(&self) -> Option<Missing> {
        match &self.phase {
            Phase::Broken { kind, .. } if kind.may_pass() && self.nodes.len() == 0 => Some(Missing::Plan),
            Phase::Broken { kind, .. } if kind.may_pass() => Some(Missing::Answer),
            _ => None,
        }
    }

    /// Starts the planning or the answer of a failed run again, with all attempts.
    pub(super) fn try_again(&mut self) {
        match self.missing() {
            Some(Missing::Plan) => self.phase = Phase::Planning(self.ask(None, Vec::new())),
            Some(Missing::Answer) => {
                self.output.iter_mut().for_each(OutputChecker::begin_again);
                let last = self.said.take();
                self.put_together(last);
            }
            None => {}
        }
    }
}
