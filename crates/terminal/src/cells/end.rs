//! The cell for the end of a run. A run that ends as usual, with a complete answer, has no such cell.

use archon_types::{Outcome, OutcomeStatus, one_line};

use crate::{
    markdown,
    row::Row,
    theme::{Look, Page},
    wrap,
};

/// The end of a run that failed, was cancelled or reached a limit, or whose answer is empty, cut off, a refusal, or
/// not shown before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndCell {
    /// The text, as one line.
    pub text: String,
    /// The meaning of the text, which decides its style.
    pub look: Look,
    /// The run's answer if no earlier cell shows it, such as the result of a plan; otherwise `None`.
    pub answer: Option<String>,
}

/// The maximum number of characters of an error.
const SHOWN: usize = 1_000;

impl EndCell {
    /// Returns the cell for an outcome; `None` if there is nothing to show. `last` is the last answer of the run.
    pub(crate) fn of(outcome: &Outcome, last: &str) -> Option<Self> {
        let (look, text) = describe(outcome);
        let answer = outcome.last_text().map(str::trim).filter(|answer| {
            let is_limit =
                matches!(outcome.status, OutcomeStatus::Limit(limit) if *answer == limit.to_string());
            !answer.is_empty() && !is_limit && !last.contains(answer)
        });
        let cell = Self { text, look, answer: answer.map(str::to_owned) };
        (!cell.text.is_empty() || cell.answer.is_some()).then_some(cell)
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let answer = self.answer.as_deref().unwrap_or_default();
        let mut rows: Vec<Row> = markdown::rows(answer, page);
        if !self.text.is_empty() {
            rows.extend(wrap::rows(&self.text, page.theme.style(self.look), page.width));
        }
        rows
    }
}

fn describe(outcome: &Outcome) -> (Look, String) {
    let is_empty = outcome.last_text().unwrap_or_default().trim().is_empty();
    match outcome.status {
        OutcomeStatus::Failed => {
            let error = outcome.error.as_deref().unwrap_or("the run failed without a reason");
            (Look::Error, format!("✗ {}", one_line(error, SHOWN)))
        }
        OutcomeStatus::Limit(limit) => (Look::Warning, format!("the run stopped: {limit}")),
        OutcomeStatus::Cancelled => (Look::Dim, "stopped".to_owned()),
        OutcomeStatus::Finished if is_empty => (Look::Warning, "the model gave an empty answer".to_owned()),
        OutcomeStatus::Finished if outcome.is_cut() => {
            (Look::Warning, "the answer was cut off at the maximum number of tokens".to_owned())
        }
        OutcomeStatus::Finished if outcome.is_refusal() => (Look::Dim, "the model declined".to_owned()),
        _ => (Look::Plain, String::new()),
    }
}
