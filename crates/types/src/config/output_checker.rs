//! Decides after each check of a run's answer against the required format: accept the answer, ask again, or
//! fail.

use serde::{Deserialize, Serialize};

use crate::models::ResponseFormat;

use super::{
    run_config::RunConfig,
    structured_output::{OutputCheck, SchemaProblem, schema_failure},
};

/// Decides the next step of a run after each check of its answer. The checker stores the required format, and
/// counts the answers in a row that did not match it. The runs of plans and teams keep a checker in their
/// state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputChecker {
    /// The format that the answer must have.
    pub format: ResponseFormat,
    check: OutputCheck,
    /// The number of answers in a row that did not match the format.
    misses: u32,
    problems: Vec<SchemaProblem>,
}

/// The next step of a run after the check of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputVerdict {
    /// The answer is accepted.
    Fits,
    /// The model is asked for another answer.
    Again,
    /// The run fails with this error.
    Failed(String),
}

impl OutputChecker {
    /// Creates the checker for a run with this configuration; `None` if the run's answer is not checked.
    pub fn of(config: &RunConfig) -> Option<Self> {
        let (check, format) = (config.output_check?, config.output_format()?.clone());
        Some(Self { format, check, misses: 0, problems: Vec::new() })
    }

    /// Counts an answer that was checked, and returns the next step of the run. `problems` are the problems
    /// of the answer; if there are none, the answer matches the format.
    pub fn checked(&mut self, problems: &[SchemaProblem]) -> OutputVerdict {
        self.problems = problems.to_vec();
        if problems.is_empty() {
            self.misses = 0;
            return OutputVerdict::Fits;
        }
        self.misses = self.misses.saturating_add(1);
        match self.misses > self.check.retries {
            true => OutputVerdict::Failed(schema_failure(problems, self.misses)),
            false => OutputVerdict::Again,
        }
    }

    /// Returns the problems of the last checked answer.
    pub fn problems(&self) -> &[SchemaProblem] {
        &self.problems
    }

    /// Sets the count of answers that did not match back to 0. Call this when a failed run is resumed.
    pub fn begin_again(&mut self) {
        self.misses = 0;
    }
}
