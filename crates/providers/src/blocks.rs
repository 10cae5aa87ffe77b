//! An answer in numbered blocks: the deltas of several tool calls may interleave, and the number of each
//! delta gives its block.

use std::{collections::VecDeque, sync::Arc};

use archon_types::{Clock, ModelEvent, Request, StopReason, Usage};

use crate::answer::Answer;

/// An answer while it is received, with the numbers of its blocks.
pub(crate) struct Blocks {
    /// The answer, for what needs no number.
    pub(crate) answer: Answer,
    /// The calls: the number of the block, and the number of the call in the answer.
    calls: Vec<(u64, usize)>,
    /// The numbers of blocks with text or thinking.
    said: Vec<(u64, Part)>,
    /// The block of the last delta; a delta of another block begins new text.
    last: Option<(u64, Part)>,
}

/// The kind of a block that is no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    Thinking,
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
    /// The model or a filter refused, with this text.
    Refused(String),
    /// Another problem stopped the answer, with this text.
    Broken(String),
}

impl Blocks {
    /// Creates the empty answer of `provider` to `request`.
    pub(crate) fn new(request: &Request, provider: &str, clock: Option<Arc<dyn Clock>>) -> Self {
        let answer = Answer::new(request, provider, clock);
        Self { answer, calls: Vec::new(), said: Vec::new(), last: None }
    }

    pub(crate) fn set_usage(&mut self, usage: Usage) {
        *self.answer.usage() = usage;
    }

    /// Returns true if the block has a part of this kind.
    pub(crate) fn has(&self, number: u64, part: Part) -> bool {
        self.said.contains(&(number, part))
    }

    /// Appends to the text of a block.
    pub(crate) fn text(&mut self, number: u64, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.begin(number, Part::Text);
        self.answer.text(delta, out);
    }

    /// Appends text with which the model refuses.
    pub(crate) fn refusal(&mut self, number: u64, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.begin(number, Part::Text);
        self.answer.refusal(delta, out);
    }

    /// Appends structured output that comes as a call.
    pub(crate) fn push_structured_output(
        &mut self,
        number: u64,
        delta: String,
        out: &mut VecDeque<ModelEvent>,
    ) {
        self.begin(number, Part::Text);
        self.answer.push_structured_output(delta, out);
    }

    /// Appends to the thinking of a block.
    pub(crate) fn thinking(&mut self, number: u64, delta: String, out: &mut VecDeque<ModelEvent>) {
        self.begin(number, Part::Thinking);
        self.answer.thinking(delta, out);
    }

    /// Adds the signature to the thinking of a block, which may have no text.
    pub(crate) fn sign(&mut self, number: u64, signature: String) {
        self.begin(number, Part::Thinking);
        self.answer.sign(signature);
    }

    /// Adds an encrypted thinking block, which the service requires in later requests.
    pub(crate) fn sign_apart(&mut self, signature: String) {
        self.answer.separate();
        self.answer.sign(signature);
        self.last = None;
    }

    /// Begins a tool call, unless the block already has one.
    pub(crate) fn begin_call(&mut self, number: u64, id: &str, name: &str, out: &mut VecDeque<ModelEvent>) {
        if self.call(number).is_none() {
            let call = self.answer.begin_call(id, name, out);
            self.calls.push((number, call));
            self.last = None;
        }
    }

    /// Appends to the argument text of a call. Text of an unknown call is dropped.
    pub(crate) fn arguments(&mut self, number: u64, text: String, out: &mut VecDeque<ModelEvent>) {
        if let Some(call) = self.call(number) {
            self.answer.arguments(call, text, out);
        }
    }

    /// Completes the argument text of a call from the whole text, for services that repeat the text or send
    /// it only at the end. Deltas that were emitted before stay.
    pub(crate) fn all_arguments(&mut self, number: u64, text: &str, out: &mut VecDeque<ModelEvent>) {
        if let Some(call) = self.call(number)
            && let Some(rest) = text.strip_prefix(self.answer.arguments_of(call))
        {
            let rest = rest.to_owned();
            self.answer.arguments(call, rest, out);
        }
    }

    /// Ends a block; the arguments of its call are then complete.
    pub(crate) fn end(&mut self, number: u64, out: &mut VecDeque<ModelEvent>) {
        if let Some(call) = self.call(number) {
            self.answer.end_call(call, out);
        }
    }

    /// Completes the answer.
    pub(crate) fn finish(&mut self, stop: Stop, out: &mut VecDeque<ModelEvent>) {
        let (reason, because) = match stop {
            Stop::Length => (StopReason::Length, None),
            Stop::Broken(why) => (StopReason::Error, Some(why)),
            Stop::Refused(why) => (StopReason::Refusal, Some(why)),
            // Calls decide, not the reason that the service gives.
            Stop::Done | Stop::Sequence(_) if self.answer.has_calls() => (StopReason::ToolUse, None),
            Stop::Sequence(text) => {
                self.answer.set_stop_sequence(text);
                (StopReason::StopSequence, None)
            }
            Stop::Done => (StopReason::Stop, None),
        };
        self.answer.finish(reason, because, out);
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
