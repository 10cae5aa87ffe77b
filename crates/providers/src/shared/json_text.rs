//! Writes requests as JSON text in parts: messages are encoded once and then copied, so a body is never built
//! as one value.

use archon_types::{Content, Json, ToolCall};
use serde::Serialize;

use crate::{
    media::{Shown, Takes},
    request::is_object_schema,
};

/// Appends a value as JSON text.
pub(crate) fn push_json<T: Serialize + ?Sized>(json: &mut String, value: &T) {
    // The values are texts, numbers, lists and JSON values, which cannot fail.
    json.push_str(&serde_json::to_string(value).unwrap_or_default());
}

/// Appends `text` to `json`, with a comma before it if `json` is longer than `start` bytes.
pub(crate) fn push_separated(json: &mut String, start: usize, text: &str) {
    if json.len() > start {
        json.push(',');
    }
    json.push_str(text);
}

/// Appends text as a string, or text and media as a list of parts. Other blocks are left out, because only models
/// think or call tools. `text` is the beginning of a text part; `media` writes the part of an image or a PDF that the
/// service takes.
pub(crate) fn push_content(
    json: &mut String,
    content: &[Content],
    takes: &Takes,
    text: &str,
    media: impl Fn(&mut String, Shown<'_>),
) {
    if content.iter().all(|block| block.as_text().is_some()) {
        return push_json(json, &Content::join_text(content));
    }
    json.push('[');
    let start = json.len();
    let push_text = |json: &mut String, words: &str| {
        push_separated(json, start, text);
        push_json(json, words);
        json.push('}');
    };
    for block in content {
        match (block, takes.shown(block)) {
            (Content::Text { text }, _) => push_text(json, text),
            (_, Some(Shown::Note(note))) => push_text(json, &note),
            (_, Some(shown)) => {
                push_separated(json, start, "");
                media(json, shown);
            }
            (_, None) => {}
        }
    }
    json.push(']');
}

/// Appends a field that is not the first of its object.
pub(crate) fn push_field<T: Serialize + ?Sized>(json: &mut String, name: &str, value: &T) {
    json.push_str(",\"");
    json.push_str(name);
    json.push_str("\":");
    push_json(json, value);
}

/// Appends the schema of a tool's parameters as an object's schema, for services that accept no other.
pub(crate) fn push_object_schema(json: &mut String, schema: &Json) {
    match schema {
        _ if is_object_schema(schema) => push_json(json, schema),
        Json::Object(schema) => {
            let mut schema = schema.clone();
            schema.insert("type".to_owned(), "object".into());
            push_json(json, &schema);
        }
        _ => json.push_str("{\"type\":\"object\"}"),
    }
}

/// Returns the arguments of a call as text. The arguments of a malformed call become `{}`, because the call was
/// never run and most servers parse this text.
pub(crate) fn arguments_text(call: &ToolCall) -> String {
    if call.malformed.is_some() { "{}".to_owned() } else { call.arguments.to_string() }
}
