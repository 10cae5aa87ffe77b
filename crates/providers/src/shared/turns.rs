//! Writes messages as lists of blocks, for the protocols with such messages: Anthropic's, Gemini's and
//! Bedrock's. Each message is one line, so that its place is found without parsing.

use archon_types::{AssistantMessage, Content, Json, Request, ToolCall};

use crate::{
    json_text::{push_json, push_separated},
    media::{Shown, Takes},
};

/// The description of the tool that carries the structured output.
pub(crate) const FORMAT_TOOL: &str = "Gives the final answer. Its arguments are the answer.";

/// The text at the end of a user's message. No message contains a raw line break, so its end is found
/// without parsing.
pub(crate) const USER_END: &str = "],\"role\":\"user\"},\n";
/// The text at the end of a message of the model.
pub(crate) const ASSISTANT_END: &str = "],\"role\":\"assistant\"},\n";

/// Adds parts to the message of a role, which begins with `begin` and ends with `role_end`. Consecutive
/// messages of one role become one: services require all results of a turn together.
pub(crate) fn push_turn(json: &mut String, begin: &str, parts: &str, role_end: &str) {
    if json.ends_with(role_end) {
        json.truncate(json.len() - role_end.len());
        json.push(',');
    } else {
        json.push_str(begin);
    }
    json.push_str(parts);
    json.push_str(role_end);
}

/// Inserts a mark of the prompt cache into the second-to-last message of the list that begins at `start`. The place
/// of the mark is `before` bytes before the end of the message's blocks. Every later turn then reads the text before
/// the mark from the cache.
pub(crate) fn mark_second_to_last(json: &mut String, start: usize, mark: &str, before: usize) {
    let messages = &json[start..];
    let Some(end) = messages.len().checked_sub(1).and_then(|last| messages[..last].rfind('\n')) else {
        return;
    };
    let message = &messages[..=end];
    let role_end = if message.ends_with(USER_END) { USER_END } else { ASSISTANT_END };
    if message.ends_with(role_end) {
        json.insert_str(start + message.len() - role_end.len() - before, mark);
    }
}

/// Removes the comma and the line break after the last message of a list that begins at `start`.
pub(crate) fn end_messages(json: &mut String, start: usize) {
    if json.len() > start {
        json.truncate(json.len() - 2);
    }
}

/// The field of a request with the instructions.
pub(crate) struct SystemField {
    /// The name of the encoding that `block` makes. The instructions keep their encoded text under this name.
    pub(crate) encoding: &'static str,
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
    /// Writes a text as a block.
    pub(crate) block: fn(&str) -> String,
}

impl SystemField {
    /// Appends the instructions of the request, and the instruction to answer with the tool `format_tool`.
    /// `mark` is the mark of the prompt cache with its place: the number of bytes before the end of the block.
    pub(crate) fn push(
        &self,
        json: &mut String,
        request: &Request,
        format_tool: Option<&str>,
        mark: Option<(&str, usize)>,
    ) {
        let start = json.len();
        if let Some(system) = request.system.as_ref().filter(|system| !system.trim().is_empty()) {
            json.push_str(self.begin);
            system.with_encoded(self.encoding, |text| (self.block)(text), |text| json.push_str(text));
            if let Some((mark, before)) = mark {
                json.insert_str(json.len() - before, mark);
            }
        }
        if let Some(name) = format_tool {
            json.push_str(if json.len() > start { "," } else { self.begin });
            json.push_str(&(self.block)(&format!(
                "Give your final answer only by calling the tool `{name}`."
            )));
        }
        if json.len() > start {
            json.push_str(self.end);
        }
    }
}

/// Returns a text as a block without a type.
pub(crate) fn text_part(text: &str) -> String {
    let mut part = String::from("{\"text\":");
    push_json(&mut part, text);
    part.push('}');
    part
}

/// Appends the arguments of a call. Services accept only objects; other arguments become `{}`, because a call with
/// such arguments was never run.
pub(crate) fn push_arguments(json: &mut String, arguments: &Json) {
    match arguments {
        Json::Object(arguments) => push_json(json, arguments),
        _ => json.push_str("{}"),
    }
}

/// Returns text and media as blocks; blank text is left out, since services refuse it. `media` returns the block of
/// media, or of the note in their place.
pub(crate) fn blocks(
    content: &[Content],
    takes: &Takes,
    text_block: fn(&str) -> String,
    mut media: impl FnMut(Shown<'_>) -> String,
) -> String {
    let mut json = String::new();
    for block in content {
        match (block, takes.shown(block)) {
            (Content::Text { text }, _) if !text.trim().is_empty() => {
                push_separated(&mut json, 0, &text_block(text));
            }
            (_, Some(shown)) => push_separated(&mut json, 0, &media(shown)),
            _ => {}
        }
    }
    json
}

/// Returns the blocks of a model's message; empty if the message has no content to send. `thinking` returns
/// `None` for thinking that is not sent.
pub(crate) fn assistant_blocks(
    message: &AssistantMessage,
    text_block: fn(&str) -> String,
    thinking: impl Fn(&str, &str) -> Option<String>,
    call: fn(&ToolCall) -> String,
) -> String {
    let mut blocks = String::new();
    // Services refuse thinking at the end of a message.
    let end = message.content.iter().rposition(is_not_blank).map_or(0, |last| last + 1);
    for block in &message.content[..end] {
        let block = match block {
            Content::Text { text } if !text.trim().is_empty() => Some(text_block(text)),
            Content::Thinking { thinking: text, signature: Some(signature) } => thinking(text, signature),
            Content::ToolCall(tool_call) => Some(call(tool_call)),
            _ => None,
        };
        block.iter().for_each(|block| push_separated(&mut blocks, 0, block));
    }
    blocks
}

/// Returns true for a call, and for text that is not blank.
pub(crate) fn is_not_blank(block: &Content) -> bool {
    match block {
        Content::Text { text } => !text.trim().is_empty(),
        other => matches!(other, Content::ToolCall(_)),
    }
}
