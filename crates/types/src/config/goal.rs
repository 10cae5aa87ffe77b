//! The check of an answer against the expected output.

use serde::{Deserialize, Serialize};

use crate::messages::Usage;

/// The method that compares an answer with [`RunConfig::expected_output`](crate::RunConfig::expected_output).
/// The model must answer again if its answer does not meet the expected output, at most twice; the third
/// answer is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GoalCheck {
    /// The answer must contain the expected text; case and the amount of white space may differ.
    Text,
    /// The run's model judges the answer in a separate request.
    Model,
}

/// The verdict of a goal check: whether an answer meets the expected output of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalVerdict {
    /// True if the answer meets the expected output. `None` without a verdict: the answer is then accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// The parts of the expected output that the answer lacks, or the reason why there is no verdict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The tokens that the check used.
    pub usage: Usage,
}

impl GoalVerdict {
    /// Parses the reply of a model that was asked to write `MET`, or `NOT MET:` with the missing parts of the
    /// expected output. Returns true for `MET`, false for `NOT MET`, or `None` without a verdict; and a text:
    /// the missing parts or the reason why there is no verdict, empty for `MET`. The last line with a verdict
    /// counts, because models may think aloud before it.
    pub fn read(text: &str) -> (Option<bool>, String) {
        for line in text.lines().rev() {
            let upper = line.trim_start_matches(['*', '#', '`', ' ']).to_ascii_uppercase();
            if let Some(rest) = rest_of_verdict(&upper, "NOT MET") {
                let rest = rest.trim_start_matches(['*', '`', ':', '.', ' ', '-']).chars().count();
                let from = line.chars().count() - rest;
                return (Some(false), line.chars().skip(from).collect());
            }
            if rest_of_verdict(&upper, "MET").is_some() {
                return (Some(true), String::new());
            }
        }
        (None, "the model gave no verdict".to_owned())
    }
}

/// Returns the text behind `verdict` if the line begins with it as a word: "Methods" does not begin with "MET".
fn rest_of_verdict<'a>(upper: &'a str, verdict: &str) -> Option<&'a str> {
    upper.strip_prefix(verdict).filter(|rest| !rest.starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: R-27
    #[test]
    fn goal_verdict_read_takes_the_last_line_with_a_verdict() {
        let table = [
            ("MET", Some(true), ""),
            ("The unit is there.\n**MET**", Some(true), ""),
            ("NOT MET: the unit is missing", Some(false), "the unit is missing"),
            ("First I thought MET.\n`NOT MET`: no sum", Some(false), "no sum"),
            ("not met", Some(false), ""),
            ("NOT MET: no sum\nMethods were listed.", Some(false), "no sum"),
            ("Perhaps", None, "the model gave no verdict"),
            ("", None, "the model gave no verdict"),
        ];
        for (text, met, reason) in table {
            assert_eq!(GoalVerdict::read(text), (met, reason.to_owned()), "{text:?}");
        }
    }
}
