//! Decodes the chunks of a stream into model events and the final message, which grows in place.

use std::{collections::VecDeque, mem, sync::Arc};

use archon_types::{
    AssistantMessage, Clock, Content, Encoded, Json, ModelEvent, ProviderError, StopReason, Timestamp,
    ToolCall, ToolSpec,
};
use eventsource_stream::Event;

use super::{
    details::ReasoningDetails,
    wire::{Call, Chunk, Delta, Function, Word},
};
use crate::{
    answer_limits::AnswerSize,
    classify, content_filter,
    http::{
        events::{BodyEnd, Decoder, Progress},
        sse::Sse,
        time_of,
    },
    think_tags::{Piece, ThinkSplitter},
    tool_names as names,
};

/// Decodes one answer.
pub(crate) struct ChatDecoder {
    message: AssistantMessage,
    calls: Vec<OpenCall>,
    /// The finish reason, and the size of the answer when the service sent it.
    finish: Option<(Finish, AnswerSize)>,
    /// True if `[DONE]` came.
    closed: bool,
    /// The error of an event that was cut off, which is reported if another event follows.
    cut: Option<ProviderError>,
    splitter: Option<ThinkSplitter>,
    thinking: ThinkingSource,
    details: ReasoningDetails,
    tools: Arc<Encoded<Vec<ToolSpec>>>,
    clock: Option<Arc<dyn Clock>>,
    named_model: bool,
    /// True if the model sent a refusal as text.
    refused: bool,
    /// True if the latest choice had an empty finish reason.
    unsaid: bool,
    /// True if the latest choice contained the whole text so far.
    whole: bool,
    /// The number of bytes of `content` text received so far, including thinking between tags.
    content_bytes: usize,
    said: AnswerSize,
}

/// The source of the thinking. With native reasoning, thinking between tags is left out.
#[derive(Default)]
struct ThinkingSource {
    native: bool,
    /// Thinking between tags that was left out; it becomes text if the closing tag never comes.
    left_out: String,
}

/// A tool call while it is received.
struct OpenCall {
    /// The service's number of the call; `None` for the legacy field.
    wire_index: Option<u32>,
    /// The service's own id; empty if it sent none.
    wire_id: String,
    id: String,
    /// The name as the service sent it.
    name: String,
    arguments: String,
    /// The index of the call's block in the message.
    block: usize,
}

/// The reason why the model stopped, as far as the service gives it.
enum Finish {
    Stop,
    /// A stop sequence: this one, if the service names it.
    Sequence(Option<String>),
    Length,
    /// A content filter stopped the answer, with this text.
    Filtered(String),
}

impl ChatDecoder {
    pub(super) fn new(
        message: AssistantMessage,
        tools: Arc<Encoded<Vec<ToolSpec>>>,
        clock: Option<Arc<dyn Clock>>,
        think_tags: bool,
    ) -> Self {
        Self {
            message,
            calls: Vec::new(),
            finish: None,
            closed: false,
            cut: None,
            splitter: think_tags.then(ThinkSplitter::default),
            thinking: ThinkingSource::default(),
            details: ReasoningDetails::default(),
            tools,
            clock,
            named_model: false,
            refused: false,
            unsaid: false,
            whole: false,
            content_bytes: 0,
            said: AnswerSize::default(),
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
            self.message.usage = usage;
        }
        if !self.named_model
            && let Some(model) = Word::non_empty(&chunk.model)
        {
            self.message.model = model.to_owned();
            self.named_model = true;
        }
        let Some(choices) = chunk.choices else {
            // Neither a chunk of an answer nor an error in the usual form.
            return if classify::is_error(data) { Err(error_in(data)) } else { Ok(()) };
        };
        for choice in choices {
            if choice.index > 0 {
                continue;
            }
            let reason = match Word::non_empty(&choice.finish_reason) {
                Some(reason) => Some(finish(reason, choice.stop_text(), data)?),
                None => None,
            };
            self.unsaid = choice.finish_reason.is_some() && reason.is_none();
            if let Some(delta) = self.news(choice.delta, choice.message) {
                self.delta(delta, out);
            }
            if let Some(reason) = reason {
                self.finish = Some((reason, self.said));
            }
        }
        Ok(())
    }

    /// Returns the new part of a choice. Some services (Perplexity) send the whole text so far as a message
    /// next to the delta; if the delta is empty, the message may contain more than the deltas did.
    fn news<'a>(&mut self, delta: Option<Delta<'a>>, message: Option<Box<Delta<'a>>>) -> Option<Delta<'a>> {
        let Some(mut message) = message.map(|message| *message) else { return delta };
        self.whole = delta.as_ref().is_none_or(Delta::is_empty);
        match delta {
            None => Some(message),
            Some(delta) if !delta.is_empty() => Some(delta),
            Some(_) => {
                message.leave_out(self.content_bytes, self.said);
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
            self.push_thinking(reasoning, out);
        }
        if !delta.content.text.is_empty() {
            self.text(delta.content.text, out);
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.text.is_empty()) {
            self.refused = true;
            self.text(refusal.text, out);
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.said.thinking_bytes += detail.to_string().len();
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
            None => self.push_text(text, out),
            Some(mut splitter) => {
                splitter.push(text, |piece| self.piece(piece, out));
                self.splitter = Some(splitter);
            }
        }
    }

    fn piece(&mut self, piece: Piece, out: &mut VecDeque<ModelEvent>) {
        match piece {
            Piece::Text(text) => self.push_text(text, out),
            Piece::Thinking(text) if self.thinking.native => {
                self.said.thinking_bytes += text.len();
                self.thinking.left_out.push_str(&text);
            }
            Piece::Thinking(text) => self.push_thinking(text, out),
            Piece::ThinkingEnd => self.thinking.left_out.clear(),
        }
    }

    fn push_text(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.said.text_bytes += delta.len();
        match self.message.content.last_mut() {
            Some(Content::Text { text }) => text.push_str(&delta),
            _ => self.message.content.push(Content::text(delta.as_str())),
        }
        out.push_back(ModelEvent::TextDelta(delta));
    }

    fn push_thinking(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.said.thinking_bytes += delta.len();
        match self.message.content.last_mut() {
            Some(Content::Thinking { thinking, .. }) => thinking.push_str(&delta),
            _ => self.message.content.push(Content::Thinking { thinking: delta.clone(), signature: None }),
        }
        out.push_back(ModelEvent::ThinkingDelta(delta));
    }

    fn call(&mut self, call: Call<'_>, out: &mut VecDeque<ModelEvent>) {
        let id = Word::non_empty(&call.id).unwrap_or_default();
        let name = call.function.as_ref().and_then(|f| Word::non_empty(&f.name)).unwrap_or_default();
        self.said.argument_bytes += id.len() + name.len();
        let place = match call.index {
            Some(index) => self.calls.iter().rposition(|open| open.wire_index == Some(index)),
            // Without a number, a piece with a name begins a call, and one without continues the last call.
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        // Some services give every call the same number; the ids tell them apart.
        let place = place.filter(|place| {
            let open = &self.calls[*place].wire_id;
            name.is_empty() || id.is_empty() || open.is_empty() || open == id
        });
        let is_empty = || call.function.as_ref().is_none_or(|function| function.is_empty());
        let place = match place {
            Some(place) => {
                self.calls[place].add_name(name);
                place
            }
            // An empty piece begins no call.
            None if id.is_empty() && is_empty() => return,
            None => self.begin_call(call.index, id, name, out),
        };
        if let Some(function) = call.function {
            self.arguments(place, function.arguments.0, out);
        }
    }

    /// Handles the legacy field for one call, without number and id.
    fn legacy_call(&mut self, function: Function<'_>, out: &mut VecDeque<ModelEvent>) {
        let name = Word::non_empty(&function.name).unwrap_or_default();
        self.said.argument_bytes += name.len();
        let place = match self.calls.iter().position(|call| call.wire_index.is_none()) {
            Some(place) => {
                self.calls[place].add_name(name);
                place
            }
            // Some services send the field with every answer.
            None if function.is_empty() => return,
            None => {
                // An answer has at most one such call, so the time is enough of an id.
                let id = format!("manual-id-{}", self.now().as_millis());
                self.begin_call(None, &id, name, out)
            }
        };
        self.arguments(place, function.arguments.0, out);
    }

    fn begin_call(
        &mut self,
        wire_index: Option<u32>,
        wire_id: &str,
        name: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> usize {
        let index = self.calls.len();
        self.said.calls += 1;
        let id = match wire_id {
            "" => format!("manual-id-{}-{index}", self.now().as_millis()),
            id => id.to_owned(),
        };
        let known_name = names::from_wire(name, &self.tools);
        out.push_back(ModelEvent::ToolCallStart { index: number(index), id: id.clone(), name: known_name });
        let block = self.message.content.len();
        // A placeholder until the arguments are complete.
        self.message.content.push(Content::from(ToolCall::new("", "", Json::Null)));
        let (wire_id, name) = (wire_id.to_owned(), name.to_owned());
        self.calls.push(OpenCall { wire_index, wire_id, id, name, arguments: String::new(), block });
        index
    }

    fn arguments(&mut self, place: usize, text: String, out: &mut VecDeque<ModelEvent>) {
        if !text.is_empty() {
            self.said.argument_bytes += text.len();
            self.calls[place].arguments.push_str(&text);
            out.push_back(ModelEvent::ToolCallDelta { index: number(place), arguments: text });
        }
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
                self.push_text(left_out, out);
            }
        }
        // The message is kept in memory as long as its run.
        for content in &mut self.message.content {
            if let Content::Text { text } = content {
                text.shrink_to_fit();
            }
        }
    }

    fn finish_calls(&mut self, out: &mut VecDeque<ModelEvent>) {
        for (index, call) in mem::take(&mut self.calls).into_iter().enumerate() {
            let name = names::from_wire(&call.name, &self.tools);
            self.message.content[call.block] =
                Content::from(ToolCall::from_json_text(call.id, name, &call.arguments));
            out.push_back(ModelEvent::ToolCallEnd { index: number(index) });
        }
    }
}

impl OpenCall {
    /// Adds to the name. Most names come complete; a repeated name changes nothing, and a part of a name is
    /// appended.
    fn add_name(&mut self, name: &str) {
        if self.name != name {
            self.name.push_str(name);
        }
    }
}

impl Decoder for ChatDecoder {
    type Frames = Sse;

    fn event(&mut self, event: Event, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ProviderError> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }
        let data = trimmed(&event.data);
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if data == "[DONE]" {
            self.closed = true;
            return Ok(Progress::Last);
        }
        if event.event == "error" {
            return Err(error_in(data));
        }
        match serde_json::from_str::<Chunk<'_>>(data) {
            Ok(chunk) => self.chunk(chunk, data, out)?,
            Err(e) => {
                let what = format!("an event is not a chunk ({e}): {}", classify::first_words(data));
                let error = ProviderError::Protocol(what.into());
                if !classify::is_torn(&e, data) && !"[DONE]".starts_with(data) {
                    return Err(error);
                }
                // Most likely the connection broke off; then this is the last event.
                self.cut = Some(error);
            }
        }
        Ok(Progress::More)
    }

    fn end(&mut self, body: BodyEnd, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError> {
        let said_nothing = self.message.content.is_empty() && self.calls.is_empty();
        let is_complete = body == BodyEnd::Complete;
        let finish = match self.finish.take() {
            // Text after the reason belongs to the answer, and may be incomplete.
            Some((finish, said)) if is_complete || said == self.said => finish,
            // Some servers close the stream properly without a reason, or with an empty one (Snowflake).
            None if self.closed && !said_nothing => Finish::Stop,
            None if is_complete && self.unsaid && !said_nothing && (self.whole || self.calls.is_empty()) => {
                Finish::Stop
            }
            _ => {
                let what = if said_nothing { "before the answer" } else { "in the middle of the answer" };
                return Err(ProviderError::Network(format!("the service closed the stream {what}").into()));
            }
        };
        self.finish_text(out);
        let asks_for_tools = !self.calls.is_empty();
        self.finish_calls(out);
        mem::take(&mut self.details).sign(&mut self.message.content);
        let mut message = mem::take(&mut self.message);
        message.stop_reason = match finish {
            Finish::Length => StopReason::Length,
            Finish::Filtered(why) => {
                message.error_message = Some(why);
                StopReason::Refusal
            }
            // Calls decide, not the reason: some services send `stop` with calls.
            Finish::Stop | Finish::Sequence(_) if asks_for_tools => StopReason::ToolUse,
            Finish::Stop | Finish::Sequence(_) if self.refused => StopReason::Refusal,
            Finish::Sequence(text) => {
                message.stop_sequence = text;
                StopReason::StopSequence
            }
            Finish::Stop => StopReason::Stop,
        };
        message.refuse_cut_call();
        message.timestamp = self.now();
        out.push_back(ModelEvent::Done(Box::new(message)));
        Ok(())
    }

    fn abort(&mut self) -> AssistantMessage {
        self.finish_text(&mut VecDeque::new());
        // Calls are left out, since nobody will run them and each would lack a result.
        for call in mem::take(&mut self.calls).into_iter().rev() {
            self.message.content.remove(call.block);
        }
        let mut message = mem::take(&mut self.message);
        message.stop_reason = StopReason::Aborted;
        message.timestamp = self.now();
        message
    }

    fn answer(&self) -> &AssistantMessage {
        &self.message
    }

    fn size(&self) -> AnswerSize {
        self.said
    }

    fn now(&self) -> Timestamp {
        time_of(self.clock.as_ref())
    }
}

/// Maps the finish reasons of all services: <https://platform.openai.com/docs/api-reference/chat/object> and
/// other services' variants. An unknown reason means that the model stopped.
fn finish(reason: &str, text: Option<String>, data: &str) -> Result<Finish, ProviderError> {
    match reason {
        "stop_sequence" => Ok(Finish::Sequence(text)),
        "stop" if text.is_some() => Ok(Finish::Sequence(text)),
        "refusal" => Ok(Finish::Filtered("the service refused to answer".to_owned())),
        "length" | "max_tokens" | "model_length" => Ok(Finish::Length),
        "content_filter" | "safety" | "sensitive" => {
            // Azure names the categories next to the reason.
            let chunk: Json = serde_json::from_str(data).unwrap_or_default();
            let results = chunk.pointer("/choices/0/content_filter_results");
            Ok(Finish::Filtered(content_filter::stopped(results)))
        }
        "error" | "network_error" | "insufficient_system_resource" => Err(ProviderError::Overloaded {
            status: 200,
            retry_after: None,
            message: format!("the service stopped the answer: {reason}"),
        }),
        "model_context_window_exceeded" => Err(ProviderError::ContextOverflow(reason.to_owned().into())),
        _ => Ok(Finish::Stop),
    }
}

/// Returns the text without surrounding white space, which few services send.
fn trimmed(data: &str) -> &str {
    match data.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => data,
        _ => data.trim(),
    }
}

fn error_in(data: &str) -> ProviderError {
    classify::stream_error(&serde_json::from_str(data).unwrap_or_else(|_| Json::String(data.to_owned())))
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
