//! Parses templates from JSON and YAML. Errors name the line and column.

use std::collections::HashMap;

use serde::{Deserialize, de::IgnoredAny};

use super::{TemplateProblem, WorkflowTemplate};

/// A template under the key `workflow` of its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped {
    workflow: WorkflowTemplate,
}

/// The keys of a file.
type Keys = HashMap<String, IgnoredAny>;

/// Parses the wrapped form if the plain form failed because of the key `workflow`. Otherwise returns
/// `error`, the failure of the plain form.
fn wrapped<E: std::fmt::Display>(
    error: E,
    is_wrapped: impl FnOnce() -> bool,
    read: impl FnOnce() -> Result<Wrapped, E>,
) -> Result<WorkflowTemplate, E> {
    match error.to_string().contains("unknown field `workflow`") && is_wrapped() {
        true => read().map(|wrapped| wrapped.workflow),
        false => Err(error),
    }
}

impl WorkflowTemplate {
    /// Parses a template in JSON, which may be under the key `workflow`.
    ///
    /// # Errors
    /// [`TemplateProblem::Unreadable`] if the text is not JSON or not a template.
    pub fn from_json(text: &str) -> Result<Self, TemplateProblem> {
        let is_wrapped = || serde_json::from_str(text).is_ok_and(|keys: Keys| keys.contains_key("workflow"));
        let read = serde_json::from_str(text);
        let read = read.or_else(|error| wrapped(error, is_wrapped, || serde_json::from_str(text)));
        read.map_err(|error| {
            let problem = error.to_string();
            // The line and the column are given separately.
            let problem = problem.rsplit_once(" at line ").map_or(problem.as_str(), |(what, _)| what);
            let (line, column) = (error.line() as u64, error.column() as u64);
            TemplateProblem::Unreadable { line, column, problem: problem.to_owned() }
        })
    }

    /// Parses a template in YAML 1.2, which may be under the key `workflow`. `yes`, `no` and numbers with
    /// a leading zero are texts.
    ///
    /// # Errors
    /// [`TemplateProblem::Unreadable`] if the text is not YAML or not a template.
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str) -> Result<Self, TemplateProblem> {
        let is_wrapped = || yaml(text).is_ok_and(|keys: Keys| keys.contains_key("workflow"));
        let read = yaml(text).or_else(|error| wrapped(error, is_wrapped, || yaml(text)));
        read.map_err(|error| {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            let problem = error.to_string();
            let place = format!(" at line {line}, column {column}");
            let problem = problem.strip_suffix(&place).unwrap_or(&problem).to_owned();
            TemplateProblem::Unreadable { line, column, problem }
        })
    }
}

#[cfg(feature = "yaml")]
fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}
