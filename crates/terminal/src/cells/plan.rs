//! The step list that an agent keeps with the tool `update_plan`.

use archon_types::{STEP_LIST_TOOL, StepList, StepStatus, ToolCall, one_line};

use crate::{
    row::{Row, TextSpan, width},
    theme::{Look, Page},
    wrap::break_spans,
};

/// The maximum number of characters of a step, and of the explanation.
const CHARACTERS: usize = 400;

/// The step list of an agent, from the arguments of a call of `update_plan`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanCell {
    /// The reason for the change of the list, as one line; empty if the agent gave none.
    pub explanation: String,
    /// The steps in their order.
    pub steps: Vec<PlanStep>,
}

/// A step of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanStep {
    /// The text, as one line.
    pub text: String,
    /// The state of the step.
    pub status: StepStatus,
}

impl PlanCell {
    /// Returns the step list of a call of `update_plan`; `None` for any other call, or if the arguments are not a step
    /// list.
    pub(crate) fn of(call: &ToolCall) -> Option<Self> {
        let list = StepList::of(&call.arguments).filter(|_| call.name == STEP_LIST_TOOL)?;
        let steps = list.steps.iter().take(StepList::MAX);
        let steps =
            steps.map(|step| PlanStep { text: one_line(&step.step, CHARACTERS), status: step.status });
        let explanation = one_line(list.explanation.as_deref().unwrap_or_default(), CHARACTERS);
        Some(Self { explanation, steps: steps.collect() })
    }

    /// Returns true if nothing is left to do.
    pub(crate) fn is_completed(&self) -> bool {
        self.steps.iter().all(|step| step.status == StepStatus::Completed)
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let mut first = vec![TextSpan::new("Plan", page.theme.style(Look::Strong))];
        if !self.explanation.is_empty() {
            first.push(TextSpan::new(format!("  {}", self.explanation), page.theme.style(Look::Dim)));
        }
        let mut rows = break_spans(&first, page.width);
        rows.extend(self.steps.iter().flat_map(|step| step.rows(page)));
        rows
    }

    /// Returns a row for each step, but at most `most` rows. Of a longer list, the steps around the first one that is
    /// not completed are shown.
    pub(crate) fn live_rows(&self, page: &Page, most: usize) -> Vec<Row> {
        let current = self.steps.iter().position(|step| step.status != StepStatus::Completed);
        // The step before the current one is shown too.
        let first = current.unwrap_or(0).saturating_sub(1).min(self.steps.len().saturating_sub(most));
        let shown = self.steps.iter().skip(first).take(most);
        shown.map(|step| step.row(page).cut(page.width)).collect()
    }
}

impl PlanStep {
    fn row(&self, page: &Page) -> Row {
        let (sign, ascii, look) = match self.status {
            StepStatus::InProgress => ("◐ ", "[~] ", Look::Strong),
            StepStatus::Completed => ("☑ ", "[x] ", Look::Dim),
            _ => ("☐ ", "[ ] ", Look::Plain),
        };
        let sign = if page.theme.is_ascii() { ascii } else { sign };
        let style = page.theme.style(look);
        Row::of_spans(vec![
            TextSpan::new(format!("  {sign}"), style),
            TextSpan::new(self.text.as_str(), style),
        ])
    }

    fn rows(&self, page: &Page) -> Vec<Row> {
        let row = self.row(page);
        let Some((sign, text)) = row.spans.split_first() else { return Vec::new() };
        let columns = width(sign.text());
        let rows = break_spans(text, page.narrowed(columns).width).into_iter().enumerate();
        let before = |is_first| if is_first { sign.text().to_owned() } else { " ".repeat(columns) };
        rows.map(|(number, row)| row.after(before(number == 0), sign.style())).collect()
    }
}
