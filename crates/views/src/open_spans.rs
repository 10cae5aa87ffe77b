//! The spans of a timeline while it is computed: which spans are open, and which calls wait for another attempt.

use std::collections::HashMap;

use archon_types::{CallId, CommandId};

use crate::span::{Span, SpanKind, SpanStatus};

/// The key of an open span: the thing whose end also ends the span.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Model(CommandId),
    Auxiliary(&'static str),
    Call(CallId),
    Question(CallId, String),
    Branch(usize),
    /// The run is suspended without a question.
    Rest,
    /// The plan is paused.
    Pause,
}

impl Key {
    /// Returns true for a wait, in which no process works.
    pub(crate) fn is_wait(&self) -> bool {
        matches!(self, Self::Question(..) | Self::Rest | Self::Pause)
    }
}

/// The spans so far.
#[derive(Debug, Default)]
pub(crate) struct OpenSpans {
    spans: Vec<Span>,
    /// The indexes of the open spans.
    open: HashMap<Key, usize>,
    /// The pauses before another attempt. A pause joins `spans` when the attempt begins.
    pauses: HashMap<Key, Span>,
}

impl OpenSpans {
    /// Adds a span without a key, and returns its index. The caller ends the span.
    pub(crate) fn push(&mut self, span: Span) -> usize {
        self.spans.push(span);
        self.spans.len() - 1
    }

    /// Begins a span, ends the pause before it, and returns the index of the span.
    pub(crate) fn begin(&mut self, key: Key, span: Span) -> usize {
        if let Some(mut pause) = self.pauses.remove(&key) {
            pause.end(span.from_ms, SpanStatus::Completed);
            self.spans.push(pause);
        }
        self.end(&key, span.from_ms, SpanStatus::Lost);
        let place = self.push(span);
        self.open.insert(key, place);
        place
    }

    /// Ends a span, if it is open.
    pub(crate) fn end(&mut self, key: &Key, ms: u64, status: SpanStatus) {
        if let Some(span) = self.open.remove(key).and_then(|place| self.spans.get_mut(place)) {
            span.end(ms, status);
        }
    }

    /// Ends the open spans whose keys `is_meant` accepts.
    pub(crate) fn end_all(&mut self, ms: u64, status: SpanStatus, is_meant: impl Fn(&Key) -> bool) {
        let keys: Vec<Key> = self.open.keys().filter(|key| is_meant(key)).cloned().collect();
        keys.iter().for_each(|key| self.end(key, ms, status));
    }

    /// Begins a pause before another attempt.
    pub(crate) fn pause(&mut self, key: Key, reason: String, seq: u64, ms: u64) {
        self.pauses.insert(key, Span::new(SpanKind::Retry, reason, seq, ms));
    }

    /// Forgets a pause, because no other attempt comes.
    pub(crate) fn forget_pause(&mut self, key: &Key) {
        self.pauses.remove(key);
    }

    pub(crate) fn forget_pauses(&mut self) {
        self.pauses.clear();
    }

    pub(crate) fn open(&self, key: &Key) -> Option<&Span> {
        self.spans.get(*self.open.get(key)?)
    }

    pub(crate) fn open_mut(&mut self, key: &Key) -> Option<&mut Span> {
        self.spans.get_mut(*self.open.get(key)?)
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Span> {
        self.spans.get(place)
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Span> {
        self.spans.get_mut(place)
    }

    /// Returns true if an open span is a wait.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open.keys().any(Key::is_wait)
    }

    /// Returns all spans, and the pauses that are not over.
    pub(crate) fn into_spans(mut self) -> Vec<Span> {
        self.spans.extend(self.pauses.into_values());
        self.spans
    }
}
