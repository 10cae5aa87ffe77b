//! Encodes messages as lists of blocks. Each message is one line, so that the place of a cache mark is found
//! without parsing.

use std::sync::Arc;

use archon_types::{AssistantMessage, Content, Message, ToolCall, ToolResultMessage, UserMessage};

use crate::{
    json_text::{push_field, push_json},
    media::{COMMON_IMAGES, PDF, Shown, Takes},
    signature::Signature,
    tool_names,
    turns::{ASSISTANT_END, USER_END, assistant_blocks, blocks, is_not_blank, push_arguments, push_turn},
};

/// The media that messages and results can have:
/// <https://platform.claude.com/docs/en/build-with-claude/vision>,
/// <https://platform.claude.com/docs/en/build-with-claude/pdf-support>.
pub(super) const TAKES: Takes = Takes { images: COMMON_IMAGES, pdfs: true };
/// The text at the beginning of a message.
const BLOCKS: &str = "{\"content\":[";
/// The JSON field that makes the service cache the prompt up to the end of the block with this field.
pub(super) const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

/// The options that change the text of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// True if the model's earlier thinking is sent.
    pub(super) thinking: bool,
    /// The media that the model reads.
    pub(super) takes: Takes,
}

impl Form {
    /// Returns the name of the encoding of messages in this form. A conversation keeps its encoded text as long as
    /// this name stays the same.
    pub(super) fn name(self) -> String {
        format!("anthropic-messages {self:?}")
    }
}

/// Appends a message, with a line break that separates it from the next.
pub(super) fn push(message: &Message, form: Form, out: &mut String) {
    match message {
        Message::User(m) => user(m, form.takes, out),
        Message::Assistant(m) => assistant(m, form.thinking, out),
        Message::ToolResult(m) => tool_result(m, form.takes, out),
    }
}

fn user(message: &UserMessage, takes: Takes, out: &mut String) {
    let mut blocks = blocks(&message.content, &takes, text_block, media_block);
    if blocks.is_empty() {
        // The service refuses a message without blocks, and a conversation that does not begin with a
        // message.
        blocks = text_block("(nothing)");
    }
    push_turn(out, BLOCKS, &blocks, USER_END);
}

fn tool_result(message: &ToolResultMessage, takes: Takes, out: &mut String) {
    let mut block = String::from("{\"type\":\"tool_result\",\"tool_use_id\":");
    push_json(&mut block, &call_id(message.tool_call_id.as_str()));
    // The service refuses a failed result with anything but text.
    let takes = if message.is_error { Takes::NONE } else { takes };
    let content = blocks(&message.content, &takes, text_block, media_block);
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

fn media_block(shown: Shown<'_>) -> String {
    let (kind, mime_type, data, title) = match shown {
        Shown::Image { mime_type, data } => ("image", mime_type, data, None),
        Shown::Pdf { name, data } => ("document", PDF, data, name),
        Shown::Note(note) => return text_block(&note),
    };
    let mut block = format!("{{\"type\":\"{kind}\",\"source\":{{\"type\":\"base64\"");
    push_field(&mut block, "media_type", mime_type);
    push_field(&mut block, "data", data);
    block.push('}');
    if let Some(title) = title {
        push_field(&mut block, "title", title);
    }
    block.push('}');
    block
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
