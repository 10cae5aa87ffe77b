//! Writes JSON text in parts: messages are encoded once and then copied, so a body is never built as one
//! value.

use archon_types::Json;
use serde::Serialize;

/// Appends a value.
pub(crate) fn push_json<T: Serialize + ?Sized>(json: &mut String, value: &T) {
    // The values are texts, numbers, lists and JSON values, which cannot fail.
    json.push_str(&serde_json::to_string(value).unwrap_or_default());
}

/// Appends `text`, with a comma before it if there is already text after `start`.
pub(crate) fn push_separated(json: &mut String, start: usize, text: &str) {
    if json.len() > start {
        json.push(',');
    }
    json.push_str(text);
}

/// Appends a field that is not the first of its object.
pub(crate) fn push_field<T: Serialize + ?Sized>(json: &mut String, name: &str, value: &T) {
    json.push_str(",\"");
    json.push_str(name);
    json.push_str("\":");
    push_json(json, value);
}

/// Appends the schema of a tool's parameters, for services that accept only objects.
pub(crate) fn push_object_schema(json: &mut String, schema: &Json) {
    match schema {
        Json::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => {
            push_json(json, schema);
        }
        Json::Object(schema) => {
            let mut schema = schema.clone();
            schema.insert("type".to_owned(), "object".into());
            push_json(json, &schema);
        }
        _ => json.push_str("{\"type\":\"object\"}"),
    }
}

/// The text at the end of a user's message. No message contains a raw line break, so it is found without
/// parsing.
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

/// Puts a mark of the prompt cache into the second-to-last message after `start`, `before` bytes before the
/// end of its blocks: every later turn reads the text before it from the cache.
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
