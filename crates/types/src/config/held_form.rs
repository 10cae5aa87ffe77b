//! The format of an answer, the answers that did not match it, and the consequence of each check.

use serde::{Deserialize, Serialize};

use crate::models::ResponseFormat;

use super::{
    form::{FormCheck, FormProblem, misfit_failure},
    run_config::RunConfig,
};

/// The format of a run's answer and the result of its checks, as a part of the machine of a plan or a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HeldForm {
    /// The format.
    pub format: ResponseFormat,
    check: FormCheck,
    /// The number of answers in a row that did not match.
    misses: u32,
    problems: Vec<FormProblem>,
}

/// The consequence of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormVerdict {
    /// The answer is accepted.
    Fits,
    /// The answer is requested again.
    Again,
    /// The run fails with this error.
    Failed(String),
}

impl HeldForm {
    /// Creates it for a run with this configuration, if its answer is checked.
    pub fn of(config: &RunConfig) -> Option<Self> {
        let (check, format) = (config.form_check?, config.form()?.clone());
        Some(Self { format, check, misses: 0, problems: Vec::new() })
    }

    /// Records the check of an answer, with its problems.
    pub fn checked(&mut self, problems: &[FormProblem]) -> FormVerdict {
        self.problems = problems.to_vec();
        if problems.is_empty() {
            self.misses = 0;
            return FormVerdict::Fits;
        }
        self.misses = self.misses.saturating_add(1);
        match self.misses > self.check.retries {
            true => FormVerdict::Failed(misfit_failure(problems, self.misses)),
            false => FormVerdict::Again,
        }
    }

    /// Returns the problems of the last answer.
    pub fn problems(&self) -> &[FormProblem] {
        &self.problems
    }

    /// Allows all retries again, because the failed run is resumed.
    pub fn begin_again(&mut self) {
        self.misses = 0;
    }
}
