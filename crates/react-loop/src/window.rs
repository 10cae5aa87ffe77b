//! The context window: builds the messages of a request during the run, and compacts them when they
//! exceed the model's context window.
//!
//! A message enters the window once and never changes, so its encoded form can be cached. A message with
//! tool calls enters together with their results, because a request must not contain a call without its
//! result.
//!
//! | topic | file |
//! |---|---|
//! | the view of the model, and the messages that enter it | `manager.rs` |
//! | when a compaction is due | `manager/compactions.rs` |
//! | usage of the window, and notices about it | `usage.rs`, `result_sizes.rs` |
//! | the order of compaction | `tiers.rs`, step by step in `draft.rs` |
//! | texts in place of removed messages | `digest.rs`, `file_reads.rs` |
//! | results that the model gives up | `cleanup.rs` |
//! | shortening a tool's result | `truncate.rs` |
//! | the meaning of a compaction's record | `entries.rs` |

mod cleanup;
mod digest;
mod draft;
mod entries;
mod file_reads;
mod history;
mod manager;
mod parts;
mod result_sizes;
mod tiers;
mod truncate;
mod usage;

#[cfg(feature = "tokens")]
mod bpe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use archon_types::{AssistantMessage, Content, Message, ToolCall, ToolCallId, Transcript};

use crate::CallState;

pub(crate) use digest::message_text;
pub use digest::{MODEL_SUMMARY, round_summary};
pub(crate) use entries::Entry;
pub use history::{History, prompts_and_answer};
pub use manager::{ContextManager, SummaryDue};
pub use parts::{ContextParts, token_counter};
pub use tiers::{Summarize, Tiered, Trim};
pub(crate) use truncate::char_end;
pub use usage::{ContextUsage, QueueNotice, ToolGate, Urgency};

/// The messages of a conversation, oldest first. Cloning is cheap, because clones share the messages.
pub type Messages = Arc<Transcript>;

/// Writes the unique ids of the calls into the answer, because a model may repeat an id or leave it out.
fn name_calls(answer: &mut AssistantMessage, calls: &[CallState]) {
    let blocks = answer.content.iter_mut().filter_map(|block| match block {
        Content::ToolCall(call) => Some(call),
        _ => None,
    });
    for (block, state) in blocks.zip(calls) {
        match state.is_by_name {
            // The answer keeps the call as the model wrote it.
            true => Arc::make_mut(block).id.clone_from(&state.call.id),
            false => block.clone_from(&state.call),
        }
    }
}

/// Returns true if every tool call has exactly one result, directly after the message with the call.
pub fn is_paired(messages: &[Message]) -> bool {
    let mut open: Vec<&ToolCallId> = Vec::new();
    for message in messages {
        match message {
            Message::ToolResult(result) => match open.iter().position(|id| **id == result.tool_call_id) {
                Some(at) => drop(open.swap_remove(at)),
                None => return false,
            },
            other if open.is_empty() => {
                for call in other.content().iter().filter_map(Content::as_tool_call) {
                    if open.contains(&&call.id) {
                        return false;
                    }
                    open.push(&call.id);
                }
            }
            _ => return false,
        }
    }
    open.is_empty()
}

/// Returns the calls of an answer, with ids that are unique within the answer.
pub(crate) fn unique_calls(answer: &AssistantMessage, command: u64) -> Vec<Arc<ToolCall>> {
    let mut calls: Vec<Arc<ToolCall>> = Vec::new();
    for block in &answer.content {
        let Content::ToolCall(call) = block else { continue };
        let mut call = Arc::clone(call);
        let taken = call.id.as_str().is_empty() || calls.iter().any(|c| c.id == call.id);
        if taken {
            let is_free = |id: &ToolCallId| calls.iter().all(|c| c.id != *id);
            let mut ids = (calls.len()..).map(|n| ToolCallId::new(format!("auto-{command}-{n}")));
            if let Some(id) = ids.find(is_free) {
                Arc::make_mut(&mut call).id = id;
            }
        }
        calls.push(call);
    }
    calls
}
