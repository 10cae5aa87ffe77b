//! Stream events: a run in the form that a chat interface shows. Programs outside of this project use the same event
//! names. The events are computed from [`AgentEvent`]s and not stored.

use archon_types::{AgentMessage, Event, Json, LoopId, Message, RecordBody, ToolCallId};
use serde::{Deserialize, Serialize};

use crate::{
    agent_event::{AgentEvent, StreamDelta},
    projection::AgentEvents,
};

/// An event for a chat interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are named by their types")]
pub enum StreamEvent {
    /// The model starts its answer.
    MessageStart { loop_id: LoopId },
    /// The next piece of the answer's text. Thinking and tool arguments are not shown.
    MessageChunk { loop_id: LoopId, text: String },
    /// The answer is complete.
    MessageEnd { loop_id: LoopId, text: String },
    /// A tool starts.
    ToolCallStart { loop_id: LoopId, tool_call_id: ToolCallId, tool_name: String, arguments: Json },
    /// A tool call has its result, even if the tool did not run.
    ToolResult { loop_id: LoopId, tool_call_id: ToolCallId, tool_name: String, text: String, is_error: bool },
    /// The agent waits for a person.
    StateChange { loop_id: LoopId, state: WaitingFor },
    /// The run ended.
    ExecutionEnd { loop_id: LoopId },
}

/// The reason why an agent waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum WaitingFor {
    /// A person's input, or a timer.
    #[serde(rename = "WAITING_FOR_INPUT")]
    Input,
    /// A person's approval.
    #[serde(rename = "WAITING_FOR_APPROVAL")]
    Approval,
}

/// Folds the events of one run into [`StreamEvent`]s. Push the events of the run from its first record on.
#[derive(Clone, Debug, Default)]
pub struct StreamEvents {
    events: AgentEvents,
    loop_id: Option<LoopId>,
    /// True if a person was asked since the last change of state was sent.
    asked: bool,
}

impl StreamEvents {
    /// Creates a fold at the start of a run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event of the run and returns the stream events that follow from it, in order.
    pub fn push(&mut self, event: &Event) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if let Event::Record { record, .. } = event {
            match &record.body {
                RecordBody::RunStarted(started) => self.loop_id = Some(started.loop_id.clone()),
                RecordBody::ApprovalRequested { .. } => {
                    self.asked = true;
                    out.extend(self.waits(WaitingFor::Approval));
                }
                // A question was already announced as a wait for approval.
                RecordBody::Suspended { .. } if !std::mem::take(&mut self.asked) => {
                    out.extend(self.waits(WaitingFor::Input));
                }
                RecordBody::ApprovalAnswered { .. } => self.asked = false,
                _ => {}
            }
        }
        out.extend(self.events.push(event).into_iter().filter_map(of));
        out
    }

    fn waits(&self, state: WaitingFor) -> Option<StreamEvent> {
        Some(StreamEvent::StateChange { loop_id: self.loop_id.clone()?, state })
    }
}

/// Converts an agent event into a stream event; `None` if it is not shown.
fn of(event: AgentEvent) -> Option<StreamEvent> {
    Some(match event {
        AgentEvent::MessageStart { loop_id, message } => match message.as_llm()? {
            Message::Assistant(_) => StreamEvent::MessageStart { loop_id },
            _ => return None,
        },
        AgentEvent::MessageUpdate { loop_id, delta: StreamDelta::Text { delta: text } } => {
            StreamEvent::MessageChunk { loop_id, text }
        }
        AgentEvent::MessageEnd { loop_id, message } => ended(loop_id, &message)?,
        AgentEvent::ToolExecutionStart { loop_id, tool_call_id, tool_name, args: arguments } => {
            StreamEvent::ToolCallStart { loop_id, tool_call_id, tool_name, arguments }
        }
        AgentEvent::AgentEnd { loop_id, .. } => StreamEvent::ExecutionEnd { loop_id },
        _ => return None,
    })
}

fn ended(loop_id: LoopId, message: &AgentMessage) -> Option<StreamEvent> {
    Some(match message.as_llm()? {
        Message::Assistant(answer) => StreamEvent::MessageEnd { loop_id, text: answer.text() },
        Message::ToolResult(result) => StreamEvent::ToolResult {
            loop_id,
            tool_call_id: result.tool_call_id.clone(),
            tool_name: result.tool_name.clone(),
            text: message.as_llm()?.text(),
            is_error: result.is_error,
        },
        Message::User(_) => return None,
    })
}
