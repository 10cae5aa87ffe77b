//! For programs: every record and delta as it is, one a line, as `archon schema events` says.

use archon::types::Event;

use super::Render;
use crate::output::Output;

/// Writes events as lines of JSON to stdout.
#[derive(Debug)]
pub(super) struct JsonLines;

impl Render for JsonLines {
    fn event(&mut self, event: &Event, output: &Output) {
        // Events are maps with text keys: they always have a JSON form.
        if let Ok(line) = serde_json::to_string(event) {
            output.json(&line);
        }
    }
}
