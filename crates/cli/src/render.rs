//! Shows a run while it works, or its log afterwards, for people or for programs.

mod human;
mod json;
mod line;
mod plan;
mod stream;
mod team;
mod tree;

use std::sync::Arc;

use archon::types::{Event, Record, RunId};

use crate::output::Output;

pub(crate) use line::{body_line, record_line};

/// Receives a run's events in order and writes them.
pub(crate) trait Render: Send {
    /// Shows one event.
    fn event(&mut self, event: &Event, output: &Output);

    /// Takes the state from a record that was shown before, or by another process.
    fn remember(&mut self, _record: &Record) {}
}

/// Creates the renderer for people or for programs.
pub(crate) fn renderer(json: bool) -> Box<dyn Render> {
    if json { Box::new(json::JsonLines) } else { Box::new(human::Human::default()) }
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
