//! The check of a structured output: its settings, the problems that it finds, and the retries.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ResponseFormat, RunConfig};

/// Settings for checking answers against
/// [`RequestOptions::response_format`](crate::RequestOptions::response_format). An answer that does not match
/// is sent back with its problems; after the last retry the run fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FormCheck {
    /// The number of answers that are sent back. Default 2.
    pub retries: u32,
}

impl FormCheck {
    /// Creates a check with this number of retries.
    pub fn new(retries: u32) -> Self {
        Self { retries }
    }
}

impl Default for FormCheck {
    fn default() -> Self {
        Self::new(2)
    }
}

/// A problem of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormProblem {
    /// The place, as a JSON pointer (`/days/0`); empty for the whole answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The problem there.
    pub problem: String,
}

impl FormProblem {
    /// Creates a problem.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}

impl fmt::Display for FormProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.problem),
            path => write!(f, "at {path}: {}", self.problem),
        }
    }
}

/// Returns the problems of an answer, in a line.
pub fn misfit_line(problems: &[FormProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the message for a model whose answer does not match; `how` says how it should answer again.
pub fn misfit_note(problems: &[FormProblem], how: &str) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    format!("Your answer is not of the form that it must have:\n{}\nAnswer again: {how}.", lines.join("\n"))
}

/// Returns the error of a run whose last answer does not match, after `tries` tries.
pub fn misfit_failure(problems: &[FormProblem], tries: u32) -> String {
    let line = misfit_line(problems);
    format!("the answer does not fit its schema (try {tries} of {tries}): {line}")
}

impl RunConfig {
    /// Returns the format that the run's answer is checked against, if it is checked. For a plan or a team it
    /// is the format of the final answer.
    pub fn form(&self) -> Option<&ResponseFormat> {
        self.form_check.and(self.options.response_format.as_ref())
    }
}

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
