//! The format of an answer, the answers that did not match it, and the consequence of each check.

use serde::{Deserialize, Serialize};

use crate::models::ResponseFormat;

use super::{
    run_config::RunConfig,
    structured_output::{OutputCheck, SchemaProblem, schema_failure},
};

/// The format of a run's answer and the result of its checks, as a part of the machine of a plan or a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputChecker {
    /// The format.
    pub format: ResponseFormat,
    check: OutputCheck,
    /// The number of answers in a row that did not match.
    misses: u32,
    problems: Vec<SchemaProblem>,
}

/// The consequence of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputVerdict {
    /// The answer is accepted.
    Fits,
    /// The answer is requested again.
    Again,
    /// The run fails with this error.
    Failed(String),
}

impl OutputChecker {
    /// Creates it for a run with this configuration, if its answer is checked.
    pub fn of(config: &RunConfig) -> Option<Self> {
        let (check, format) = (config.output_check?, config.output_format()?.clone());
        Some(Self { format, check, misses: 0, problems: Vec::new() })
    }

    /// Records the check of an answer, with its problems.
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

    /// Returns the problems of the last answer.
    pub fn problems(&self) -> &[SchemaProblem] {
        &self.problems
    }

    /// Allows all retries again, because the failed run is resumed.
    pub fn begin_again(&mut self) {
        self.misses = 0;
    }
}
