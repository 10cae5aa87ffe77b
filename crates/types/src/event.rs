//! Events: records as they are appended, and deltas as they arrive.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, CommandId, Record, RunId, ToolCallId, ToolResult};

/// What a watcher of runs sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum Event {
    /// A record was appended.
    Record {
        /// The run whose log it stands in; `run_id` in JSON, because records have a `run` of their own.
        #[serde(rename = "run_id")]
        run: RunId,
        /// The record.
        #[serde(flatten)]
        record: Arc<Record>,
    },
    /// Part of something that is still on its way.
    Delta(Delta),
}

impl Event {
    /// The run that it is of: the one that is watched, or one that it called.
    pub fn run(&self) -> &RunId {
        match self {
            Self::Record { run, .. } => run,
            Self::Delta(delta) => &delta.run,
        }
    }

    /// A piece of the text that a model writes, as it comes. Each piece goes behind the one before; an answer that broke
    /// off begins again.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Delta(Delta { kind: DeltaKind::Text { text }, .. }) => Some(text),
            _ => None,
        }
    }
}

/// A piece of an answer or of a tool's output on its way. Never stored; folds ignore it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delta {
    /// The run; `run_id` in JSON.
    #[serde(rename = "run_id")]
    pub run: RunId,
    /// The model command that it belongs to.
    pub command: CommandId,
    /// Which attempt; a later attempt voids the deltas of an earlier one.
    pub attempt: u32,
    /// Bytes of the same kind and index that came before in this attempt.
    pub offset: u64,
    /// What came.
    #[serde(flatten)]
    pub kind: DeltaKind,
}

/// What a delta brings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "delta", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeltaKind {
    /// Text of the answer.
    Text {
        /// The piece.
        text: String,
    },
    /// Reasoning.
    Thinking {
        /// The piece.
        text: String,
    },
    /// A tool call begins.
    ToolCall {
        /// Its place in the answer.
        index: u32,
        /// The model's id for it.
        id: ToolCallId,
        /// The tool's name.
        name: String,
    },
    /// Argument text of a tool call.
    Arguments {
        /// The call's place in the answer.
        index: u32,
        /// The model's id for the call.
        id: ToolCallId,
        /// The piece.
        text: String,
    },
    /// A running tool says something.
    Progress {
        /// The call.
        call: CallId,
        /// What it says.
        text: String,
    },
    /// A running tool shows what it has so far.
    Partial {
        /// The call.
        call: CallId,
        /// What there is; replaces what was shown before.
        result: Box<ToolResult>,
    },
    /// All calls of the turn have their results, and the hooks of the run have heard of each. Said in runs with hooks.
    TurnEnd,
}

/// A [`DeltaKind`] as streams of other systems know it: text, thinking or argument text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum StreamDelta {
    /// Text of the answer.
    Text {
        /// The piece.
        delta: String,
    },
    /// Reasoning.
    Thinking {
        /// The piece.
        delta: String,
    },
    /// Argument text.
    ToolCallDelta {
        /// The piece.
        delta: String,
    },
}

/// Receives events. Called in order, on the run's own task: return at once.
///
/// A sink that hands events to a slow reader may join or drop deltas; it must keep every record.
pub trait Sink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Event);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn emit(&self, _: Event) {}
}

impl<F: Fn(Event) + Send + Sync> Sink for F {
    fn emit(&self, event: Event) {
        self(event);
    }
}
