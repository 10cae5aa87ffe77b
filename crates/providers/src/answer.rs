//! The message that grows while a model answers, and the model events that tell of it: what decoders of
//! all protocols do the same way.

use std::{collections::VecDeque, mem, sync::Arc};

use archon_types::{
    AssistantMessage, Clock, Content, Encoded, Json, ModelEvent, ProviderError, Request, StopReason,
    Timestamp, ToolCall, ToolSpec, Usage,
};

use crate::{
    answer_limits::Said,
    http::{events::BodyEnd, time_of},
    tool_names,
};

/// An answer on its way.
pub(crate) struct Answer {
    message: AssistantMessage,
    calls: Vec<OpenCall>,
    /// What comes next joins nothing.
    apart: bool,
    prose: Prose,
    /// Whether a call of the tool that stands for the answer was begun.
    formed: bool,
    /// The model declined in words.
    refused: bool,
    said: Said,
    /// How much had come when the service said why the answer ends.
    ended_at: Option<Said>,
    tools: Arc<Encoded<Vec<ToolSpec>>>,
    clock: Option<Arc<dyn Clock>>,
}

/// What becomes of text beside an answer of a given form that is asked for as a call.
enum Prose {
    /// No such answer is asked for: all text is the answer's.
    Said,
    /// Held back until it is known whether the answer comes.
    Held(String),
    /// The answer came, and is all the text there is.
    Dropped,
}

/// A tool call on its way.
struct OpenCall {
    id: String,
    name: String,
    arguments: String,
    /// Its place among the blocks of the message.
    block: usize,
    closed: bool,
}

impl Answer {
    /// The answer of `provider` to `request`, before anything was said.
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
            prose: Prose::Said,
            formed: false,
            refused: false,
            said: Said::default(),
            ended_at: None,
            tools: request.tools.clone(),
            clock,
        }
    }

    /// What was said so far, and who was asked.
    pub(crate) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// How much came so far.
    pub(crate) fn said(&self) -> Said {
        self.said
    }

    /// The model as the service names it.
    pub(crate) fn set_model(&mut self, model: &str) {
        if !model.is_empty() && self.message.model != model {
            model.clone_into(&mut self.message.model);
        }
    }

    /// The tokens so far.
    pub(crate) fn usage(&mut self) -> &mut Usage {
        &mut self.message.usage
    }

    /// Whether the model has said nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.message.content.is_empty()
    }

    /// How many tools the model calls.
    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Whether the model calls tools.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// What comes next is a block of its own, even right behind one of its kind.
    pub(crate) fn separate(&mut self) {
        self.apart = true;
    }

    /// The answer is asked for as a call, whose arguments come by [`form`](Self::form).
    pub(crate) fn hold_prose(&mut self) {
        self.prose = Prose::Held(String::new());
    }

    /// More text; it joins the text right before it.
    pub(crate) fn text(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.said.text_bytes += delta.len();
        match &mut self.prose {
            Prose::Said => self.push_text(delta, out),
            Prose::Held(prose) => prose.push_str(&delta),
            Prose::Dropped => {}
        }
    }

    /// More of the words by which the model declines.
    pub(crate) fn refusal(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.refused |= !delta.is_empty();
        self.text(delta, out);
    }

    /// The text that ended the answer.
    pub(crate) fn set_stop_sequence(&mut self, text: Option<String>) {
        self.message.stop_sequence = text.filter(|text| !text.is_empty());
    }

    /// The service said why the answer ends.
    pub(crate) fn ends(&mut self) {
        self.ended_at = Some(self.said);
    }

    /// An answer with a finish reason is complete if its body ended, or if nothing came after the reason.
    pub(crate) fn is_whole(&self, body: BodyEnd) -> bool {
        body == BodyEnd::Complete || self.ended_at == Some(self.said)
    }

    /// A call begins that is the answer which was asked for as a call. Whether it is the first: one message
    /// holds one answer, and a model that calls several times at once has given it with the first; the other
    /// calls are nothing.
    pub(crate) fn begin_form(&mut self) -> bool {
        !mem::replace(&mut self.formed, true)
    }

    /// More of the answer that was asked for as a call. What was said beside it is left out: whoever asked for
    /// JSON reads nothing else.
    pub(crate) fn form(&mut self, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.said.text_bytes += delta.len();
        self.prose = Prose::Dropped;
        self.push_text(delta, out);
    }

    /// Says what was held back.
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

    /// More thinking; it joins the thinking right before it unless that is signed, and then complete.
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

    /// Signs the thinking right before, or, if there is none that is unsigned, a block without text.
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

    /// A signed block without text.
    pub(crate) fn sign_apart(&mut self, text: String) {
        self.said.thinking_bytes += text.len();
        self.message.content.push(Content::Thinking { thinking: String::new(), signature: Some(text) });
    }

    /// A picture.
    pub(crate) fn image(&mut self, data: String, mime_type: String) {
        self.message.content.push(Content::Image { data, mime_type });
    }

    /// A tool call begins; returns its number. An empty id is replaced by one that is unique, because
    /// results are told apart by it.
    pub(crate) fn begin_call(&mut self, id: &str, wire_name: &str, out: &mut VecDeque<ModelEvent>) -> usize {
        // It leads to the call.
        self.release_prose(out);
        let place = self.calls.len();
        self.said.calls += 1;
        self.said.argument_bytes += id.len() + wire_name.len();
        let id = match id {
            "" => format!("manual-id-{}-{place}", self.now().as_millis()),
            id => id.to_owned(),
        };
        let name = tool_names::from_wire(wire_name, &self.tools);
        out.push_back(ModelEvent::ToolCallStart { index: number(place), id: id.clone(), name: name.clone() });
        let block = self.message.content.len();
        // Holds the call's place until its arguments are complete.
        self.message.content.push(Content::from(ToolCall::new("", "", Json::Null)));
        self.calls.push(OpenCall { id, name, arguments: String::new(), block, closed: false });
        place
    }

    /// More argument text of a call that is not complete.
    pub(crate) fn arguments(&mut self, call: usize, text: String, out: &mut VecDeque<ModelEvent>) {
        let open = self.calls.get_mut(call).filter(|open| !open.closed && !text.is_empty());
        let Some(open) = open else { return };
        self.said.argument_bytes += text.len();
        open.arguments.push_str(&text);
        out.push_back(ModelEvent::ToolCallDelta { index: number(call), arguments: text });
    }

    /// The argument text of a call so far.
    pub(crate) fn arguments_of(&self, call: usize) -> &str {
        self.calls.get(call).map_or("", |open| &open.arguments)
    }

    /// The arguments of a call are complete. No arguments are `{}`; what is no JSON is kept as malformed. Whether the
    /// answer was cut off there is known only at its [`finish`](Self::finish).
    pub(crate) fn end_call(&mut self, call: usize, out: &mut VecDeque<ModelEvent>) {
        let Some(open) = self.calls.get_mut(call).filter(|open| !open.closed) else { return };
        open.closed = true;
        let arguments = mem::take(&mut open.arguments);
        let done = ToolCall::from_json_text(open.id.as_str(), open.name.as_str(), &arguments);
        self.message.content[open.block] = Content::from(done);
        out.push_back(ModelEvent::ToolCallEnd { index: number(call) });
    }

    /// The answer is complete, for this reason. `because` says why the service stopped it, if the model did not end it
    /// itself.
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
        let refused = self.refused && reason == StopReason::Stop;
        let mut message = self.take();
        message.stop_reason = if refused { StopReason::Refusal } else { reason };
        message.error_message = because;
        if message.stop_reason != StopReason::StopSequence {
            message.stop_sequence = None;
        }
        message.refuse_cut_call();
        out.push_back(ModelEvent::Done(Box::new(message)));
    }

    /// The caller cancelled: what was said so far. Calls that nobody will run are left out, so that none
    /// stays without a result.
    pub(crate) fn abort(&mut self) -> AssistantMessage {
        self.release_prose(&mut VecDeque::new());
        self.message.content.retain(|block| block.as_tool_call().is_none());
        let mut message = self.take();
        message.stop_reason = StopReason::Aborted;
        message
    }

    /// The time on the provider's clock.
    pub(crate) fn now(&self) -> Timestamp {
        time_of(self.clock.as_ref())
    }

    /// What it means that the service closed the stream before it said how the answer ends.
    pub(crate) fn broke_off(&self) -> ProviderError {
        let what = if self.is_empty() { "before the answer" } else { "in the middle of the answer" };
        ProviderError::Network(format!("the service closed the stream {what}").into())
    }

    fn take(&mut self) -> AssistantMessage {
        self.calls.clear();
        let mut message = mem::take(&mut self.message);
        message.timestamp = self.now();
        // The message is kept for as long as its run.
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

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-35
    #[test]
    fn said_counts_all_that_came_also_what_is_held_back_or_left_out() {
        let mut answer = Answer::new(&Request::new("m", Vec::new()), "p", None);
        let out = &mut VecDeque::new();
        answer.hold_prose();
        answer.text("held".to_owned(), out);
        answer.form("form".to_owned(), out);
        answer.text("dropped".to_owned(), out);
        answer.thinking("hm".to_owned(), out);
        answer.sign("signed".to_owned());
        answer.sign_apart("sealed".to_owned());
        let call = answer.begin_call("id", "name", out);
        answer.arguments(call, "{}".to_owned(), out);
        let Said { text_bytes, thinking_bytes, calls, argument_bytes } = answer.said();
        assert_eq!((text_bytes, thinking_bytes, calls, argument_bytes), (15, 14, 1, 8));
    }
}
