//! The message that grows while a model answers, and its events: the part of decoding that all protocols
//! share.

use std::{collections::VecDeque, mem, sync::Arc, time::SystemTime};

use archon_types::{
    AssistantMessage, Clock, Content, Encoded, Json, Media, ModelEvent, ProviderError, Request, StopReason,
    Timestamp, ToolCall, ToolSpec, Usage,
};
use eventsource_stream::Event;
use serde::Deserialize;

use crate::{answer_limits::AnswerSize, classify, tool_names};

/// The state of a body at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// The body ended properly, or the protocol declared that nothing follows.
    Complete,
    /// The body broke off, and the missing part is unknown.
    Broken,
}

/// An answer while it is received.
pub(crate) struct Answer {
    message: AssistantMessage,
    calls: Vec<OpenCall>,
    /// True if the next text or thinking begins a new block.
    apart: bool,
    prose: Prose,
    /// The name on the wire of the tool that carries the structured output: the arguments of its call are the
    /// answer's text.
    format_tool: Option<String>,
    /// True if the call that carries the structured output has begun.
    formed: bool,
    /// True if the model sent a refusal as text.
    refused: bool,
    said: AnswerSize,
    /// The size of the answer when the service sent the finish reason.
    ended_at: Option<AnswerSize>,
    /// The error for an event whose data were cut off. It is returned only if another event follows.
    cut: Option<ProviderError>,
    tools: Arc<Encoded<Vec<ToolSpec>>>,
    clock: Option<Arc<dyn Clock>>,
}

/// The treatment of text next to structured output that is requested as a tool call.
enum Prose {
    /// Structured output was not requested as a tool call: all text belongs to the answer.
    Shown,
    /// Text is held back until the call comes or the answer ends.
    Held(String),
    /// The call came; other text is dropped.
    Dropped,
}

/// A tool call while it is received.
struct OpenCall {
    id: String,
    /// The name as the service sent it.
    wire_name: String,
    arguments: String,
    /// The index of the call's block in the message.
    block: usize,
    closed: bool,
}

/// The reason why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The model was done, or waits for the results of its calls.
    Done,
    /// The model wrote a stop sequence: this one, if the service names it.
    Sequence(Option<String>),
    /// The answer reached the limit of tokens.
    Length,
    /// The model or a filter refused to answer; the string is the text of the refusal.
    Refused(String),
    /// Another problem stopped the answer; the string describes the problem.
    Broken(String),
}

impl Answer {
    /// Creates the empty answer of `provider` to `request`.
    pub(crate) fn new(request: &Request, provider: &str, clock: Option<Arc<dyn Clock>>) -> Self {
        let message = AssistantMessage {
            model: request.model.clone(),
            provider: provider.to_owned(),
            ..AssistantMessage::default()
        };
        Self {
            message,
            calls: Vec::new(),
            apart: false,
            prose: Prose::Shown,
            format_tool: None,
            formed: false,
            refused: false,
            said: AnswerSize::default(),
            ended_at: None,
            cut: None,
            tools: request.tools.clone(),
            clock,
        }
    }

    /// Returns the message so far, with model and provider.
    pub(crate) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Returns the size of the answer received so far.
    pub(crate) fn size(&self) -> AnswerSize {
        self.said
    }

    /// Sets the model's name as the service gives it.
    pub(crate) fn set_model(&mut self, model: &str) {
        if !model.is_empty() && self.message.model != model {
            model.clone_into(&mut self.message.model);
        }
    }

    /// Returns the token counts so far, to be changed.
    pub(crate) fn usage(&mut self) -> &mut Usage {
        &mut self.message.usage
    }

    /// Returns true if the message has no content yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.message.content.is_empty()
    }

    /// Returns the number of tool calls.
    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Returns true if the answer has tool calls.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Makes the next text or thinking begin a new block, even after a block of the same kind.
    pub(crate) fn separate(&mut self) {
        self.apart = true;
    }

    /// Sets the tool whose call carries the structured output. The decoder passes the arguments of the
    /// call to [`push_structured_output`](Self::push_structured_output).
    pub(crate) fn set_format_tool(&mut self, tool: Option<String>) {
        if tool.is_some() {
            self.prose = Prose::Held(String::new());
        }
        self.format_tool = tool;
    }

    /// Returns true if the structured output is requested as a call of this tool.
    pub(crate) fn is_format_tool(&self, name: &str) -> bool {
        self.format_tool.as_deref() == Some(name)
    }

    /// Returns the data of an event, without white space around them.
    ///
    /// # Errors
    /// The error of the event before this one, if it was [cut off](Self::note_cut).
    pub(crate) fn data_of<'a>(&mut self, event: &'a Event) -> Result<&'a str, ProviderError> {
        self.cut.take().map_or_else(|| Ok(event.data.trim()), Err)
    }

    /// Parses the data of an event. Returns `None` if they were cut off: most likely the connection broke, and
    /// no other event follows. `problem` describes data that cannot be parsed.
    pub(crate) fn read<'a, T: Deserialize<'a>>(
        &mut self,
        data: &'a str,
        problem: &str,
    ) -> Result<Option<T>, ProviderError> {
        match serde_json::from_str(data) {
            Ok(event) => Ok(Some(event)),
            Err(e) => self.note_cut(&e, data, problem, None).map(|()| None),
        }
    }

    /// Stores the error for an event that cannot be parsed because its data were cut off. `end_mark` is the text
    /// that marks the end of the stream, if that text is not JSON.
    ///
    /// # Errors
    /// The error of the event, if it is invalid for another reason than a cut.
    pub(crate) fn note_cut(
        &mut self,
        error: &serde_json::Error,
        data: &str,
        problem: &str,
        end_mark: Option<&str>,
    ) -> Result<(), ProviderError> {
        self.cut = Some(classify::torn(error, data, problem, end_mark)?);
        Ok(())
    }

    /// Appends text, to the last block if that is a text block.
    pub(crate) fn text(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.said.text_bytes += delta.len();
        match &mut self.prose {
            Prose::Shown => self.push_text(delta, out),
            Prose::Held(prose) => prose.push_str(&delta),
            Prose::Dropped => {}
        }
    }

    /// Appends text with which the model refuses.
    pub(crate) fn refusal(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.refused |= !delta.is_empty();
        self.text(delta, out);
    }

    /// Notes that the model refuses.
    pub(crate) fn refuses(&mut self) {
        self.refused = true;
    }

    /// Counts the bytes of thinking that is not part of the message. They count for the limit of thinking.
    pub(crate) fn count_thinking(&mut self, bytes: usize) {
        self.said.thinking_bytes += bytes;
    }

    /// Sets the stop sequence that ended the answer.
    pub(crate) fn set_stop_sequence(&mut self, text: Option<String>) {
        self.message.stop_sequence = text.filter(|text| !text.is_empty());
    }

    /// Notes that the service sent the finish reason.
    pub(crate) fn ends(&mut self) {
        self.ended_at = Some(self.said);
    }

    /// Returns true if an answer with a finish reason is complete: the response body ended properly, or
    /// nothing came after the finish reason.
    pub(crate) fn is_whole(&self, body: BodyEnd) -> bool {
        body == BodyEnd::Complete || self.ended_at == Some(self.said)
    }

    /// Begins the call that carries the structured output. Returns true for the first such call; later ones
    /// are ignored, because a message has only one structured output.
    pub(crate) fn begin_structured_output(&mut self) -> bool {
        !mem::replace(&mut self.formed, true)
    }

    /// Appends structured output that comes as a tool call. Text next to the call is dropped, since the
    /// caller expects only JSON.
    pub(crate) fn push_structured_output(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.said.text_bytes += delta.len();
        self.prose = Prose::Dropped;
        self.push_text(delta, out);
    }

    /// Emits the text that was held back.
    fn release_prose(&mut self, out: &mut VecDeque<ModelEvent>) {
        if let Prose::Held(prose) = &mut self.prose {
            let prose = mem::take(prose);
            self.push_text(prose, out);
        }
    }

    fn push_text(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        if delta.is_empty() {
            return;
        }
        let apart = mem::take(&mut self.apart);
        match self.message.content.last_mut() {
            Some(Content::Text { text }) if !apart => text.push_str(&delta),
            _ => self.message.content.push(Content::text(delta.as_str())),
        }
        out.push_back(ModelEvent::TextDelta(delta));
    }

    /// Appends thinking, to the last block if that is a thinking block without a signature.
    pub(crate) fn thinking(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.said.thinking_bytes += delta.len();
        if delta.is_empty() {
            return;
        }
        let apart = mem::take(&mut self.apart);
        match self.message.content.last_mut() {
            Some(Content::Thinking { thinking, signature: None }) if !apart => thinking.push_str(&delta),
            _ => self.message.content.push(Content::Thinking { thinking: delta.clone(), signature: None }),
        }
        out.push_back(ModelEvent::ThinkingDelta(delta));
    }

    /// Sets the signature of the last block if that is thinking without a signature; otherwise adds a signed
    /// thinking block without text.
    pub(crate) fn sign(&mut self, text: String) {
        let apart = mem::take(&mut self.apart);
        match self.message.content.last_mut() {
            Some(Content::Thinking { signature: signature @ None, .. }) if !apart => {
                self.said.thinking_bytes += text.len();
                *signature = Some(text);
            }
            _ => self.sign_apart(text),
        }
    }

    /// Adds a signed thinking block without text.
    pub(crate) fn sign_apart(&mut self, text: String) {
        self.said.thinking_bytes += text.len();
        self.message.content.push(Content::Thinking { thinking: String::new(), signature: Some(text) });
    }

    /// Sets the signature of the first thinking block; without thinking, adds a signed block at the beginning.
    pub(crate) fn sign_first(&mut self, text: String) {
        let first = self.message.content.iter_mut().find_map(|block| match block {
            Content::Thinking { signature, .. } => Some(signature),
            _ => None,
        });
        match first {
            Some(signature) => *signature = Some(text),
            None => {
                let signed = Content::Thinking { thinking: String::new(), signature: Some(text) };
                self.message.content.insert(0, signed);
                self.calls.iter_mut().for_each(|call| call.block += 1);
            }
        }
    }

    /// Adds an image as a medium, so that a log has only its hash. Data that is no image of this type becomes a text
    /// about it.
    pub(crate) fn image(&mut self, data: &str, mime_type: &str, out: &mut VecDeque<ModelEvent>) {
        match Media::from_base64(data, mime_type, None) {
            Ok(media) => self.message.content.push(media.into()),
            Err(error) => {
                self.separate();
                self.text(format!("[an image of the model, left out: {error}]"), out);
                self.separate();
            }
        }
    }

    /// Begins a tool call and returns its index. An empty id is replaced by a unique one, because the tool
    /// result refers to the id.
    pub(crate) fn begin_call(&mut self, id: &str, wire_name: &str, out: &mut VecDeque<ModelEvent>) -> usize {
        // The text comes before the call.
        self.release_prose(out);
        let place = self.calls.len();
        self.said.calls += 1;
        self.said.argument_bytes += id.len() + wire_name.len();
        let id = match id {
            "" => format!("manual-id-{}-{place}", self.now().as_millis()),
            id => id.to_owned(),
        };
        let name = tool_names::from_wire(wire_name, &self.tools);
        out.push_back(ModelEvent::ToolCallStart { index: number(place), id: id.clone(), name });
        let block = self.message.content.len();
        // A placeholder until the arguments are complete.
        self.message.content.push(Content::from(ToolCall::new("", "", Json::Null)));
        let wire_name = wire_name.to_owned();
        self.calls.push(OpenCall { id, wire_name, arguments: String::new(), block, closed: false });
        place
    }

    /// Handles the id and the name in a later piece of a call. Most names come complete; a repeated name
    /// changes nothing, and a part of a name is appended.
    pub(crate) fn continue_call(&mut self, call: usize, id: &str, wire_name: &str) {
        self.said.argument_bytes += id.len() + wire_name.len();
        if let Some(open) = self.calls.get_mut(call).filter(|open| open.wire_name != wire_name) {
            open.wire_name.push_str(wire_name);
        }
    }

    /// Appends to the argument text of a call whose arguments are not complete.
    pub(crate) fn arguments(&mut self, call: usize, text: String, out: &mut VecDeque<ModelEvent>) {
        let open = self.calls.get_mut(call).filter(|open| !open.closed && !text.is_empty());
        let Some(open) = open else { return };
        self.said.argument_bytes += text.len();
        open.arguments.push_str(&text);
        out.push_back(ModelEvent::ToolCallDelta { index: number(call), arguments: text });
    }

    /// Returns the argument text of a call so far.
    pub(crate) fn arguments_of(&self, call: usize) -> &str {
        self.calls.get(call).map_or("", |open| &open.arguments)
    }

    /// Completes the arguments of a call. Empty arguments become `{}`; text that is not valid JSON is kept
    /// as malformed. Only [`finish`](Self::finish) knows if the answer was cut off in the arguments.
    pub(crate) fn end_call(&mut self, call: usize, out: &mut VecDeque<ModelEvent>) {
        let Some(open) = self.calls.get_mut(call).filter(|open| !open.closed) else { return };
        open.closed = true;
        let arguments = mem::take(&mut open.arguments);
        let name = tool_names::from_wire(&open.wire_name, &self.tools);
        let done = ToolCall::from_json_text(open.id.as_str(), name, &arguments);
        self.message.content[open.block] = Content::from(done);
        out.push_back(ModelEvent::ToolCallEnd { index: number(call) });
    }

    /// Completes the answer. If an answer with calls ended normally, its stop reason is `ToolUse`: some
    /// services send `stop` with calls.
    pub(crate) fn stop(&mut self, stop: Stop, out: &mut VecDeque<ModelEvent>) {
        let (reason, because) = match stop {
            Stop::Length => (StopReason::Length, None),
            Stop::Broken(why) => (StopReason::Error, Some(why)),
            Stop::Refused(why) => (StopReason::Refusal, Some(why)),
            Stop::Done | Stop::Sequence(_) if self.has_calls() => (StopReason::ToolUse, None),
            Stop::Sequence(text) => {
                self.set_stop_sequence(text);
                (StopReason::StopSequence, None)
            }
            Stop::Done => (StopReason::Stop, None),
        };
        self.finish(reason, because, out);
    }

    /// Completes the answer with this stop reason. `because` is the service's explanation if something other
    /// than the model ended the answer.
    pub(crate) fn finish(
        &mut self,
        reason: StopReason,
        because: Option<String>,
        out: &mut VecDeque<ModelEvent>,
    ) {
        self.release_prose(out);
        for call in 0..self.calls.len() {
            self.end_call(call, out);
        }
        let refused = self.refused && matches!(reason, StopReason::Stop | StopReason::StopSequence);
        let mut message = self.take();
        message.stop_reason = if refused { StopReason::Refusal } else { reason };
        message.error_message = because;
        if message.stop_reason != StopReason::StopSequence {
            message.stop_sequence = None;
        }
        message.refuse_cut_call();
        out.push_back(ModelEvent::Done(Box::new(message)));
    }

    /// Returns the message so far after a cancel. Tool calls are left out: nobody will run them, and a call
    /// without a result is invalid.
    pub(crate) fn abort(&mut self) -> AssistantMessage {
        self.release_prose(&mut VecDeque::new());
        self.message.content.retain(|block| block.as_tool_call().is_none());
        let mut message = self.take();
        message.stop_reason = StopReason::Aborted;
        message
    }

    /// Returns the time on the provider's clock.
    pub(crate) fn now(&self) -> Timestamp {
        time_of(self.clock.as_ref())
    }

    /// Returns the error for a stream that the service closed before the end of the answer.
    pub(crate) fn broke_off(&self) -> ProviderError {
        let what = if self.is_empty() { "before the answer" } else { "in the middle of the answer" };
        ProviderError::Network(format!("the service closed the stream {what}").into())
    }

    fn take(&mut self) -> AssistantMessage {
        self.calls.clear();
        let mut message = mem::take(&mut self.message);
        message.timestamp = self.now();
        // The message is kept in memory as long as its run.
        for content in &mut message.content {
            if let Content::Text { text } = content {
                text.shrink_to_fit();
            }
        }
        message
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Returns the time of this clock; without a clock, the system's time.
pub(crate) fn time_of(clock: Option<&Arc<dyn Clock>>) -> Timestamp {
    match clock {
        Some(clock) => clock.now(),
        None => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-35
    #[test]
    fn answer_output_size_counts_held_back_and_dropped_text() {
        let mut answer = Answer::new(&Request::new("m", Vec::new()), "p", None);
        let out = &mut VecDeque::new();
        answer.set_format_tool(Some("answer".to_owned()));
        answer.text("held".to_owned(), out);
        answer.push_structured_output("form".to_owned(), out);
        answer.text("dropped".to_owned(), out);
        answer.thinking("hm".to_owned(), out);
        answer.sign("signed".to_owned());
        answer.sign_apart("sealed".to_owned());
        let call = answer.begin_call("id", "name", out);
        answer.arguments(call, "{}".to_owned(), out);
        let AnswerSize { text_bytes, thinking_bytes, calls, argument_bytes } = answer.size();
        assert_eq!((text_bytes, thinking_bytes, calls, argument_bytes), (15, 14, 1, 8));
    }
}
