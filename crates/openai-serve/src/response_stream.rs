//! A response as a stream of events: each part of the answer is an item of its output.

use archon_types::Json;
use serde_json::json;

use crate::{
    ending::Ending,
    error::ApiError,
    response_object::{ResponseHead, item, text_part},
    stream::Writer,
    transcript::{Part, Piece},
};

/// Writes the events of a response.
pub(crate) struct ResponseWriter {
    head: ResponseHead,
    /// The sequence number of the next event.
    sequence: u64,
    /// The number of items so far.
    items: usize,
    open: Option<OpenItem>,
}

/// An item that is not complete yet.
struct OpenItem {
    id: String,
    index: usize,
    text: String,
}

impl ResponseWriter {
    pub(crate) fn new(head: ResponseHead) -> Self {
        Self { head, sequence: 0, items: 0, open: None }
    }

    /// Writes an event. Its type and its sequence number come before the other fields.
    fn event(&mut self, kind: &str, fields: Json) -> String {
        let mut event = json!({ "type": kind, "sequence_number": self.sequence });
        self.sequence += 1;
        if let (Json::Object(event), Json::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        format!("event: {kind}\ndata: {event}\n\n")
    }

    fn text(&mut self, text: &str) -> String {
        let mut written = String::new();
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let index = self.items;
                self.items += 1;
                let open = OpenItem { id: self.head.item_id(index), index, text: String::new() };
                let added = item(&open.id, "in_progress", None, &json!([]));
                let fields = json!({ "output_index": index, "item": added });
                written.push_str(&self.event("response.output_item.added", fields));
                let fields = open.fields([("part", text_part(""))]);
                written.push_str(&self.event("response.content_part.added", fields));
                open
            }
        };
        open.text.push_str(text);
        let fields = open.fields([("delta", json!(text)), ("logprobs", json!([]))]);
        written.push_str(&self.event("response.output_text.delta", fields));
        self.open = Some(open);
        written
    }

    /// Ends the open item.
    fn close(&mut self, status: &str, phase: Option<&str>) -> String {
        let Some(open) = self.open.take() else { return String::new() };
        let part = text_part(&open.text);
        let text_done = open.fields([("text", json!(open.text)), ("logprobs", json!([]))]);
        let part_done = open.fields([("part", part.clone())]);
        let done = item(&open.id, status, phase, &json!([part]));
        [
            self.event("response.output_text.done", text_done),
            self.event("response.content_part.done", part_done),
            self.event("response.output_item.done", json!({ "output_index": open.index, "item": done })),
        ]
        .concat()
    }
}

impl OpenItem {
    /// Returns the fields that identify the content of this item, and the fields in `others`.
    fn fields<const N: usize>(&self, others: [(&str, Json); N]) -> Json {
        let mut fields = json!({ "item_id": self.id, "output_index": self.index, "content_index": 0 });
        for (name, value) in others {
            fields[name] = value;
        }
        fields
    }
}

impl Writer for ResponseWriter {
    fn begin(&mut self) -> String {
        let response = self.head.json(&[], None);
        [
            self.event("response.created", json!({ "response": response })),
            self.event("response.in_progress", json!({ "response": response })),
        ]
        .concat()
    }

    fn pieces(&mut self, pieces: &[Piece]) -> Result<String, ApiError> {
        let write = |piece: &Piece| match piece {
            Piece::Text(text) => self.text(text),
            Piece::Complete(phase) => self.close("completed", Some(phase.as_str())),
            Piece::BrokenOff => self.close("incomplete", None),
        };
        Ok(pieces.iter().map(write).collect())
    }

    fn end(&mut self, pieces: &[Piece], parts: &[Part], ending: &Ending) -> Result<String, ApiError> {
        let written = self.pieces(pieces)?;
        let kind = match ending.response_status() {
            "completed" => "response.completed",
            "failed" => "response.failed",
            // The protocol has no event for a cancel.
            _ => "response.incomplete",
        };
        let response = self.head.json(parts, Some(ending));
        Ok(written + &self.event(kind, json!({ "response": response })))
    }

    fn fail(&mut self, error: &ApiError) -> String {
        let fields = json!({ "code": error.code, "message": error.message, "param": error.param });
        self.event("error", fields)
    }
}
