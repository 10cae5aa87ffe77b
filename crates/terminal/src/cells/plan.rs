//! The list of steps that an agent keeps with the tool `update_plan`.

use archon_types::{Json, ToolCall, one_line};

use crate::{
    row::{Row, Span, width},
    theme::{Look, Page},
    wrap::break_spans,
};

/// The tool whose calls carry the list.
const TOOL: &str = "update_plan";
/// The maximum number of characters of a step, and of the explanation.
const CHARACTERS: usize = 400;
/// The maximum number of steps that are kept.
const STEPS: usize = 100;

/// The list of steps of a call of `update_plan`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanCell {
    /// Why the list changed, as one line; empty if the agent gave no reason.
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
    /// How far the step is.
    pub status: PlanStepStatus,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanStepStatus {
    /// The step has not begun.
    Pending,
    /// The agent works on the step.
    InProgress,
    /// The step is done.
    Completed,
}

impl PlanCell {
    /// Returns the list of a call; `None` for any other call, and for arguments of another form.
    pub(crate) fn of(call: &ToolCall) -> Option<Self> {
        if call.name != TOOL {
            return None;
        }
        let steps = call.arguments.get("steps")?.as_array()?;
        let explanation = call.arguments.get("explanation").and_then(Json::as_str).unwrap_or_default();
        let steps: Option<Vec<PlanStep>> = steps.iter().take(STEPS).map(PlanStep::of).collect();
        Some(Self { explanation: one_line(explanation, CHARACTERS), steps: steps? })
    }

    /// Returns true if nothing is left to do.
    pub(crate) fn is_completed(&self) -> bool {
        self.steps.iter().all(|step| step.status == PlanStepStatus::Completed)
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let mut first = vec![Span::new("Plan", page.theme.style(Look::Strong))];
        if !self.explanation.is_empty() {
            first.push(Span::new(format!("  {}", self.explanation), page.theme.style(Look::Dim)));
        }
        let mut rows = break_spans(&first, page.width);
        rows.extend(self.steps.iter().flat_map(|step| step.rows(page)));
        rows
    }

    /// Returns a row for each step, at most `most`: those around the first step that is not completed.
    pub(crate) fn live_rows(&self, page: &Page, most: usize) -> Vec<Row> {
        let current = self.steps.iter().position(|step| step.status != PlanStepStatus::Completed);
        // The step before the current one is shown too.
        let first = current.unwrap_or(0).saturating_sub(1).min(self.steps.len().saturating_sub(most));
        let shown = self.steps.iter().skip(first).take(most);
        shown.map(|step| step.row(page).cut(page.width)).collect()
    }
}

impl PlanStep {
    fn of(step: &Json) -> Option<Self> {
        let status = match step.get("status")?.as_str()? {
            "pending" => PlanStepStatus::Pending,
            "in_progress" => PlanStepStatus::InProgress,
            "completed" => PlanStepStatus::Completed,
            _ => return None,
        };
        Some(Self { text: one_line(step.get("step")?.as_str()?, CHARACTERS), status })
    }

    fn row(&self, page: &Page) -> Row {
        let (sign, ascii, look) = match self.status {
            PlanStepStatus::Pending => ("☐ ", "[ ] ", Look::Plain),
            PlanStepStatus::InProgress => ("◐ ", "[~] ", Look::Strong),
            PlanStepStatus::Completed => ("☑ ", "[x] ", Look::Dim),
        };
        let sign = if page.theme.is_ascii() { ascii } else { sign };
        let style = page.theme.style(look);
        Row::of_spans(vec![Span::new(format!("  {sign}"), style), Span::new(self.text.as_str(), style)])
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
