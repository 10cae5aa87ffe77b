//! Templates from text. Where it cannot be read the problem says in which line and column.

use super::{TemplateProblem, WorkflowTemplate};

impl WorkflowTemplate {
    /// Reads a template in JSON.
    ///
    /// # Errors
    /// [`TemplateProblem::Unreadable`].
    pub fn from_json(text: &str) -> Result<Self, TemplateProblem> {
        serde_json::from_str(text).map_err(|error| {
            let problem = error.to_string();
            // The place is said apart.
            let problem = problem.rsplit_once(" at line ").map_or(problem.as_str(), |(what, _)| what);
            let (line, column) = (error.line() as u64, error.column() as u64);
            TemplateProblem::Unreadable { line, column, problem: problem.to_owned() }
        })
    }

    /// Reads a template in YAML 1.2: `yes` and `no` are texts, as are numbers that begin with a zero.
    ///
    /// # Errors
    /// [`TemplateProblem::Unreadable`].
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str) -> Result<Self, TemplateProblem> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            leading_zero_numbers_as_strings: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            let problem = error.to_string();
            let place = format!(" at line {line}, column {column}");
            let problem = problem.strip_suffix(&place).unwrap_or(&problem).to_owned();
            TemplateProblem::Unreadable { line, column, problem }
        })
    }
}
