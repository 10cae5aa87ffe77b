//! Encodes the conversation for Bedrock: roles alternate, and results come right after their calls.

use archon_types::{AssistantMessage, Message, ToolCall, ToolResultMessage, Transcript, UserMessage};
use serde_json::json;

use crate::{
    call_ids,
    json_text::{push_field, push_json},
    signature::Signature,
    tool_names,
    turns::{
        ASSISTANT_END, USER_END, assistant_blocks, blocks, end_messages, mark_second_to_last, push_arguments,
        push_turn, text_part,
    },
};

/// The JSON block that makes the service cache the prompt before this block.
pub(super) const CACHE_POINT: &str = ",{\"cachePoint\":{\"type\":\"default\"}}";
/// The placeholder for a message without content, which the service refuses.
const NOTHING: &str = "{\"text\":\"(nothing)\"}";

/// The optional parts of messages that a model accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// The status of tool results.
    Status,
    /// The status of tool results, and the model's reasoning.
    StatusAndReasoning,
}

impl Form {
    /// Returns the name of the encoding of messages in this form. A conversation keeps its encoded text as long as
    /// this name stays the same.
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "bedrock-messages",
            Self::Status => "bedrock-messages-status",
            Self::StatusAndReasoning => "bedrock-messages-status-reasoning",
        }
    }
}

/// Appends all messages, separated by commas. Each message is encoded once and then copied.
pub(super) fn push(body: &mut String, conversation: &Transcript, form: Form, cached: bool) {
    let start = body.len();
    conversation.encode_into(form.name(), body, |message, out| match message {
        Message::User(m) => user(m, out),
        Message::Assistant(m) => assistant(m, form == Form::StatusAndReasoning, out),
        Message::ToolResult(m) => tool_result(m, form != Form::Plain, out),
    });
    if cached {
        mark_second_to_last(body, start, CACHE_POINT, 0);
    }
    end_messages(body, start);
}

fn push_blocks(blocks: &str, role_end: &str, out: &mut String) {
    push_turn(out, "{\"content\":[", blocks, role_end);
}

fn user(message: &UserMessage, out: &mut String) {
    let blocks = blocks(&message.content, text_part, image);
    match blocks.as_str() {
        "" if out.ends_with(USER_END) => {}
        "" => push_blocks(NOTHING, USER_END, out),
        blocks => push_blocks(blocks, USER_END, out),
    }
}

fn tool_result(message: &ToolResultMessage, with_status: bool, out: &mut String) {
    let mut block = String::from("{\"toolResult\":{\"toolUseId\":");
    push_json(&mut block, &*call_ids::to_wire(message.tool_call_id.as_str()));
    block.push_str(",\"content\":[");
    let content = blocks(&message.content, text_part, image);
    block.push_str(if content.is_empty() { NOTHING } else { &content });
    block.push(']');
    if with_status {
        push_field(&mut block, "status", if message.is_error { "error" } else { "success" });
    }
    block.push_str("}}");
    push_blocks(&block, USER_END, out);
}

fn image(data: &str, mime_type: &str) -> String {
    let format = match mime_type {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        other => return text_part(&format!("(a picture of type {other}, which cannot be shown here)")),
    };
    json!({"image": {"format": format, "source": {"bytes": data}}}).to_string()
}

fn assistant(message: &AssistantMessage, with_reasoning: bool, out: &mut String) {
    let thinking = |text: &str, signature: &str| reasoning(text, signature).filter(|_| with_reasoning);
    let blocks = assistant_blocks(message, text_part, thinking, call_block);
    // The service refuses an empty message, as of an answer that broke off at once.
    if !blocks.is_empty() {
        push_blocks(&blocks, ASSISTANT_END, out);
    }
}

fn call_block(call: &ToolCall) -> String {
    let mut block = String::from("{\"toolUse\":{\"toolUseId\":");
    push_json(&mut block, &*call_ids::to_wire(call.id.as_str()));
    push_field(&mut block, "name", &*tool_names::to_wire(&call.name));
    block.push_str(",\"input\":");
    push_arguments(&mut block, &call.arguments);
    block.push_str("}}");
    block
}

/// Returns reasoning as it was received; `None` for reasoning that another protocol signed.
fn reasoning(thinking: &str, signature: &str) -> Option<String> {
    let content = match Signature::of(signature) {
        Signature::Anthropic(signature) => {
            json!({"reasoningText": {"text": thinking, "signature": signature}})
        }
        Signature::Redacted(data) => json!({"redactedContent": data}),
        _ => return None,
    };
    Some(json!({"reasoningContent": content}).to_string())
}
