//! Encodes the conversation for Bedrock: roles alternate, and results come right after their calls.

use std::sync::Arc;

use archon_types::{AssistantMessage, Message, ToolCall, ToolResultMessage, Transcript};
use serde_json::json;

use crate::{
    call_ids,
    json_text::{push_field, push_json},
    media::{COMMON_IMAGES, Shown, Takes},
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

/// The media that messages and results can have:
/// <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ImageBlock.html>,
/// <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html>.
pub(super) const TAKES: Takes = Takes { images: COMMON_IMAGES, pdfs: true };
/// The maximum number of documents of a request; the service refuses more.
const MOST_DOCUMENTS: usize = 5;
/// The text at the beginning of a block with a document.
const DOCUMENT: &str = "{\"document\":{\"format\":\"pdf\"";

/// The optional parts of messages that a model accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// The status of tool results.
    pub(super) status: bool,
    /// The model's reasoning.
    pub(super) reasoning: bool,
    /// Citations of documents. Without them, Anthropic's models see the text of a PDF file and not its pages:
    /// <https://platform.claude.com/docs/en/build-with-claude/pdf-support>.
    pub(super) citations: bool,
    /// The media that messages and results can have.
    pub(super) takes: Takes,
}

impl Form {
    /// Returns the name of the encoding of messages in this form. A conversation keeps its encoded text as long as
    /// this name stays the same.
    fn name(self) -> String {
        format!("bedrock-messages {self:?}")
    }

    /// Returns the media that this message can have.
    fn takes_in(self, message: &Message) -> Takes {
        match message {
            Message::User(_) => self.takes,
            // A failed result with anything but text is refused, at least for Anthropic's models.
            Message::ToolResult(result) if !result.is_error => self.takes,
            _ => Takes::NONE,
        }
    }

    /// Returns the number of documents of a message.
    fn documents(self, message: &Message) -> usize {
        let takes = self.takes_in(message);
        let shown = message.content().iter().filter_map(|block| takes.shown(block));
        shown.filter(|shown| matches!(shown, Shown::Pdf { .. })).count()
    }

    /// Returns text and media as blocks. `before` documents stand in earlier messages: each name of a document must be
    /// unique within a request. The first `left_out` documents of the request become texts.
    fn blocks(self, message: &Message, before: usize, left_out: usize) -> String {
        let mut number = before;
        blocks(message.content(), &self.takes_in(message), text_part, |shown| match shown {
            Shown::Image { mime_type, data } => image(mime_type, data),
            Shown::Pdf { name, data } => {
                number += 1;
                if number <= left_out {
                    let name = name.unwrap_or("a PDF file");
                    return text_part(&format!(
                        "[{name}: left out, as a request can have {MOST_DOCUMENTS} documents]"
                    ));
                }
                self.document(number, name, data)
            }
            Shown::Note(note) => text_part(&note),
        })
    }

    /// Returns the blocks of a document: a text, without which the service refuses a document, and the document. The
    /// name of the file stands in the text, because names of documents can have few characters.
    fn document(self, number: usize, name: Option<&str>, data: &str) -> String {
        let mut block = text_part(&format!("document {number}: {}", name.unwrap_or("a PDF file")));
        block.push(',');
        block.push_str(DOCUMENT);
        push_field(&mut block, "name", &format!("document {number}"));
        block.push_str(",\"source\":{\"bytes\":");
        push_json(&mut block, data);
        block.push('}');
        if self.citations {
            block.push_str(",\"citations\":{\"enabled\":true}");
        }
        block + "}}"
    }
}

/// Appends all messages, separated by commas. Each message is encoded once and then copied. If there are more documents
/// than a request can have, the newest ones stay; each further document then makes all messages be encoded again.
pub(super) fn push(body: &mut String, conversation: &Transcript, form: Form, cached: bool) {
    let start = body.len();
    let documents = |messages: &[Arc<Message>]| messages.iter().map(|m| form.documents(m)).sum::<usize>();
    let left_out = documents(conversation).saturating_sub(MOST_DOCUMENTS);
    let blocks = |message: &Message| {
        let place = conversation.iter().position(|other| std::ptr::eq(&**other, message));
        let before = place.filter(|_| form.documents(message) > 0).unwrap_or_default();
        form.blocks(message, documents(&conversation[..before]), left_out)
    };
    let name = format!("{} {left_out}", form.name());
    conversation.encode_into(&name, body, |message, out| match message {
        Message::User(_) => user(&blocks(message), out),
        Message::Assistant(m) => assistant(m, form.reasoning, out),
        Message::ToolResult(m) => tool_result(m, &blocks(message), form, out),
    });
    if cached {
        mark_second_to_last(body, start, CACHE_POINT, 0);
    }
    end_messages(body, start);
}

fn push_blocks(blocks: &str, role_end: &str, out: &mut String) {
    push_turn(out, "{\"content\":[", blocks, role_end);
}

fn user(blocks: &str, out: &mut String) {
    match blocks {
        "" if out.ends_with(USER_END) => {}
        "" => push_blocks(NOTHING, USER_END, out),
        blocks => push_blocks(blocks, USER_END, out),
    }
}

fn tool_result(message: &ToolResultMessage, content: &str, form: Form, out: &mut String) {
    let mut block = String::from("{\"toolResult\":{\"toolUseId\":");
    push_json(&mut block, &*call_ids::to_wire(message.tool_call_id.as_str()));
    block.push_str(",\"content\":[");
    block.push_str(if content.is_empty() { NOTHING } else { content });
    block.push(']');
    if form.status {
        push_field(&mut block, "status", if message.is_error { "error" } else { "success" });
    }
    block.push_str("}}");
    push_blocks(&block, USER_END, out);
}

fn image(mime_type: &str, data: &str) -> String {
    let mut block = String::from("{\"image\":{\"format\":");
    push_json(&mut block, mime_type.trim_start_matches("image/"));
    block.push_str(",\"source\":{\"bytes\":");
    push_json(&mut block, data);
    block + "}}}"
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
