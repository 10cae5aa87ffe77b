//! The check of a structured output: its settings and the problems that it finds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Settings for checking answers against
/// [`RequestOptions::response_format`](crate::RequestOptions::response_format). An answer that does not match
/// is sent back with its problems; after the last retry the run fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct OutputCheck {
    /// The maximum number of answers that are sent back to the model with their problems. Default 2.
    pub retries: u32,
}

impl OutputCheck {
    /// Creates a check that sends up to `retries` answers with problems back to the model.
    pub fn new(retries: u32) -> Self {
        Self { retries }
    }
}

impl Default for OutputCheck {
    fn default() -> Self {
        Self::new(2)
    }
}

/// A problem that the check found in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SchemaProblem {
    /// The location of the problem as a JSON pointer (`/days/0`); empty for the whole answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The description of the problem.
    pub problem: String,
}

impl SchemaProblem {
    /// Creates a problem. `path` is its location as a JSON pointer such as `/days/0`; empty for the whole
    /// answer.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.problem),
            path => write!(f, "at {path}: {}", self.problem),
        }
    }
}

/// Returns the problems of an answer as one line, with `; ` between them.
pub fn problems_line(problems: &[SchemaProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the message that asks a model for another answer, because its answer does not match the schema.
/// `how` tells the model how to write the next answer.
pub fn problems_note(problems: &[SchemaProblem], how: &str) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    format!(
        "Your answer does not match the JSON schema that it must have:\n{}\nAnswer again: {how}.",
        lines.join("\n")
    )
}

/// Returns the error text of a run that failed because its last answer does not match the schema. `tries` is
/// the number of answers in a row that did not match, including the last one.
pub fn schema_failure(problems: &[SchemaProblem], tries: u32) -> String {
    let line = problems_line(problems);
    format!("the answer does not fit its schema (try {tries} of {tries}): {line}")
}
