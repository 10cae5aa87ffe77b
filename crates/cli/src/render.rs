//! Shows a run while it works, or its log afterwards, for people or for programs.

mod human;
mod line;
mod plan;
mod stream;
mod team;
mod tree;

use std::{cell::Cell, sync::Arc};

use archon::types::{Event, Record, RunId, ToolResult, ToolResultStatus};

use crate::{
    board::Row,
    output::{Look, Output},
};

pub(crate) use line::{body_line, record_line};

/// Receives a run's events in order and writes them.
pub(crate) trait Render: Send {
    /// Shows one event.
    fn event(&mut self, event: &Event, output: &Output);

    /// Updates the state with a record, and shows nothing.
    fn remember(&mut self, _record: &Record) {}
}

/// The state of a plan or a team, which is shown while its run works.
trait View: std::fmt::Debug + Send {
    /// Updates the state with a record of the run.
    fn learn(&mut self, record: &Record);

    /// Updates the state with a record of another run: that of a subtask or a member, or one of its child
    /// runs.
    fn apply(&mut self, run: &RunId, record: &Record, output: &Output);

    /// Shows a record about the plan or the team itself or about its subtasks, and returns true; returns
    /// false for any other record.
    fn show(&self, record: &Record, output: &Output) -> bool;

    /// Returns the number of finished subtasks, if the log is one of a plan or a team.
    fn work(&self) -> Option<String>;

    /// Returns the live lines for the bottom of a terminal; of many lines only those of work under way.
    fn live_rows(&self) -> Vec<Row>;

    /// Returns all lines, as they stay on the terminal after the live lines.
    fn final_rows(&self) -> Vec<Row> {
        self.live_rows()
    }

    fn is_under_way(&self) -> bool;

    /// Returns a flag: true if the live lines were replaced by fixed ones, and no line has changed since.
    fn is_still(&self) -> &Cell<bool>;

    /// Shows the live lines.
    fn draw(&self, output: &Output) {
        if output.spins && self.is_under_way() {
            self.is_still().set(false);
            output.board(self.live_rows());
        }
    }

    /// Replaces the live lines by fixed ones.
    fn leave(&self, output: &Output) {
        if output.spins && !self.is_still().replace(true) {
            output.close_board();
            let rows = self.final_rows().into_iter();
            rows.for_each(|row| output.note(Look::Dim, format!("  {}", row.text)));
        }
    }
}

/// Returns true if `run` is the run `of` or one of its child runs.
fn is_run_of(run: &RunId, of: &RunId) -> bool {
    let rest = run.as_str().strip_prefix(of.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Shows the end of a subtask or a delegation as a line, unless the live lines show it.
fn show_end(name: &str, result: &ToolResult, used: &str, (done, all): (usize, usize), output: &Output) {
    if !output.spins {
        let look = if result.status == ToolResultStatus::Success { Look::Plain } else { Look::Warning };
        let text = line::result_line(result);
        output.note(look, format!("<- {name}: {text} ({used}; {done} of {all} done)"));
    }
}

/// Shows a run to programs: each record and delta as a line of JSON, by the schema of `archon schema events`.
struct JsonLines;

impl Render for JsonLines {
    fn event(&mut self, event: &Event, output: &Output) {
        // Events are maps with text keys, so they always serialize.
        if let Ok(line) = serde_json::to_string(&event.without_media_data()) {
            output.json(&line);
        }
    }
}

/// Creates the renderer for people or for programs.
pub(crate) fn renderer(json: bool) -> Box<dyn Render> {
    if json { Box::new(JsonLines) } else { Box::new(human::Human::default()) }
}

/// Shows a log from its beginning.
pub(crate) fn replay(run: &RunId, records: &[Arc<Record>], json: bool, output: &Output) {
    let mut renderer = renderer(json);
    for record in records {
        renderer.event(&Event::Record { run: run.clone(), record: record.clone() }, output);
    }
}

#[cfg(test)]
mod tests;
