//! Decodes the chunks of a stream into model events and the final message.

use std::{collections::VecDeque, mem};

use archon_types::{ApiErrorKind, Json, ModelEvent, ProviderError, StopReason};
use eventsource_stream::Event;

use super::wire::{Candidate, Chunk, FunctionCall, Part};
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
pub(crate) struct ChunkDecoder {
    answer: Answer,
    /// The prefix of generated ids, for instance `google-fc`.
    id_prefix: &'static str,
    /// The service's id of the answer, which makes the generated ids of different answers different.
    response_id: String,
    finish: Option<Finish>,
}

/// The reason why the model stopped.
struct Finish {
    reason: String,
    message: Option<String>,
}

impl ChunkDecoder {
    pub(super) fn new(mut answer: Answer, id_prefix: &'static str, format_tool: Option<String>) -> Self {
        answer.set_format_tool(format_tool);
        Self { answer, id_prefix, response_id: String::new(), finish: None }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        if let Some(error) = chunk.error {
            return Err(classify::stream_error(&serde_json::json!({ "error": *error })));
        }
        if let Some(usage) = &chunk.usage_metadata {
            *self.answer.usage() = usage.as_ref().into();
        }
        if let Some(model) = &chunk.model_version {
            self.answer.set_model(model);
        }
        if let Some(id) = chunk.response_id.filter(|_| self.response_id.is_empty()) {
            self.response_id = id.into_owned();
        }
        if let Some(feedback) = chunk.prompt_feedback
            && let Some(reason) = feedback.block_reason
        {
            let more = feedback.block_reason_message.map(|text| format!(": {text}")).unwrap_or_default();
            return Err(ProviderError::Api {
                status: 200,
                kind: ApiErrorKind::ContentFiltered,
                message: format!("the prompt was blocked ({reason}){more}"),
            });
        }
        for candidate in chunk.candidates {
            if candidate.index == 0 {
                self.candidate(candidate, out);
            }
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: Candidate, out: &mut VecDeque<ModelEvent>) {
        for part in candidate.content.into_iter().flat_map(|content| content.parts) {
            self.part(part, out);
        }
        if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(Finish { reason, message: candidate.finish_message });
            self.answer.ends();
        }
    }

    fn part(&mut self, part: Part, out: &mut VecDeque<ModelEvent>) {
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            if self.answer.is_format_tool(&call.name) {
                if self.answer.begin_structured_output() {
                    let arguments = call.args.unwrap_or_else(|| Json::Object(serde_json::Map::new()));
                    self.answer.push_structured_output(arguments.to_string(), out);
                }
                return;
            }
            if let Some(signature) = signature {
                self.answer.sign(Signature::Gemini(&signature).to_string());
            }
            self.call(*call, out);
            return;
        }
        if let Some(text) = part.text {
            if part.thought {
                self.answer.thinking(text, out);
            } else {
                self.answer.text(text, out);
            }
        }
        if let Some(blob) = part.inline_data
            && blob.mime_type.starts_with("image/")
        {
            self.answer.image(&blob.data, &blob.mime_type, out);
        }
        if let Some(signature) = signature {
            self.answer.sign_apart(Signature::GeminiText(&signature).to_string());
        }
    }

    /// Handles a tool call, which always comes complete.
    fn call(&mut self, call: FunctionCall, out: &mut VecDeque<ModelEvent>) {
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| self.made_up_id());
        let place = self.answer.begin_call(&id, &call.name, out);
        if let Some(arguments) = call.args.filter(|args| !args.is_null()) {
            self.answer.arguments(place, arguments.to_string(), out);
        }
        self.answer.end_call(place, out);
    }

    /// Generates an id that is unique in the conversation. With a response id, decoding the answer again
    /// generates the same id.
    fn made_up_id(&self) -> String {
        let unique = match self.response_id.as_str() {
            "" => self.answer.now().as_millis().to_string(),
            id => id.to_owned(),
        };
        format!("{}-{unique}-{}", self.id_prefix, self.answer.call_count())
    }

    /// Maps the service's finish reason: <https://ai.google.dev/api/generate-content#FinishReason>.
    fn reason(&self, finish: Finish) -> Result<(StopReason, Option<String>), ProviderError> {
        let Finish { reason, message } = finish;
        let said = match message {
            Some(message) => format!("the service stopped the answer ({reason}): {message}"),
            None => format!("the service stopped the answer ({reason})"),
        };
        Ok(match reason.as_str() {
            "MAX_TOKENS" | "CONTINUATION" => (StopReason::Length, None),
            // The model's output was malformed; a retry may succeed.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                return Err(ProviderError::Overloaded { status: 200, retry_after: None, message: said });
            }
            "MISSING_THOUGHT_SIGNATURE" => {
                let kind = ApiErrorKind::InvalidRequest;
                return Err(ProviderError::Api { status: 200, kind, message: said });
            }
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "MODEL_ARMOR" => (StopReason::Refusal, Some(said)),
            "LANGUAGE"
            | "IMAGE_OTHER"
            | "NO_IMAGE"
            | "OTHER"
            | "TOO_MANY_TOOL_CALLS"
            | "ESCALATION"
            | "PUP_LIMITED_DISABLED" => (StopReason::Error, Some(said)),
            _ if self.answer.has_calls() => (StopReason::ToolUse, None),
            _ => (StopReason::Stop, None),
        })
    }
}

impl Decoder for ChunkDecoder {
    type Frames = Sse;

    fn event(&mut self, event: Event, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        let data = self.answer.data_of(&event)?;
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if event.event == "error" {
            return Err(classify::error_in(data));
        }
        if let Some(chunk) = self.answer.read(data, "an event is not a chunk")? {
            self.chunk(chunk, out)?;
        }
        Ok(Progress::More)
    }

    fn end(&mut self, body: BodyEnd, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let Some(finish) = mem::take(&mut self.finish).filter(|_| self.answer.is_whole(body)) else {
            return Err(self.answer.broke_off());
        };
        let (reason, because) = self.reason(finish)?;
        self.answer.finish(reason, because, out);
        Ok(())
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }
}
