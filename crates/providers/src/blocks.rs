//! An answer in blocks that the service numbers: pieces of several calls may interleave, and each is told
//! by its number where it belongs.

use std::{collections::VecDeque, sync::Arc};

use archon_types::{
    AssistantMessage, Clock, ModelEvent, ProviderError, Request, StopReason, Timestamp, Usage,
};

use crate::{answer::Answer, answer_limits::Said, http::events::BodyEnd};

/// An answer on its way, by the numbers of its blocks.
pub(crate) struct Blocks {
    answer: Answer,
    /// Which call a number is.
    calls: Vec<(u64, usize)>,
    /// The numbers under which something was said, with what.
    said: Vec<(u64, Part)>,
    /// What came last; what comes under another number does not join it.
    last: Option<(u64, Part)>,
}

/// What a block holds that is no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    Thinking,
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was done, or waits for the results of its calls.
    Done,
    /// It wrote a text that ends answers: this one, where it is said.
    Sequence(Option<String>),
    /// It ran into its limit.
    Length,
    /// It declined, or a filter stopped it, in these words.
    Refused(String),
    /// Something else stopped it, in these words.
    Broken(String),
}

impl Blocks {
    /// The answer of `provider` to `request`, before anything was said.
    pub(crate) fn new(request: &Request, provider: &str, clock: Option<Arc<dyn Clock>>) -> Self {
        let answer = Answer::new(request, provider, clock);
        Self { answer, calls: Vec::new(), said: Vec::new(), last: None }
    }

    pub(crate) fn set_model(&mut self, model: &str) {
        self.answer.set_model(model);
    }

    pub(crate) fn set_usage(&mut self, usage: Usage) {
        *self.answer.usage() = usage;
    }

    /// Whether nothing was said.
    pub(crate) fn is_empty(&self) -> bool {
        self.answer.is_empty()
    }

    /// Whether anything of this kind was said under the number.
    pub(crate) fn has(&self, number: u64, part: Part) -> bool {
        self.said.contains(&(number, part))
    }

    /// Adds to the text of a block.
    pub(crate) fn text(&mut self, number: u64, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.begin(number, Part::Text);
        self.answer.text(delta, out);
    }

    /// Adds to the words by which the model declines.
    pub(crate) fn refusal(&mut self, number: u64, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.begin(number, Part::Text);
        self.answer.refusal(delta, out);
    }

    /// The service said why the answer ends, see [`Answer::ends`].
    pub(crate) fn ends(&mut self) {
        self.answer.ends();
    }

    /// See [`Answer::is_whole`].
    pub(crate) fn is_whole(&self, body: BodyEnd) -> bool {
        self.answer.is_whole(body)
    }

    /// The answer is asked for as a call, see [`Answer::hold_prose`].
    pub(crate) fn hold_prose(&mut self) {
        self.answer.hold_prose();
    }

    /// A call begins that is the answer, unless the answer was given already, see [`Answer::begin_form`].
    pub(crate) fn begin_form(&mut self) -> bool {
        self.answer.begin_form()
    }

    /// Adds to the block that is the answer which was asked for as a call.
    pub(crate) fn form(&mut self, number: u64, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.begin(number, Part::Text);
        self.answer.form(delta, out);
    }

    /// Adds to the thinking of a block.
    pub(crate) fn thinking(&mut self, number: u64, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.begin(number, Part::Thinking);
        self.answer.thinking(delta, out);
    }

    /// What the service wants back with the thinking of a block, which may have no text.
    pub(crate) fn sign(&mut self, number: u64, signature: String) {
        self.begin(number, Part::Thinking);
        self.answer.sign(signature);
    }

    /// A block that nobody may read, which the service wants back.
    pub(crate) fn sign_apart(&mut self, signature: String) {
        self.answer.separate();
        self.answer.sign(signature);
        self.last = None;
    }

    /// Begins a call, unless the number is one already.
    pub(crate) fn begin_call(&mut self, number: u64, id: &str, name: &str, out: &mut VecDeque<ModelEvent>) {
        if self.call(number).is_none() {
            let call = self.answer.begin_call(id, name, out);
            self.calls.push((number, call));
            self.last = None;
        }
    }

    /// Adds to the argument text of a call. What belongs to no call is left out.
    pub(crate) fn arguments(&mut self, number: u64, text: String, out: &mut VecDeque<ModelEvent>) {
        if let Some(call) = self.call(number) {
            self.answer.arguments(call, text, out);
        }
    }

    /// The whole argument text of a call, for services that say it again or only then. What came in
    /// pieces was shown already and is not taken back.
    pub(crate) fn all_arguments(&mut self, number: u64, text: &str, out: &mut VecDeque<ModelEvent>) {
        if let Some(call) = self.call(number)
            && let Some(rest) = text.strip_prefix(self.answer.arguments_of(call))
        {
            let rest = rest.to_owned();
            self.answer.arguments(call, rest, out);
        }
    }

    /// The block is complete: if it is a call, its arguments are.
    pub(crate) fn end(&mut self, number: u64, out: &mut VecDeque<ModelEvent>) {
        if let Some(call) = self.call(number) {
            self.answer.end_call(call, out);
        }
    }

    /// The answer is complete.
    pub(crate) fn finish(&mut self, stop: Stop, out: &mut VecDeque<ModelEvent>) {
        let (reason, because) = match stop {
            Stop::Length => (StopReason::Length, None),
            Stop::Broken(why) => (StopReason::Error, Some(why)),
            Stop::Refused(why) => (StopReason::Refusal, Some(why)),
            // The calls count, not the word.
            Stop::Done | Stop::Sequence(_) if self.answer.has_calls() => (StopReason::ToolUse, None),
            Stop::Sequence(text) => {
                self.answer.set_stop_sequence(text);
                (StopReason::StopSequence, None)
            }
            Stop::Done => (StopReason::Stop, None),
        };
        self.answer.finish(reason, because, out);
    }

    /// The caller cancelled: what was said so far.
    pub(crate) fn abort(&mut self) -> AssistantMessage {
        self.answer.abort()
    }

    /// What was said so far, and who was asked.
    pub(crate) fn message(&self) -> &AssistantMessage {
        self.answer.message()
    }

    /// How much came so far.
    pub(crate) fn said(&self) -> Said {
        self.answer.said()
    }

    /// The time on the provider's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.answer.now()
    }

    /// What it means that the service closed the stream before it said how the answer ends.
    pub(crate) fn broke_off(&self) -> ProviderError {
        self.answer.broke_off()
    }

    fn begin(&mut self, number: u64, part: Part) {
        let now = Some((number, part));
        if self.last != now {
            self.answer.separate();
            self.last = now;
            self.said.extend(now);
        }
    }

    fn call(&self, number: u64) -> Option<usize> {
        self.calls.iter().rev().find(|(of, _)| *of == number).map(|(_, call)| *call)
    }
}
