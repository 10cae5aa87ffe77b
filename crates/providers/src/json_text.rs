//! Pieces of JSON text, put together by hand: messages are encoded once and then copied, so a body is
//! never built as one value.

use serde::Serialize;

/// Appends a value.
pub(crate) fn push_json<T: Serialize + ?Sized>(json: &mut String, value: &T) {
    // Text, numbers, lists and JSON values: none of them can fail.
    json.push_str(&serde_json::to_string(value).unwrap_or_default());
}

/// Appends with a comma unless nothing stands behind `start` yet.
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
