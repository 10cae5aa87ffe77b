//! Whether an answer is what was expected: who looks, and what was found.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Who compares an answer with [`RunConfig::expected_output`](crate::RunConfig::expected_output). An answer
/// that falls short is sent back with what is missing, twice at most; the third one stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GoalCheck {
    /// The answer has to contain what was expected, whatever the case and the spaces.
    Text,
    /// The run's model is asked, in a question of its own.
    Model,
}

/// What a model said of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalVerdict {
    /// Whether it is what was expected; unknown if the model gave no verdict, and then the answer stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// What the model said, or why it said nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Tokens that the question took.
    pub usage: Usage,
}
