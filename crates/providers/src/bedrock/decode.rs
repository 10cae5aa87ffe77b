//! Decodes the messages of a ConverseStream into model events and the final message.

use std::collections::VecDeque;

use archon_types::{Json, ModelEvent, ProviderError};
use serde::de::DeserializeOwned;

use super::{
    frames::{Frame, FrameKind, Frames},
    wire::{BlockDelta, BlockStart, BlockStop, Delta, Exception, MessageStop, Metadata},
};
use crate::{
    answer::{Answer, BodyEnd, Stop},
    blocks::{Blocks, Part},
    classify,
    http::events::{Decoder, Progress},
    signature::Signature,
};

/// Decodes one answer.
pub(super) struct ConverseDecoder {
    blocks: Blocks,
    /// The structured output, if it has begun as a tool call: the number of its block, and true if its arguments
    /// have begun. Later calls of the same tool are ignored.
    form: Option<(u64, bool)>,
    /// The signature of the open block, which may come in pieces.
    signature: String,
    stop: Option<Stop>,
}

impl ConverseDecoder {
    pub(super) fn new(mut blocks: Blocks, answer_tool: Option<String>) -> Self {
        blocks.answer.set_format_tool(answer_tool);
        Self { blocks, form: None, signature: String::new(), stop: None }
    }

    /// Handles an event of this type; events of other types are ignored.
    fn typed(
        &mut self,
        kind: &str,
        payload: &[u8],
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, ProviderError> {
        match kind {
            "contentBlockStart" => self.start(read(payload)?, out),
            "contentBlockDelta" => {
                let BlockDelta { content_block_index, delta } = read(payload)?;
                self.delta(content_block_index, delta, out);
            }
            "contentBlockStop" => {
                let BlockStop { content_block_index } = read(payload)?;
                if !self.signature.is_empty() {
                    self.blocks
                        .begin_part(content_block_index, Part::Thinking)
                        .sign(std::mem::take(&mut self.signature));
                }
                self.end_structured_output(content_block_index, out);
                self.blocks.end(content_block_index, out);
            }
            "messageStop" => {
                let MessageStop { stop_reason, additional_model_response_fields: more } = read(payload)?;
                let sequence = more.and_then(|more| Some(more.get("stop_sequence")?.as_str()?.to_owned()));
                self.stop = Some(stop(&stop_reason, sequence)?);
                self.blocks.answer.ends();
            }
            "metadata" => {
                let Metadata { usage } = read(payload)?;
                if let Some(usage) = usage {
                    *self.blocks.answer.usage() = usage.into();
                }
                if self.stop.is_some() {
                    return Ok(Progress::Last);
                }
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn start(&mut self, block: BlockStart, out: &mut VecDeque<ModelEvent>) {
        let Some(call) = block.start.tool_use else { return };
        if call.kind.is_some_and(|kind| kind == "server_tool_use") {
            // The service runs this tool itself and continues the answer.
        } else if self.blocks.answer.is_format_tool(&call.name) {
            if self.blocks.answer.begin_structured_output() {
                self.form = Some((block.content_block_index, false));
            }
        } else {
            self.blocks.begin_call(block.content_block_index, &call.tool_use_id, &call.name, out);
        }
    }

    /// Ends the structured output. Without arguments the output is `{}`, as for any call.
    fn end_structured_output(&mut self, number: u64, out: &mut VecDeque<ModelEvent>) {
        if let Some((form, begun @ false)) = &mut self.form
            && *form == number
        {
            *begun = true;
            self.blocks.begin_part(number, Part::Text).push_structured_output("{}".to_owned(), out);
        }
    }

    fn delta(&mut self, number: u64, delta: Delta, out: &mut VecDeque<ModelEvent>) {
        if let Some(text) = delta.text {
            self.blocks.begin_part(number, Part::Text).text(text, out);
        }
        if let Some(call) = delta.tool_use {
            match &mut self.form {
                Some((form, begun)) if *form == number => {
                    *begun |= !call.input.is_empty();
                    self.blocks.begin_part(number, Part::Text).push_structured_output(call.input, out);
                }
                _ => self.blocks.arguments(number, call.input, out),
            }
        }
        if let Some(reasoning) = delta.reasoning_content {
            if let Some(text) = reasoning.text {
                self.blocks.begin_part(number, Part::Thinking).thinking(text, out);
            }
            if let Some(signature) = reasoning.signature {
                self.signature.push_str(&signature);
            }
            if let Some(data) = reasoning.redacted_content.filter(|data| !data.is_empty()) {
                self.blocks.sign_apart(Signature::Redacted(&data).to_string());
            }
        }
    }
}

impl Decoder for ConverseDecoder {
    type Frames = Frames;

    fn event(&mut self, frame: Frame, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        match frame.kind {
            FrameKind::Event(kind) => self.typed(&kind, &frame.payload, out),
            FrameKind::Exception(kind) => Err(exception(&kind, &frame.payload)),
            FrameKind::Error { code, message } => Err(failure(&code, &message)),
            FrameKind::Whole => {
                Err(ProviderError::Protocol("the service sent JSON instead of an event stream".into()))
            }
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

/// Maps the service's stop reason. An unknown reason counts as a normal end of the answer.
fn stop(reason: &str, sequence: Option<String>) -> Result<Stop, ProviderError> {
    Ok(match reason {
        "max_tokens" => Stop::Length,
        "stop_sequence" => Stop::Sequence(sequence),
        "guardrail_intervened" => Stop::Refused("a guardrail of the service stopped the answer".to_owned()),
        "content_filtered" => Stop::Refused("the service's content filter stopped the answer".to_owned()),
        "refusal" => Stop::Refused("the service refused to answer".to_owned()),
        "model_context_window_exceeded" => {
            return Err(ProviderError::ContextOverflow(reason.to_owned().into()));
        }
        "malformed_model_output" | "malformed_tool_use" => {
            let message = format!("the service could not parse the model's output: {reason}");
            return Err(ProviderError::Overloaded { status: 200, retry_after: None, message });
        }
        _ => Stop::Done,
    })
}

fn exception(kind: &str, payload: &[u8]) -> ProviderError {
    let said: Exception = serde_json::from_slice(payload).unwrap_or_default();
    let message = match (said.message, said.original_message) {
        (Some(message), Some(original)) if original != message => format!("{message}: {original}"),
        (Some(message), _) | (None, Some(message)) => message,
        (None, None) => classify::first_words(&String::from_utf8_lossy(payload)),
    };
    failure(kind, &message)
}

/// Parts of exception names, in lower case, each with the HTTP status with which such an exception is classified.
const STATUSES: &[(&str, u16)] = &[
    ("throttling", 429),
    ("toomanyrequests", 429),
    ("modelnotready", 503),
    ("validation", 400),
    ("accessdenied", 403),
    ("expiredtoken", 403),
    ("resourcenotfound", 404),
    ("modeltimeout", 408),
    // Its own status is 424, but the service says that a retry may help.
    ("modelstreamerror", 503),
    ("serviceunavailable", 503),
    ("internalserver", 500),
    ("internalfailure", 500),
];

fn failure(kind: &str, message: &str) -> ProviderError {
    let plain = kind.to_lowercase();
    let status = STATUSES.iter().find(|(word, _)| plain.contains(word)).map(|(_, status)| *status);
    let message = format!("{kind}: {message}");
    let error = serde_json::json!({ "message": message, "code": status });
    classify::stream_error(&Json::Object([("error".to_owned(), error)].into_iter().collect()))
}

fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(payload).map_err(|e| {
        let text = String::from_utf8_lossy(payload);
        ProviderError::Protocol(
            format!("an event cannot be decoded ({e}): {}", classify::first_words(&text)).into(),
        )
    })
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
