//! Encodes messages as lists of blocks. Each message is one line, so that the place of a cache mark is found
//! without parsing.

use std::sync::Arc;

use archon_types::{AssistantMessage, Content, Message, ToolCall, ToolResultMessage, UserMessage};
use serde_json::json;

use crate::{
    json_text::{push_field, push_json},
    signature::Signature,
    tool_names,
    turns::{ASSISTANT_END, USER_END, assistant_blocks, blocks, is_not_blank, push_arguments, push_turn},
};

/// The text at the beginning of a message.
const BLOCKS: &str = "{\"content\":[";
/// The JSON field that makes the service cache the prompt up to the end of the block with this field.
pub(super) const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

/// Appends a message, with a line break that separates it from the next.
pub(super) fn push(message: &Message, with_thinking: bool, out: &mut String) {
    match message {
        Message::User(m) => user(m, out),
        Message::Assistant(m) => assistant(m, with_thinking, out),
        Message::ToolResult(m) => tool_result(m, out),
    }
}

fn user(message: &UserMessage, out: &mut String) {
    let mut blocks = blocks(&message.content, text_block, image);
    if blocks.is_empty() {
        // The service refuses a message without blocks, and a conversation that does not begin with a
        // message.
        blocks = text_block("(nothing)");
    }
    push_turn(out, BLOCKS, &blocks, USER_END);
}

fn tool_result(message: &ToolResultMessage, out: &mut String) {
    let mut block = String::from("{\"type\":\"tool_result\",\"tool_use_id\":");
    push_json(&mut block, &call_id(message.tool_call_id.as_str()));
    let content = blocks(&message.content, text_block, image);
    if !content.is_empty() {
        block.push_str(",\"content\":[");
        block.push_str(&content);
        block.push(']');
    }
    if message.is_error {
        block.push_str(",\"is_error\":true");
    }
    block.push('}');
    push_turn(out, BLOCKS, &block, USER_END);
}

fn image(data: &str, mime_type: &str) -> String {
    json!({"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}).to_string()
}

pub(super) fn text_block(text: &str) -> String {
    let mut block = String::from("{\"type\":\"text\"");
    push_field(&mut block, "text", text);
    block.push('}');
    block
}

fn assistant(message: &AssistantMessage, with_thinking: bool, out: &mut String) {
    let thinking = |text: &str, signature: &str| thinking_block(text, signature).filter(|_| with_thinking);
    let blocks = assistant_blocks(message, text_block, thinking, call_block);
    // The service refuses an empty message, as of an answer that broke off at once.
    if !blocks.is_empty() {
        out.push_str(BLOCKS);
        out.push_str(&blocks);
        out.push_str(ASSISTANT_END);
    }
}

fn call_block(call: &ToolCall) -> String {
    let mut block = String::from("{\"type\":\"tool_use\",\"id\":");
    push_json(&mut block, &call_id(call.id.as_str()));
    push_field(&mut block, "name", &*tool_names::to_wire(&call.name));
    block.push_str(",\"input\":");
    push_arguments(&mut block, &call.arguments);
    block.push('}');
    block
}

/// Returns a thinking block as it was received; `None` for one that another protocol signed.
fn thinking_block(thinking: &str, signature: &str) -> Option<String> {
    let mut block = match Signature::of(signature) {
        Signature::Anthropic(signature) => {
            let mut block = String::from("{\"thinking\":");
            push_json(&mut block, thinking);
            push_field(&mut block, "signature", signature);
            block + ",\"type\":\"thinking"
        }
        Signature::Redacted(data) => {
            let mut block = String::from("{\"data\":");
            push_json(&mut block, data);
            block + ",\"type\":\"redacted_thinking"
        }
        _ => return None,
    };
    block.push_str("\"}");
    Some(block)
}

/// Returns a tool-call id that the service accepts: characters that it refuses become `_`.
fn call_id(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let id: String = id.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if id.is_empty() { "_".to_owned() } else { id }
}

/// Returns true if the current turn, with tool calls, began without thinking, for instance because another
/// model began it. The service then refuses thinking for the rest of the turn.
pub(crate) fn turn_began_without_thinking(messages: &[Arc<Message>]) -> bool {
    let turn = messages.iter().rposition(|m| matches!(**m, Message::User(_))).map_or(0, |user| user + 1);
    let first = messages[turn..].iter().find_map(|message| match &**message {
        // An empty answer is not sent.
        Message::Assistant(m) if m.content.iter().any(is_not_blank) => Some(m),
        _ => None,
    });
    first.is_some_and(|answer| match answer.content.first() {
        Some(Content::Thinking { thinking, signature: Some(text) }) => {
            thinking_block(thinking, text).is_none()
        }
        _ => true,
    })
}
