//! One span of a run's timeline: a call, a wait, a pause before a retry, a step of a plan, or a child run.

use archon_types::{RunId, Spending, Usage};
use serde::Serialize;

/// A span of time of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Span {
    /// The id, unique in the timeline. It stays the same while the log grows.
    pub id: String,
    /// The id of the span that led to this one: the model call that asked for a tool, the call that a person is asked
    /// about, or the step of a plan that a call belongs to.
    pub parent: Option<String>,
    /// The lane, from 0. Two spans of a lane do not overlap.
    pub lane: u32,
    /// The kind of the span.
    pub kind: SpanKind,
    /// The label, as one line: the model, the tool with its first short argument, the question, the reason.
    pub label: String,
    /// The time of the span's first record, in Unix milliseconds.
    pub from_ms: u64,
    /// The time of the span's last record, in Unix milliseconds; `None` if the span is not over.
    pub to_ms: Option<u64>,
    /// The sequence number of the span's first record.
    pub seq: u64,
    /// The state of the span: running, or how it ended.
    pub status: SpanStatus,
    /// The tokens of a model call, a planner or a child run; `None` if the log does not have them. For a planner and a
    /// child run, only the total is known.
    pub tokens: Option<Usage>,
    /// The cost of these tokens, in millionths of a currency unit; `None` if the model has no price.
    pub cost_micros: Option<u64>,
    /// The share of a model call's prompt that came from a cache, from 0 to 1; `None` before the answer and for other
    /// spans.
    pub cached_share: Option<f64>,
    /// The child run that the call started.
    pub child_run: Option<RunId>,
}

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpanKind {
    /// An attempt of a model call, or a planner at work.
    Model,
    /// An attempt of a tool call.
    Tool,
    /// A question to a person, a paused plan, or a time in which no process works on the run.
    Wait,
    /// The pause before another attempt.
    Retry,
    /// A subtask of a plan or a team, with all of its calls.
    Step,
    /// A call whose work a child run does, or a branch of a parallel loop.
    Child,
}

impl SpanKind {
    /// Returns the letter that the ids of spans of this kind begin with.
    const fn letter(self) -> char {
        match self {
            Self::Model => 'm',
            Self::Tool => 't',
            Self::Wait => 'w',
            Self::Retry => 'r',
            Self::Step => 's',
            Self::Child => 'c',
        }
    }
}

/// The state of a span: running, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpanStatus {
    /// The span is not over.
    Running,
    /// The call succeeded, the person agreed or answered, or the wait is over.
    Completed,
    /// The call failed.
    Failed,
    /// A guard or a person refused.
    Refused,
    /// Nobody answered in time.
    Expired,
    /// The call waits for a person, and begins again in a later span.
    Suspended,
    /// The run ended, or the call was cancelled.
    Cancelled,
    /// The process died, so that the end of the call is not known.
    Lost,
}

impl Span {
    /// Creates a span that begins with a record.
    pub(crate) fn new(kind: SpanKind, label: impl Into<String>, seq: u64, from_ms: u64) -> Self {
        Self {
            id: format!("{}{seq}", kind.letter()),
            parent: None,
            lane: 0,
            kind,
            label: label.into(),
            from_ms,
            to_ms: None,
            seq,
            status: SpanStatus::Running,
            tokens: None,
            cost_micros: None,
            cached_share: None,
            child_run: None,
        }
    }

    /// Sets the parent: the span that led to this one.
    pub(crate) fn below(mut self, parent: Option<String>) -> Self {
        self.parent = parent;
        self
    }

    /// Ends the span. If the clock was set back, the span ends at its beginning, not earlier.
    pub(crate) fn end(&mut self, to_ms: u64, status: SpanStatus) {
        self.to_ms = Some(to_ms.max(self.from_ms));
        self.status = status;
    }

    /// Sets the tokens and the cost of a child run or a planner.
    pub(crate) fn spend(&mut self, spent: Spending) {
        self.tokens = Some(Usage { total_tokens: spent.tokens, ..Usage::default() });
        self.cost_micros = Some(spent.cost_micros);
    }
}
