//! Decodes the chunks of a stream into model events and the final message, which grows in place.

use std::{collections::VecDeque, mem};

use archon_types::{AssistantMessage, Json, ModelEvent, ProviderError};
use eventsource_stream::Event;

use super::{
    details::ReasoningDetails,
    wire::{Call, Chunk, Delta, Function, Word},
};
use crate::{
    answer::{Answer, BodyEnd, Stop},
    classify, content_filter,
    http::{
        events::{Decoder, Progress},
        sse::Sse,
    },
    think_tags::{Piece, ThinkSplitter},
};

/// The data of the last event of a stream.
const END_MARK: &str = "[DONE]";

/// Decodes one answer.
pub(crate) struct ChatDecoder {
    answer: Answer,
    /// The index and the id that the service gave to each call of the answer.
    calls: Vec<WireCall>,
    stop: Option<Stop>,
    /// True if `[DONE]` came.
    closed: bool,
    splitter: Option<ThinkSplitter>,
    thinking: ThinkingSource,
    details: ReasoningDetails,
    named_model: bool,
    /// True if the latest choice had an empty finish reason.
    unsaid: bool,
    /// True if the latest choice contained the whole text so far.
    whole: bool,
    /// The number of bytes of `content` text received so far, including thinking between tags.
    content_bytes: usize,
}

/// The source of the thinking. If the service sends it in a field of its own (`native`), thinking between
/// tags is left out.
#[derive(Default)]
struct ThinkingSource {
    native: bool,
    /// Thinking between tags that was left out; it becomes text if the closing tag never comes.
    left_out: String,
}

/// The index and the id that the service gave to a call.
struct WireCall {
    /// The index as the service sent it; `None` for a call in the legacy field `function_call`.
    index: Option<u32>,
    /// The id as the service sent it; empty if it sent none.
    id: String,
}

impl ChatDecoder {
    pub(super) fn new(answer: Answer, think_tags: bool) -> Self {
        Self {
            answer,
            calls: Vec::new(),
            stop: None,
            closed: false,
            splitter: think_tags.then(ThinkSplitter::default),
            thinking: ThinkingSource::default(),
            details: ReasoningDetails::default(),
            named_model: false,
            unsaid: false,
            whole: false,
            content_bytes: 0,
        }
    }

    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        data: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if let Some(error) = chunk.error.as_ref().filter(|e| !e.is_null()) {
            return Err(classify::stream_error(&serde_json::json!({ "error": error })));
        }
        if let Some(usage) = chunk.usage() {
            *self.answer.usage() = usage;
        }
        if !self.named_model
            && let Some(model) = Word::non_empty(&chunk.model)
        {
            self.answer.set_model(model);
            self.named_model = true;
        }
        let Some(choices) = chunk.choices else {
            // Neither a chunk of an answer nor an error in the usual form.
            return if classify::is_error(data) { Err(classify::error_in(data)) } else { Ok(()) };
        };
        for choice in choices {
            if choice.index > 0 {
                continue;
            }
            let reason = Word::non_empty(&choice.finish_reason);
            let stop = reason.map(|reason| stop(reason, choice.stop_text(), data)).transpose()?;
            self.unsaid = choice.finish_reason.is_some() && stop.is_none();
            if let Some(delta) = self.news(choice.delta, choice.message) {
                self.delta(delta, out);
            }
            if stop.is_some() {
                self.stop = stop;
                self.answer.ends();
            }
        }
        Ok(())
    }

    /// Returns the new part of a choice. Some services (Perplexity) send, next to each delta, a message with the
    /// whole text so far. If the delta is empty, the message may contain more than the deltas did.
    fn news<'a>(&mut self, delta: Option<Delta<'a>>, message: Option<Box<Delta<'a>>>) -> Option<Delta<'a>> {
        let Some(mut message) = message.map(|message| *message) else { return delta };
        self.whole = delta.as_ref().is_none_or(Delta::is_empty);
        match delta {
            None => Some(message),
            Some(delta) if !delta.is_empty() => Some(delta),
            Some(_) => {
                message.leave_out(self.content_bytes, self.answer.size());
                Some(message)
            }
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut VecDeque<ModelEvent>) {
        self.content_bytes += delta.content.text.len();
        // Some services send the same reasoning under both names.
        let mut reasoning = delta.reasoning_content.text;
        if reasoning.is_empty() {
            reasoning = delta.reasoning.text;
        }
        if let Some(thinking) = delta.content.thinking {
            reasoning.push_str(&thinking);
        }
        if !reasoning.is_empty() {
            self.thinking.native = true;
            self.answer.thinking(reasoning, out);
        }
        if !delta.content.text.is_empty() {
            self.text(delta.content.text, out);
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.text.is_empty()) {
            self.answer.refuses();
            self.text(refusal.text, out);
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.answer.count_thinking(detail.to_string().len());
            self.details.add(detail);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out);
        }
        if let Some(function) = delta.function_call {
            self.legacy_call(*function, out);
        }
    }

    /// Handles text, which may contain thinking between tags.
    fn text(&mut self, text: String, out: &mut VecDeque<ModelEvent>) {
        match self.splitter.take() {
            None => self.answer.text(text, out),
            Some(mut splitter) => {
                splitter.push(text, |piece| self.piece(piece, out));
                self.splitter = Some(splitter);
            }
        }
    }

    fn piece(&mut self, piece: Piece, out: &mut VecDeque<ModelEvent>) {
        match piece {
            Piece::Text(text) => self.answer.text(text, out),
            Piece::Thinking(text) if self.thinking.native => {
                self.answer.count_thinking(text.len());
                self.thinking.left_out.push_str(&text);
            }
            Piece::Thinking(text) => self.answer.thinking(text, out),
            Piece::ThinkingEnd => self.thinking.left_out.clear(),
        }
    }

    fn call(&mut self, call: Call<'_>, out: &mut VecDeque<ModelEvent>) {
        let id = Word::non_empty(&call.id).unwrap_or_default();
        let name = call.function.as_ref().and_then(|f| Word::non_empty(&f.name)).unwrap_or_default();
        let place = match call.index {
            Some(index) => self.calls.iter().rposition(|open| open.index == Some(index)),
            // Without a number, a piece with a name begins a call, and one without continues the last call.
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        // Some services give every call the same number; the ids tell them apart.
        let place = place.filter(|place| {
            let open = &self.calls[*place].id;
            name.is_empty() || id.is_empty() || open.is_empty() || open == id
        });
        let is_empty = || call.function.as_ref().is_none_or(|function| function.is_empty());
        let place = match place {
            Some(place) => {
                self.answer.continue_call(place, id, name);
                place
            }
            // An empty piece begins no call.
            None if id.is_empty() && is_empty() => return,
            None => self.begin_call(call.index, id, name, out),
        };
        if let Some(function) = call.function {
            self.answer.arguments(place, function.arguments.0, out);
        }
    }

    /// Handles the legacy field `function_call`: one call, without index and id.
    fn legacy_call(&mut self, function: Function<'_>, out: &mut VecDeque<ModelEvent>) {
        let name = Word::non_empty(&function.name).unwrap_or_default();
        let place = match self.calls.iter().position(|call| call.index.is_none()) {
            Some(place) => {
                self.answer.continue_call(place, "", name);
                place
            }
            // Some services send the field with every answer.
            None if function.is_empty() => return,
            None => {
                // An answer has at most one such call, so the time is enough of an id.
                let id = format!("manual-id-{}", self.answer.now().as_millis());
                self.begin_call(None, &id, name, out)
            }
        };
        self.answer.arguments(place, function.arguments.0, out);
    }

    fn begin_call(
        &mut self,
        index: Option<u32>,
        id: &str,
        name: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> usize {
        self.calls.push(WireCall { index, id: id.to_owned() });
        self.answer.begin_call(id, name, out)
    }

    /// Emits the text that the splitter still holds back.
    fn finish_text(&mut self, out: &mut VecDeque<ModelEvent>) {
        if let Some(mut splitter) = self.splitter.take() {
            let mut unclosed = false;
            splitter.finish(|piece| match piece {
                Piece::ThinkingEnd => unclosed = true,
                piece => self.piece(piece, out),
            });
            let left_out = mem::take(&mut self.thinking.left_out);
            if unclosed && !left_out.is_empty() {
                // Native reasoning came, and the tag was never closed: so this text is the answer.
                self.answer.text(left_out, out);
            }
        }
    }
}

impl Decoder for ChatDecoder {
    type Frames = Sse;

    fn event(&mut self, event: Event, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        let data = self.answer.data_of(&event)?;
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if data == END_MARK {
            self.closed = true;
            return Ok(Progress::Last);
        }
        if event.event == "error" {
            return Err(classify::error_in(data));
        }
        match serde_json::from_str(data) {
            Ok(chunk) => self.chunk(chunk, data, out)?,
            Err(e) => self.answer.note_cut(&e, data, "an event is not a chunk", Some(END_MARK))?,
        }
        Ok(Progress::More)
    }

    fn end(&mut self, body: BodyEnd, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let (said_nothing, has_calls) = (self.answer.is_empty(), self.answer.has_calls());
        let is_complete = body == BodyEnd::Complete;
        let stop = match self.stop.take() {
            Some(stop) if self.answer.is_whole(body) => stop,
            // Some servers close the stream properly without a reason, or with an empty one (Snowflake).
            None if self.closed && !said_nothing => Stop::Done,
            None if is_complete && self.unsaid && !said_nothing && (self.whole || !has_calls) => Stop::Done,
            _ => return Err(self.answer.broke_off()),
        };
        self.finish_text(out);
        mem::take(&mut self.details).sign(&mut self.answer);
        self.answer.stop(stop, out);
        Ok(())
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }

    fn abort(&mut self) -> AssistantMessage {
        self.finish_text(&mut VecDeque::new());
        self.answer.abort()
    }
}

/// Maps the finish reasons of all services: <https://platform.openai.com/docs/api-reference/chat/object> and other
/// services' variants. An unknown reason counts as a normal end of the answer.
fn stop(reason: &str, text: Option<String>, data: &str) -> Result<Stop, ProviderError> {
    match reason {
        "stop_sequence" => Ok(Stop::Sequence(text)),
        "stop" if text.is_some() => Ok(Stop::Sequence(text)),
        "refusal" => Ok(Stop::Refused("the service refused to answer".to_owned())),
        "length" | "max_tokens" | "model_length" => Ok(Stop::Length),
        "content_filter" | "safety" | "sensitive" => {
            // Azure names the categories next to the reason.
            let chunk: Json = serde_json::from_str(data).unwrap_or_default();
            let results = chunk.pointer("/choices/0/content_filter_results");
            Ok(Stop::Refused(content_filter::stopped(results)))
        }
        "error" | "network_error" | "insufficient_system_resource" => Err(ProviderError::Overloaded {
            status: 200,
            retry_after: None,
            message: format!("the service stopped the answer: {reason}"),
        }),
        "model_context_window_exceeded" => Err(ProviderError::ContextOverflow(reason.to_owned().into())),
        _ => Ok(Stop::Done),
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
