//! A tool call: one line, and the beginning or the end of its output.

use std::borrow::Cow;

use archon_types::{CallId, Json, Timestamp, ToolCall, ToolResult, ToolResultStatus, metadata};

use super::{
    call_text::{CHARACTERS, argument_of, name_of},
    child::ChildCalls,
    plan::PlanCell,
};
use crate::{
    diff::diff_rows,
    row::{Row, width},
    theme::{Look, Page},
    wrap,
};

/// A tool call, with its state and the shown part of its output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallCell {
    /// The id of the call within its run.
    pub call: CallId,
    /// The name of the tool.
    pub name: String,
    /// The argument that tells most about the call, such as the command or the path, as one line.
    pub argument: String,
    /// The present state of the call.
    pub state: CallProgress,
    /// The shown lines of the output: the last ones while the call runs and for a command, otherwise the first ones.
    /// For a delegation that succeeded, one line with its duration.
    pub output: Vec<String>,
    /// The number of lines of the output that are not shown.
    pub omitted: usize,
    /// The whole output; `None` if `output` already is the whole output, or if the whole output was dropped.
    pub(super) whole: Option<String>,
    /// True if `output` is the diff of a file.
    pub is_diff: bool,
    /// True if the call gives a task to another agent.
    pub is_delegation: bool,
    /// The calls of the child runs of this call; empty once this call has ended.
    pub(super) children: ChildCalls,
    /// The step list in the arguments of a call of `update_plan`.
    pub(super) plan: Option<PlanCell>,
}

/// The state of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallProgress {
    /// The call has not begun.
    Waiting,
    /// The call has been running since this time.
    Running(Timestamp),
    /// The call ended.
    Done {
        /// False if the call failed, also by an exit code other than 0, or was refused or did not run.
        is_success: bool,
        /// The milliseconds that the call took; `None` if it did not run.
        took_ms: Option<u64>,
    },
}

/// The maximum number of lines of an output that are shown; [`DIFF_LINES`] is the maximum for a diff.
const LINES: usize = 5;
const DIFF_LINES: usize = 20;

impl CallCell {
    pub(crate) fn new(id: CallId, call: &ToolCall) -> Self {
        Self {
            call: id,
            name: name_of(call),
            argument: argument_of(call),
            state: CallProgress::Waiting,
            output: Vec::new(),
            omitted: 0,
            whole: None,
            is_diff: false,
            is_delegation: false,
            children: ChildCalls::default(),
            plan: PlanCell::of(&call.target()),
        }
    }

    pub(crate) fn begin(&mut self, at: Timestamp) {
        self.state = CallProgress::Running(at);
    }

    /// Shows a progress message or a partial result of the running call.
    pub(crate) fn progress(&mut self, text: &str) {
        self.show(text, LINES, true);
    }

    pub(crate) fn finish(&mut self, result: &ToolResult, at: Timestamp) {
        let exit_code = result.metadata.get("exit_code").and_then(Json::as_i64);
        let took_ms = match self.state {
            CallProgress::Running(since) => Some(at.millis_since(since)),
            _ => None,
        };
        let is_success = !result.is_error() && exit_code.is_none_or(|code| code == 0);
        // What the child runs did belongs to their own logs.
        self.children = ChildCalls::default();
        self.state = CallProgress::Done { is_success, took_ms };
        let diff = result.metadata.get("diff").and_then(Json::as_str);
        self.is_delegation |= result.child_run.is_some() || result.metadata.contains_key(metadata::AGENT);
        match diff {
            // The header repeats the path.
            Some(diff) if is_success => {
                let body =
                    diff.lines().skip_while(|line| line.starts_with("--- ") || line.starts_with("+++ "));
                self.show(&body.collect::<Vec<_>>().join("\n"), DIFF_LINES, false);
                self.is_diff = true;
            }
            // What an agent answers is for its caller only.
            _ if self.is_delegation && is_success => {
                let took = took_ms.map(seconds).unwrap_or_default();
                self.show(&format!("Complete{took}"), LINES, false);
            }
            _ => {
                let text = match result.status {
                    ToolResultStatus::Success => result.text(),
                    _ => result.error_message.clone().unwrap_or_else(|| result.text()),
                };
                self.show(&text, LINES, exit_code.is_some());
            }
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, CallProgress::Running(_))
    }

    /// Shows a running call as waiting, because no process works on its run.
    pub(crate) fn rest(&mut self) {
        if self.is_running() {
            self.state = CallProgress::Waiting;
        }
    }

    /// Ends a call without a result, because nobody works on its run any more.
    pub(crate) fn give_up(&mut self) {
        let what = match self.state {
            CallProgress::Waiting => "not run",
            CallProgress::Running(_) => "cut off",
            CallProgress::Done { .. } => return,
        };
        self.show(what, LINES, false);
        self.children = ChildCalls::default();
        self.state = CallProgress::Done { is_success: false, took_ms: None };
    }

    fn show(&mut self, text: &str, most: usize, is_end: bool) {
        let text = text.trim_matches('\n');
        let lines: Vec<&str> = text.lines().collect();
        self.omitted = lines.len().saturating_sub(most);
        let is_part = self.omitted > 0 || lines.iter().any(|line| line.chars().nth(CHARACTERS).is_some());
        self.whole = is_part.then(|| text.to_owned());
        let first = if is_end { self.omitted } else { 0 };
        let keep = |line: &&str| line.chars().take(CHARACTERS).collect();
        self.output = lines.iter().skip(first).take(most).map(keep).collect();
        self.is_diff = false;
    }

    /// Returns the whole output if it is kept, otherwise the shown part.
    pub(crate) fn output_text(&self) -> Cow<'_, str> {
        match &self.whole {
            Some(whole) => Cow::Borrowed(whole),
            None => Cow::Owned(self.output.join("\n")),
        }
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let first = self.first_row(page);
        let mut rows =
            if page.is_unfolded { wrap::break_spans(&first.spans, page.width) } else { vec![first] };
        let dim = page.theme.style(Look::Dim);
        let output = self.output_rows(&page.narrowed(INDENT.len()));
        rows.extend(output.into_iter().map(|row| row.after(INDENT, dim)));
        let is_whole = page.is_unfolded && self.whole.is_some();
        if self.omitted > 0 && !is_whole {
            let s = if self.omitted == 1 { "" } else { "s" };
            rows.push(Row::new(format!("{INDENT}… {} more line{s}", self.omitted), dim));
        }
        rows.extend(self.children.rows(page));
        rows
    }

    fn output_rows(&self, page: &Page) -> Vec<Row> {
        let shown = if page.is_unfolded { self.output_text() } else { Cow::Owned(self.output.join("\n")) };
        let diff = if self.is_diff { diff_rows(&shown, page) } else { None };
        match diff {
            Some(rows) => rows,
            None if page.is_unfolded => wrap::rows(&shown, page.theme.style(Look::Dim), page.width),
            None => self.output.iter().map(|line| output_row(line, page)).collect(),
        }
    }

    fn first_row(&self, page: &Page) -> Row {
        let (sign, look, took) = match self.state {
            CallProgress::Waiting => ("○", Look::Dim, None),
            CallProgress::Running(_) => ("●", Look::Strong, None),
            CallProgress::Done { is_success: true, took_ms } => ("✓", Look::Good, took_ms),
            CallProgress::Done { is_success: false, took_ms } => ("✗", Look::Error, took_ms),
        };
        // The last line of a delegation has its time.
        let took =
            took.filter(|_| !self.is_delegation).map(|ms| format!("   {}", duration(ms))).unwrap_or_default();
        let columns = if page.is_unfolded { usize::MAX } else { page.width };
        let room = columns.saturating_sub(SIGN_COLUMNS + width(&took));
        let name = wrap::one_row(&self.name, room).into_owned();
        let room = room.saturating_sub(width(&name) + 1);
        let sign = if self.is_delegation { "→" } else { sign };
        let mut row = Row::new(format!("{sign} "), page.theme.style(look));
        row.push(name, page.theme.style(Look::Strong));
        if room > 1 && !self.argument.is_empty() {
            let argument = match self.is_delegation {
                true => format!("({})", wrap::one_row(&self.argument, room.saturating_sub(2).max(1))),
                false => wrap::one_row(&self.argument, room).into_owned(),
            };
            row.push(format!(" {argument}"), page.theme.style(Look::Plain));
        }
        row.push(took, page.theme.style(Look::Dim));
        row
    }
}

fn output_row(line: &str, page: &Page) -> Row {
    Row::of(wrap::one_row(&crate::row::harmless(line), page.width).into_owned(), Look::Dim, page)
}

const INDENT: &str = "  ";

/// The columns of a sign and the space behind it.
const SIGN_COLUMNS: usize = 2;

/// Formats the duration of a delegation, in brackets and in seconds.
pub(super) fn seconds(ms: u64) -> String {
    format!(" ({}.{}s)", ms / 1_000, ms % 1_000 / 100)
}

/// Formats a duration in milliseconds.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}
