//! Decodes the events of a stream into model events and the final message.

use std::{collections::VecDeque, mem};

use archon_types::{Json, ModelEvent, ProviderError, StopReason};
use eventsource_stream::Event as SseEvent;

use super::wire::{Block, Delta, Event, Kind, Message, StopDetails, is_known};
use crate::{
    answer::{Answer, BodyEnd},
    classify,
    http::{
        events::{Decoder, Progress},
        sse::Sse,
    },
    signature::Signature,
};

/// Decodes one answer.
pub(super) struct MessagesDecoder {
    answer: Answer,
    /// The blocks that have begun and not ended, each with the index that the service gave it.
    open: Vec<(u32, Open)>,
    stop: Option<Stop>,
}

/// A block while it is received.
enum Open {
    Text,
    /// Thinking with its signature, which comes last.
    Thinking(String),
    Redacted,
    /// A tool call: its index in the answer, and the arguments in the first event of the block. These arguments are
    /// used only if no argument deltas follow.
    Call(usize, Option<String>),
    /// The tool call that carries the structured output, with the arguments in the first event of the block. These
    /// arguments are used only if no argument deltas follow.
    Format(Option<String>),
    /// A block that is ignored: a block of an unknown type, or structured output after the first one.
    Other,
}

/// The reason why the model stopped.
struct Stop {
    reason: String,
    details: Option<Box<StopDetails>>,
}

impl MessagesDecoder {
    pub(super) fn new(mut answer: Answer, format_tool: Option<String>) -> Self {
        answer.set_format_tool(format_tool);
        Self { answer, open: Vec::new(), stop: None }
    }

    fn decode(
        &mut self,
        event: Event<'_>,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, ProviderError> {
        if let Some(usage) = event.usage.as_ref().filter(|_| is_known(&event.kind)) {
            usage.update(self.answer.usage());
        }
        match &*event.kind {
            "message_start" => {
                if let Some(message) = event.message {
                    self.message(*message, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(event.index, *block, out);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.delta(event.index, delta, out);
                }
            }
            "content_block_stop" => self.close(event.index, out),
            "message_delta" => {
                if let Some(delta) = event.delta
                    && let Some(reason) = delta.stop_reason
                {
                    self.stops(reason.into_owned(), delta.stop_details, delta.stop_sequence);
                }
            }
            "message_stop" => return Ok(Progress::Last),
            "error" => {
                let error = event.error.map(|error| *error).unwrap_or_default();
                return Err(classify::stream_error(&serde_json::json!({ "error": error })));
            }
            // Pings, and event kinds that are added to the protocol.
            _ => {}
        }
        Ok(Progress::More)
    }

    /// Handles the beginning of a message, or a whole message.
    fn message(&mut self, message: Message, out: &mut VecDeque<ModelEvent>) {
        self.answer.set_model(&message.model);
        if let Some(usage) = &message.usage {
            usage.update(self.answer.usage());
        }
        for (index, block) in (0..).zip(message.content) {
            self.begin(index, block, out);
            self.close(index, out);
        }
        if let Some(reason) = message.stop_reason {
            self.stops(reason, message.stop_details, message.stop_sequence);
        }
    }

    fn stops(&mut self, reason: String, details: Option<Box<StopDetails>>, sequence: Option<String>) {
        self.stop = Some(Stop { reason, details });
        self.answer.set_stop_sequence(sequence);
        self.answer.ends();
    }

    fn begin(&mut self, index: u32, block: Block, out: &mut VecDeque<ModelEvent>) {
        let open = match block.kind.as_str() {
            "text" => {
                self.answer.text(block.text, out);
                Open::Text
            }
            "thinking" => {
                self.answer.thinking(block.thinking, out);
                Open::Thinking(block.signature)
            }
            "redacted_thinking" => {
                self.answer.sign_apart(Signature::Redacted(&block.data).to_string());
                Open::Redacted
            }
            "tool_use" => {
                let begun = match &block.input {
                    Json::Null => None,
                    Json::Object(input) if input.is_empty() => None,
                    input => Some(input.to_string()),
                };
                if !self.answer.is_format_tool(&block.name) {
                    Open::Call(self.answer.begin_call(&block.id, &block.name, out), begun)
                } else if self.answer.begin_structured_output() {
                    // Empty arguments become `{}`, as for any call.
                    Open::Format(begun.or_else(|| Some("{}".to_owned())))
                } else {
                    Open::Other
                }
            }
            _ => Open::Other,
        };
        self.open.retain(|(at, _)| *at != index);
        self.open.push((index, open));
    }

    fn delta(&mut self, index: u32, delta: Delta<'_>, out: &mut VecDeque<ModelEvent>) {
        let Some((_, open)) = self.open.iter_mut().find(|(at, _)| *at == index) else { return };
        match open {
            Open::Text => self.answer.text(delta.text.unwrap_or_default(), out),
            Open::Thinking(signature) => {
                if let Some(text) = delta.thinking {
                    self.answer.thinking(text, out);
                }
                if let Some(text) = delta.signature {
                    *signature = text.into();
                }
            }
            Open::Call(call, begun) => {
                if let Some(json) = delta.partial_json.filter(|json| !json.is_empty()) {
                    *begun = None;
                    let call = *call;
                    self.answer.arguments(call, json, out);
                }
            }
            Open::Format(begun) => {
                if let Some(json) = delta.partial_json.filter(|json| !json.is_empty()) {
                    *begun = None;
                    self.answer.push_structured_output(json, out);
                }
            }
            Open::Redacted | Open::Other => {}
        }
    }

    fn close(&mut self, index: u32, out: &mut VecDeque<ModelEvent>) {
        let Some(place) = self.open.iter().position(|(at, _)| *at == index) else { return };
        match self.open.remove(place).1 {
            Open::Thinking(signature) if !signature.is_empty() => self.answer.sign(signature),
            Open::Call(call, begun) => {
                self.answer.arguments(call, begun.unwrap_or_default(), out);
                self.answer.end_call(call, out);
            }
            Open::Format(begun) => self.answer.push_structured_output(begun.unwrap_or_default(), out),
            _ => {}
        }
    }

    /// Maps the service's stop reason:
    /// <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.
    fn reason(&self, stop: &Stop) -> Result<(StopReason, Option<String>), ProviderError> {
        Ok(match stop.reason.as_str() {
            "max_tokens" => (StopReason::Length, None),
            "refusal" => (StopReason::Refusal, Some(refusal(stop.details.as_deref()))),
            "model_context_window_exceeded" => {
                return Err(ProviderError::ContextOverflow(stop.reason.clone().into()));
            }
            // Calls decide, not the reason: a call for structured output also has the reason `tool_use`.
            _ if self.answer.has_calls() => (StopReason::ToolUse, None),
            "pause_turn" => (StopReason::Pause, None),
            "stop_sequence" => (StopReason::StopSequence, None),
            _ => (StopReason::Stop, None),
        })
    }
}

fn refusal(details: Option<&StopDetails>) -> String {
    let mut text = "the service refused to answer".to_owned();
    if let Some(category) = details.and_then(|d| d.category.as_deref()) {
        text += &format!(" ({category})");
    }
    if let Some(explanation) = details.and_then(|d| d.explanation.as_deref()) {
        text += &format!(": {explanation}");
    }
    text
}

impl Decoder for MessagesDecoder {
    type Frames = Sse;

    fn event(&mut self, event: SseEvent, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        let data = self.answer.data_of(&event)?;
        if data.is_empty() || event.event == "ping" {
            return Ok(Progress::More);
        }
        if event.event == "error" {
            return Err(classify::error_in(data));
        }
        match serde_json::from_str::<Event<'_>>(data) {
            Ok(event) if event.kind == "message" => {
                // Without streaming, the event is the whole message.
                if let Ok(message) = serde_json::from_str(data) {
                    self.message(message, out);
                }
                Ok(Progress::Last)
            }
            Ok(event) => self.decode(event, out),
            // An unknown kind of event may have any content.
            Err(_) if Kind::of(data).is_some_and(|kind| !kind.is_known()) => Ok(Progress::More),
            Err(_) if !event.event.is_empty() && !is_known(&event.event) => Ok(Progress::More),
            Err(e) => {
                self.answer.note_cut(&e, data, "an event cannot be decoded", None)?;
                Ok(Progress::More)
            }
        }
    }

    fn end(&mut self, body: BodyEnd, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let Some(stop) = mem::take(&mut self.stop).filter(|_| self.answer.is_whole(body)) else {
            return Err(self.answer.broke_off());
        };
        for index in self.open.iter().map(|(at, _)| *at).collect::<Vec<_>>() {
            self.close(index, out);
        }
        let (reason, because) = self.reason(&stop)?;
        self.answer.finish(reason, because, out);
        Ok(())
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }
}
