//! Decodes the events of a Responses stream into model events and the final message.

use std::collections::VecDeque;

use archon_types::{ApiErrorKind, Json, ModelEvent, ProviderError};
use eventsource_stream::Event;
use serde::Deserialize;

use super::wire::{
    ArgumentsDone, CallStart, Delta, ItemEvent, Kind, Output, PartAdded, Response, ResponseEvent,
};
use crate::{
    answer::{Answer, BodyEnd, Stop},
    blocks::{Blocks, Part},
    classify, content_filter,
    http::{
        events::{Decoder, Progress},
        sse::Sse,
    },
    signature::Signature,
};

/// Decodes one answer.
pub(crate) struct ResponsesDecoder {
    blocks: Blocks,
    stop: Option<Stop>,
}

impl ResponsesDecoder {
    pub(crate) fn new(blocks: Blocks) -> Self {
        Self { blocks, stop: None }
    }

    /// Handles an event of this type; events of other types are ignored.
    fn typed(
        &mut self,
        kind: &str,
        data: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, ProviderError> {
        match kind {
            "response.output_text.delta" => {
                if let Some(Delta { output_index, delta }) = self.read(data)? {
                    self.blocks.begin_part(output_index, Part::Text).text(delta, out);
                }
            }
            "response.refusal.delta" => {
                if let Some(Delta { output_index, delta }) = self.read(data)? {
                    self.blocks.begin_part(output_index, Part::Text).refusal(delta, out);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if let Some(Delta { output_index, delta }) = self.read(data)? {
                    self.blocks.begin_part(output_index, Part::Thinking).thinking(delta, out);
                }
            }
            "response.reasoning_summary_part.added" => {
                if let Some(PartAdded { output_index }) = self.read(data)?
                    && self.blocks.has(output_index, Part::Thinking)
                {
                    self.blocks.begin_part(output_index, Part::Thinking).thinking("\n\n".to_owned(), out);
                }
            }
            "response.output_item.added" => {
                if let Some(ItemEvent { output_index, item }) = self.read(data)?
                    && word(&item, "type") == "function_call"
                {
                    self.begin_call(output_index, &item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(ItemEvent { output_index, item }) = self.read(data)? {
                    self.item(output_index, &item, out);
                }
            }
            _ if kind.starts_with("response.function_call_arguments.") => self.call_event(kind, data, out)?,
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(ResponseEvent::<Response> { response }) = self.read(data)? {
                    self.blocks.answer.set_model(response.model.as_deref().unwrap_or_default());
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                return self.ended(data, out);
            }
            "error" => return Err(error_in(data)),
            _ => {}
        }
        Ok(Progress::More)
    }

    /// Handles an event about the arguments of a tool call.
    fn call_event(
        &mut self,
        kind: &str,
        data: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ProviderError> {
        match kind {
            "response.function_call_arguments.start" => {
                if let Some(CallStart { output_index, call_id, name }) = self.read(data)? {
                    let (id, name) = (call_id.unwrap_or_default(), name.unwrap_or_default());
                    self.blocks.begin_call(output_index, &id, &name, out);
                }
            }
            "response.function_call_arguments.delta" => {
                if let Some(Delta { output_index, delta }) = self.read(data)? {
                    self.blocks.arguments(output_index, delta, out);
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(ArgumentsDone { output_index, arguments }) = self.read(data)? {
                    self.blocks.all_arguments(output_index, &arguments.unwrap_or_default(), out);
                    self.blocks.end(output_index, out);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles an event without a name: its type is in the data, or the data are a whole answer or an error.
    fn untyped(&mut self, data: &str, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        let Some(Kind { kind, object }) = self.read(data)? else { return Ok(Progress::More) };
        if let Some(kind) = kind.filter(|kind| !kind.is_empty()) {
            return self.typed(&kind, data, out);
        }
        if object.as_deref() == Some("response") {
            return match self.read::<Response>(data)? {
                Some(response) => self.response(response, data, out),
                None => Ok(Progress::More),
            };
        }
        if classify::is_error(data) { Err(error_in(data)) } else { Ok(Progress::More) }
    }

    fn ended(&mut self, data: &str, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        match self.read::<ResponseEvent<Response>>(data)? {
            Some(ResponseEvent { response }) => self.response(response, data, out),
            None => Ok(Progress::More),
        }
    }

    /// Handles a complete response; `data` is its event, or the response itself.
    fn response(
        &mut self,
        response: Response,
        data: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, ProviderError> {
        self.blocks.answer.set_model(response.model.as_deref().unwrap_or_default());
        if let Some(usage) = &response.usage {
            *self.blocks.answer.usage() = usage.into();
        }
        if let Some(error) = response.error.filter(|error| !error.is_null()) {
            return Err(failure(&error));
        }
        // The response repeats everything; it is read only if nothing came before.
        if self.blocks.answer.is_empty() {
            for (number, item) in (0..).zip(output(data)) {
                self.item(number, &item, out);
            }
        }
        let reason = response.incomplete_details.and_then(|details| details.reason).unwrap_or_default();
        self.stop = Some(match (response.status.as_deref().unwrap_or_default(), reason.as_str()) {
            (_, "max_output_tokens") => Stop::Length,
            (_, "content_filter") => Stop::Refused(filtered(data)),
            ("incomplete", "") => Stop::Broken("the service stopped the answer without a reason".to_owned()),
            ("incomplete", reason) => Stop::Broken(format!("the service stopped the answer: {reason}")),
            (status @ ("failed" | "cancelled"), _) => {
                let message = format!("the answer has the status {status}, without a reason");
                return Err(ProviderError::Overloaded { status: 200, retry_after: None, message });
            }
            _ => Stop::Done,
        });
        self.blocks.answer.ends();
        Ok(Progress::Last)
    }

    fn begin_call(&mut self, number: u64, item: &Json, out: &mut VecDeque<ModelEvent>) {
        let id = match word(item, "call_id") {
            "" => word(item, "id"),
            id => id,
        };
        self.blocks.begin_call(number, id, word(item, "name"), out);
    }

    /// Handles a complete item: the content that did not come in deltas, and the data that the service
    /// requires in later requests.
    fn item(&mut self, number: u64, item: &Json, out: &mut VecDeque<ModelEvent>) {
        match word(item, "type") {
            "message" => {
                if !self.blocks.has(number, Part::Text) {
                    for part in list(item, "content") {
                        let answer = self.blocks.begin_part(number, Part::Text);
                        match word(part, "type") {
                            "refusal" => answer.refusal(word(part, "refusal").to_owned(), out),
                            _ => answer.text(word(part, "text").to_owned(), out),
                        }
                    }
                }
                let phase = word(item, "phase");
                if !phase.is_empty() && self.blocks.has(number, Part::Text) {
                    self.blocks.sign_apart(Signature::Phase(phase).to_string());
                }
            }
            "function_call" => {
                self.begin_call(number, item, out);
                self.blocks.all_arguments(number, word(item, "arguments"), out);
                self.blocks.end(number, out);
            }
            "reasoning" => {
                if !self.blocks.has(number, Part::Thinking) {
                    let parts: Vec<&str> = list(item, "summary").map(|part| word(part, "text")).collect();
                    self.blocks.begin_part(number, Part::Thinking).thinking(parts.join("\n\n"), out);
                }
                if !word(item, "encrypted_content").is_empty() {
                    self.blocks.begin_part(number, Part::Thinking).sign(replayed(item));
                }
            }
            _ => {}
        }
    }

    /// Parses an event; `None` if the event was cut off, which can only happen at the end of the stream.
    fn read<'a, T: Deserialize<'a>>(&mut self, data: &'a str) -> Result<Option<T>, ProviderError> {
        self.blocks.answer.read(data, "an event cannot be decoded")
    }
}

impl Decoder for ResponsesDecoder {
    type Frames = Sse;

    fn event(&mut self, event: Event, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        let data = self.blocks.answer.data_of(&event)?;
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if data == "[DONE]" {
            return Ok(Progress::Last);
        }
        match &*event.event {
            // The parser's name for an event without a name.
            "" | "message" => self.untyped(data, out),
            kind => self.typed(kind, data, out),
        }
    }

    fn end(&mut self, body: BodyEnd, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let Some(stop) = self.stop.take().filter(|_| self.blocks.answer.is_whole(body)) else {
            return Err(self.blocks.answer.broke_off());
        };
        self.blocks.answer.stop(stop, out);
        Ok(())
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.blocks.answer
    }
}

/// Returns the items of a response. `data` is the response, or an event that contains it.
fn output(data: &str) -> Vec<Json> {
    let whole = serde_json::from_str::<ResponseEvent<Output>>(data).map(|event| event.response);
    whole.or_else(|_| serde_json::from_str(data)).map_or_else(|_| Vec::new(), |whole| whole.output)
}

/// Returns the reasoning item as a later request contains it: some fields are left out, none is changed.
fn replayed(item: &Json) -> String {
    let mut item = item.clone();
    if let Some(item) = item.as_object_mut() {
        item.retain(|key, _| matches!(key.as_str(), "type" | "id" | "summary" | "encrypted_content"));
    }
    item.to_string()
}

/// Returns the error for a failed response, from its error object. An error of no other class, for instance
/// `invalid_prompt` or `image_too_large`, counts as an invalid request.
fn failure(error: &Json) -> ProviderError {
    match classify::stream_error(&serde_json::json!({ "error": error })) {
        ProviderError::Api { status: 0, kind: ApiErrorKind::Other, message } => {
            ProviderError::Api { status: 0, kind: ApiErrorKind::InvalidRequest, message }
        }
        other => other,
    }
}

/// Returns the error text for an answer that a filter stopped; Azure names the categories in the response.
fn filtered(data: &str) -> String {
    let event: Json = serde_json::from_str(data).unwrap_or_default();
    let response = event.get("response").unwrap_or(&event);
    let blocked = list(response, "content_filters").find(|found| found["blocked"] == true);
    content_filter::stopped(blocked.and_then(|found| found.get("content_filter_results")))
}

fn error_in(data: &str) -> ProviderError {
    let event: Json = serde_json::from_str(data).unwrap_or_else(|_| Json::String(data.to_owned()));
    match event.get("error").filter(|error| error.is_object()) {
        Some(error) => failure(error),
        None => failure(&event),
    }
}

fn word<'a>(item: &'a Json, key: &str) -> &'a str {
    item.get(key).and_then(Json::as_str).unwrap_or_default()
}

fn list<'a>(item: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    item.get(key).and_then(Json::as_array).into_iter().flatten()
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
