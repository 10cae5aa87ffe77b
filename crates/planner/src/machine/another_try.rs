//! Retries of failed runs at a resume: runs that have no plan or no answer.

use archon_types::OutputChecker;

use super::{Phase, PlanMachine};

impl PlanMachine {
    /// Returns true if a resume may help the failed run. The run then has no plan, no answer or no answer that fits
    /// the schema, and the reason of the failure is temporary.
    pub fn may_try_again(&self) -> bool {
        matches!(&self.phase, Phase::Broken { kind, .. } if kind.may_pass())
    }

    /// Starts the planning or the answer of a failed run again, with the full number of attempts.
    pub(super) fn try_again(&mut self) {
        if !self.may_try_again() {
            return;
        }
        if self.nodes.len() == 0 {
            self.phase = Phase::Planning(self.ask(None, Vec::new()));
        } else {
            self.output.iter_mut().for_each(OutputChecker::begin_again);
            let last = self.invalid_output.take();
            self.put_together(last);
        }
    }
}
