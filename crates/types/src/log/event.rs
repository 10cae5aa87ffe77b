//! Events of runs: records when they are appended, and deltas while they stream.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    messages::ToolResult,
    values::{CallId, CommandId, RunId, ToolCallId},
};

use super::record::Record;

/// An event of a run, as watchers see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum Event {
    /// A record was appended.
    Record {
        /// The run whose log the record is in; `run_id` in JSON, because records have a `run` of their own.
        #[serde(rename = "run_id")]
        run: RunId,
        /// The record.
        #[serde(flatten)]
        record: Arc<Record>,
    },
    /// A piece of an answer or of a tool's output that still streams.
    Delta(Delta),
}

impl Event {
    /// Returns the run of the event: the watched run or one of its child runs.
    pub fn run(&self) -> &RunId {
        match self {
            Self::Record { run, .. } => run,
            Self::Delta(delta) => &delta.run,
        }
    }

    /// Returns the next piece of the answer's text; `None` for any other event. Append each piece to the
    /// pieces before. If an answer breaks off and is requested again, its text begins again with the first
    /// piece.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Delta(Delta { kind: DeltaKind::Text { text }, .. }) => Some(text),
            _ => None,
        }
    }
}

/// A piece of an answer or of a tool's output while it streams. Deltas are not stored; folds ignore them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delta {
    /// The run; `run_id` in JSON.
    #[serde(rename = "run_id")]
    pub run: RunId,
    /// The command of the model call that the delta belongs to; for a tool's output in a plan, the command of
    /// the subtask.
    pub command: CommandId,
    /// The number of the attempt. The deltas of a later attempt replace those of an earlier one.
    pub attempt: u32,
    /// The number of bytes of the same kind and index that were sent before in this attempt.
    pub offset: u64,
    /// The content of the delta.
    #[serde(flatten)]
    pub kind: DeltaKind,
}

/// The content of a delta.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "delta", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeltaKind {
    /// A piece of the answer's text.
    Text {
        /// The piece.
        text: String,
    },
    /// A piece of the model's thinking.
    Thinking {
        /// The piece.
        text: String,
    },
    /// The start of a tool call.
    ToolCallStarted {
        /// The index of the call in the answer.
        index: u32,
        /// The model's id for the call.
        id: ToolCallId,
        /// The name of the tool.
        name: String,
    },
    /// A piece of the arguments of a tool call.
    ToolCallArguments {
        /// The index of the call in the answer.
        index: u32,
        /// The model's id for the call.
        id: ToolCallId,
        /// The piece.
        text: String,
    },
    /// A progress message of a running tool.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The message.
        text: String,
    },
    /// A partial result of a running tool.
    ToolPartialResult {
        /// The call.
        call: CallId,
        /// The result so far, which replaces the previous partial result.
        result: Box<ToolResult>,
    },
    /// The turn is over, and the hooks of its tool calls have run; the hook for the end of the turn runs
    /// next. Sent only in runs with hooks.
    TurnEnd,
}

/// Receives events in order. The async task that executes the run calls `emit`, so `emit` must return at
/// once.
///
/// A sink for a slow reader may join or drop deltas, but must keep every record.
///
/// ```
/// use archon_types::{Event, Sink};
///
/// /// Prints the text of answers while it streams.
/// struct Printed;
///
/// impl Sink for Printed {
///     fn emit(&self, event: Event) {
///         if let Some(text) = event.as_text() {
///             print!("{text}");
///         }
///     }
/// }
/// ```
pub trait Sink: Send + Sync {
    /// Receives one event.
    fn emit(&self, event: Event);
}

/// A sink that drops all events.
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
