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

impl GoalVerdict {
    /// The verdict in what a model said that was asked for `MET`, or `NOT MET:` with what is missing; and what it says is
    /// missing, or why there is no verdict. The last line that says either counts: models like to think aloud first.
    pub fn read(text: &str) -> (Option<bool>, String) {
        for line in text.lines().rev() {
            let upper = line.trim_start_matches(['*', '#', '`', ' ']).to_ascii_uppercase();
            if let Some(rest) = upper.strip_prefix("NOT MET") {
                let rest = rest.trim_start_matches(['*', '`', ':', '.', ' ', '-']).chars().count();
                let from = line.chars().count() - rest;
                return (Some(false), line.chars().skip(from).collect());
            }
            if upper.starts_with("MET") {
                return (Some(true), String::new());
            }
        }
        (None, "the model gave no verdict".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: R-27
    #[test]
    fn a_verdict_is_the_last_line_that_says_so() {
        let table = [
            ("MET", Some(true), ""),
            ("The unit is there.\n**MET**", Some(true), ""),
            ("NOT MET: the unit is missing", Some(false), "the unit is missing"),
            ("First I thought MET.\n`NOT MET`: no sum", Some(false), "no sum"),
            ("not met", Some(false), ""),
            ("Perhaps", None, "the model gave no verdict"),
            ("", None, "the model gave no verdict"),
        ];
        for (text, met, reason) in table {
            assert_eq!(GoalVerdict::read(text), (met, reason.to_owned()), "{text:?}");
        }
    }
}
