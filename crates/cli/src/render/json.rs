//! Shows a run to programs: each record and delta as a line of JSON, by the schema of `archon schema events`.

use archon::types::Event;

use super::Render;
use crate::output::Output;

/// Writes events as lines of JSON to stdout.
#[derive(Debug)]
pub(super) struct JsonLines;

impl Render for JsonLines {
    fn event(&mut self, event: &Event, output: &Output) {
        // Events are maps with text keys, so they always serialize.
        if let Ok(line) = serde_json::to_string(event) {
            output.json(&line);
        }
    }
}
