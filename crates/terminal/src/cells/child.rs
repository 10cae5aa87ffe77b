//! The calls of a child run, shown as indented lines below the call that started the child run, until that call ends.

use archon_types::{CallId, Record, RecordBody, RunId, ToolCall, ToolResult};

use crate::{
    row::{Row, TextSpan},
    theme::{Look, Page},
    wrap::one_row,
};

use super::{
    CellId, Cells,
    call_text::{argument_of, name_of},
};

/// The spaces before the line of a call of a child run.
const INDENT: &str = "     ";
/// The maximum number of lines below a call.
const LINES: usize = 4;

/// The calls of the child runs of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChildCalls(Vec<ChildCall>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ChildCall {
    run: RunId,
    call: CallId,
    text: String,
    state: ChildState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildState {
    Waiting,
    Running,
    Done,
    Failed,
}

impl ChildCalls {
    pub(super) fn add(&mut self, run: &RunId, call: CallId, asked: &ToolCall) {
        let text = format!("{} {}", name_of(asked), argument_of(asked));
        self.0.push(ChildCall {
            run: run.clone(),
            call,
            text: text.trim_end().to_owned(),
            state: ChildState::Waiting,
        });
    }

    pub(super) fn begin(&mut self, run: &RunId, call: CallId) {
        self.set(run, call, ChildState::Running);
    }

    pub(super) fn finish(&mut self, run: &RunId, call: CallId, result: &ToolResult) {
        self.set(run, call, if result.is_error() { ChildState::Failed } else { ChildState::Done });
    }

    fn set(&mut self, run: &RunId, call: CallId, state: ChildState) {
        let known = self.0.iter_mut().rev().find(|known| known.call == call && known.run == *run);
        if let Some(known) = known {
            known.state = state;
        }
    }

    /// Returns a row for each of the newest calls; if there are older calls, a row before them has their number.
    pub(super) fn rows(&self, page: &Page) -> Vec<Row> {
        let hidden = self.0.len().saturating_sub(LINES);
        let dim = page.theme.style(Look::Dim);
        let mut rows = Vec::new();
        if hidden > 0 {
            let s = if hidden == 1 { "" } else { "s" };
            rows.push(Row::new(format!("{INDENT}… {hidden} more call{s}"), dim).cut(page.width));
        }
        for call in self.0.iter().skip(hidden) {
            let (sign, look) = match call.state {
                ChildState::Waiting => ("○ ", Look::Dim),
                ChildState::Running => ("● ", Look::Strong),
                ChildState::Done => ("✓ ", Look::Good),
                ChildState::Failed => ("✗ ", Look::Error),
            };
            let text = one_row(&call.text, page.narrowed(INDENT.len() + 2).width).into_owned();
            let spans = vec![
                TextSpan::new(INDENT, dim),
                TextSpan::new(sign, page.theme.style(look)),
                TextSpan::new(text, page.theme.style(Look::Plain)),
            ];
            rows.push(Row::of_spans(spans).cut(page.width));
        }
        rows
    }
}

/// Applies the records of child runs to the cells.
impl Cells {
    /// Remembers that a call of a run gives its task to a child run.
    pub(super) fn mark_delegation(&mut self, run: &RunId, call: CallId, child: &RunId) {
        self.child_started(child, run, call);
        let id = self.run(run).calls.get(&call).copied();
        self.change_call(id, |cell| cell.is_delegation = true);
    }

    /// Records the cell below which the calls of a child run are shown: the cell of the call in the run at the top.
    pub(super) fn child_started(&mut self, child: &RunId, caller: &RunId, call: CallId) {
        let cell = match self.children.get(caller) {
            Some(cell) => *cell,
            None => self.runs.get(caller).and_then(|run| run.calls.get(&call).copied()),
        };
        let known = self.children.entry(child.clone()).or_default();
        *known = known.or(cell);
    }

    pub(super) fn apply_child(&mut self, run: &RunId, cell: Option<CellId>, record: &Record) {
        self.change_call(cell, |cell| match &record.body {
            RecordBody::ModelCallFinished { command, message, .. } => {
                for (index, call) in (0..).zip(message.tool_calls()) {
                    cell.children.add(run, CallId::new(*command, index), call);
                }
            }
            RecordBody::ToolCallStarted { call, .. } => cell.children.begin(run, *call),
            RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
                cell.children.finish(run, *call, result);
            }
            _ => {}
        });
        // The child runs of the child belong to the same call.
        match &record.body {
            RecordBody::ToolCallStarted { call, child_run: Some(child), .. }
            | RecordBody::LeaseGranted { call, child_run: child, .. }
            | RecordBody::ChildRunCreated { call, child_run: child } => self.child_started(child, run, *call),
            _ => {}
        }
    }
}
