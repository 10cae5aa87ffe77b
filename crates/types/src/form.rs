//! Whether an answer has the form that it must have: how often it is sent back, and what was found.

use std::fmt;

use serde::{Deserialize, Serialize};

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
