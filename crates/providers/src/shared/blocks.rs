//! An answer in numbered blocks: the deltas of several tool calls may interleave, and the number of each
//! delta gives its block.

use std::{collections::VecDeque, sync::Arc};

use archon_types::{Clock, ModelEvent, Request};

use crate::answer::Answer;

/// An answer while it is received, with the numbers that the service gave to its blocks.
pub(crate) struct Blocks {
    /// The answer, for changes that concern no single block.
    pub(crate) answer: Answer,
    /// For each call: the number of its block, and its index in the answer.
    calls: Vec<(u64, usize)>,
    /// The numbers of blocks with text or thinking.
    said: Vec<(u64, Part)>,
    /// The block of the last delta; a delta of another block begins new text.
    last: Option<(u64, Part)>,
}

/// The kind of content in a block that is no tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    Thinking,
}

impl Blocks {
    /// Creates the empty answer of `provider` to `request`.
    pub(crate) fn new(request: &Request, provider: &str, clock: Option<Arc<dyn Clock>>) -> Self {
        let answer = Answer::new(request, provider, clock);
        Self { answer, calls: Vec::new(), said: Vec::new(), last: None }
    }

    /// Returns true if the block has a part of this kind.
    pub(crate) fn has(&self, number: u64, part: Part) -> bool {
        self.said.contains(&(number, part))
    }

    /// Begins a part of this kind in the block: the next text or thinking is a new block of the answer, and
    /// [`has`](Self::has) is true from now on. Does nothing if the last delta was of the same part. Returns
    /// the answer, to which the caller adds the text or the thinking.
    pub(crate) fn begin_part(&mut self, number: u64, part: Part) -> &mut Answer {
        let now = Some((number, part));
        if self.last != now {
            self.answer.separate();
            self.last = now;
            self.said.extend(now);
        }
        &mut self.answer
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

    fn call(&self, number: u64) -> Option<usize> {
        self.calls.iter().rev().find(|(of, _)| *of == number).map(|(_, call)| *call)
    }
}
