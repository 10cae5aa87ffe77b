//! Whether an answer has the form that it must have: how often it is sent back, and what was found.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ResponseFormat, RunConfig};

/// Answers are held against [`RequestOptions::response_format`](crate::RequestOptions::response_format). One
/// that does not fit is sent back with what is wrong; when that was done often enough, the run fails and says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FormCheck {
    /// Answers that are sent back. Default 2.
    pub retries: u32,
}

impl FormCheck {
    /// Sends so many answers back.
    pub fn new(retries: u32) -> Self {
        Self { retries }
    }
}

impl Default for FormCheck {
    fn default() -> Self {
        Self::new(2)
    }
}

/// What does not fit in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormProblem {
    /// Where, as a JSON pointer (`/days/0`); empty for the answer as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

impl FormProblem {
    /// A problem at a place.
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

/// What is wrong with an answer, in a line.
pub fn misfit_line(problems: &[FormProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a model is told whose answer does not fit; `how` says in which words it is to answer again.
pub fn misfit_note(problems: &[FormProblem], how: &str) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    format!("Your answer is not of the form that it must have:\n{}\nAnswer again: {how}.", lines.join("\n"))
}

/// Why a run fails whose last answer, after so many tries, does not fit.
pub fn misfit_failure(problems: &[FormProblem], tries: u32) -> String {
    let line = misfit_line(problems);
    format!("the answer does not fit its form (try {tries} of {tries}): {line}")
}

impl RunConfig {
    /// The form that the run's answer is held against, if it is. Of a plan or a team this is the form of its conclusion.
    pub fn form(&self) -> Option<&ResponseFormat> {
        self.form_check.and(self.options.response_format.as_ref())
    }
}

/// The form of a run's answer, and how the answers so far did: what the machine of a plan or of a team keeps of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HeldForm {
    /// The form.
    pub format: ResponseFormat,
    check: FormCheck,
    /// Answers that did not fit, since one did.
    misses: u32,
    problems: Vec<FormProblem>,
}

/// What follows from a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormVerdict {
    /// The answer stands.
    Fits,
    /// Whoever gave it is asked again.
    Again,
    /// The run fails, because of this.
    Failed(String),
}

impl HeldForm {
    /// The form of a run that begins with this, if its answer is held against one.
    pub fn of(config: &RunConfig) -> Option<Self> {
        let (check, format) = (config.form_check?, config.form()?.clone());
        Some(Self { format, check, misses: 0, problems: Vec::new() })
    }

    /// An answer was looked at, and this is wrong with it.
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

    /// What is wrong with the last answer.
    pub fn problems(&self) -> &[FormProblem] {
        &self.problems
    }

    /// The failed run is resumed: as many answers are sent back as before.
    pub fn begin_again(&mut self) {
        self.misses = 0;
    }
}
