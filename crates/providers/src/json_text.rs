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
