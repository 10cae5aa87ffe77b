//! What the model sees: the messages of a request, built up as the run goes on.
//!
//! A message enters the window once and never changes, so its encoded form can be kept with it. A
//! message with tool calls enters together with their results: a request can hold no half of a pair.

use std::sync::Arc;

use archon_types::{AssistantMessage, Content, Conversation, Message, ToolCall, ToolCallId};
use serde::{Deserialize, Serialize};

use crate::CallState;

/// The messages of a conversation, shared between the window and the requests made from it.
pub type Messages = Arc<Conversation>;

/// The messages that the next request carries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Window {
    messages: Messages,
}

impl Window {
    /// A window that begins with what an earlier run left.
    pub(crate) fn after(messages: Messages) -> Self {
        Self { messages }
    }

    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    pub(crate) fn push(&mut self, message: Message) {
        // In place, unless a request that was made from the window is still alive.
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Adds what the model said, without the calls it asked for: they are not going to be run, or they
    /// are spoken about in prose. An answer of nothing but calls leaves no message.
    pub(crate) fn push_spoken(&mut self, mut answer: AssistantMessage) {
        answer.content.retain(|block| block.as_tool_call().is_none());
        if !answer.content.is_empty() {
            self.push(Message::Assistant(answer));
        }
    }

    /// Adds an answer and the results of its calls, in the order of the calls.
    pub(crate) fn push_turn(&mut self, mut answer: AssistantMessage, calls: &[CallState]) {
        name_calls(&mut answer, calls);
        self.push(Message::Assistant(answer));
        for call in calls {
            if let Some((result, at)) = call.result() {
                self.push(Message::tool_result(&call.call, result, at));
            }
        }
    }
}

/// Puts the ids that the calls go by into the answer: a model may repeat an id or leave it out.
fn name_calls(answer: &mut AssistantMessage, calls: &[CallState]) {
    let blocks = answer.content.iter_mut().filter_map(|block| match block {
        Content::ToolCall(call) => Some(call),
        _ => None,
    });
    for (block, state) in blocks.zip(calls) {
        block.id = state.call.id.clone();
    }
}

/// The calls of an answer under ids that are unique within it.
pub(crate) fn unique_calls(answer: &AssistantMessage, command: u64) -> Vec<ToolCall> {
    let mut calls: Vec<ToolCall> = Vec::new();
    for call in answer.tool_calls() {
        let mut call = call.clone();
        let taken = call.id.as_str().is_empty() || calls.iter().any(|c| c.id == call.id);
        if taken {
            call.id = ToolCallId::new(format!("auto-{command}-{}", calls.len()));
        }
        calls.push(call);
    }
    calls
}
