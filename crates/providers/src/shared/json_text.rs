//! Writes requests as JSON text in parts: messages are encoded once and then copied, so a body is never built
//! as one value.

use archon_types::{ApiErrorKind, Content, Json, ProviderError, ThinkingLevel, ToolCall};
use serde::Serialize;
use serde_json::Map;

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

/// Appends text as a string, or text and images as a list of parts. Other blocks are left out, because only
/// models think or call tools. `text` is the beginning of a text part; `image` is the beginning and the end of
/// an image part.
pub(crate) fn push_content(json: &mut String, content: &[Content], text: &str, image: (&str, &str)) {
    if content.iter().all(|block| block.as_text().is_some()) {
        return push_json(json, &Content::join_text(content));
    }
    json.push('[');
    let start = json.len();
    for block in content {
        match block {
            Content::Text { text: said } => {
                push_separated(json, start, text);
                push_json(json, said);
                json.push('}');
            }
            Content::Image { data, mime_type } => {
                push_separated(json, start, image.0);
                push_json(json, &format!("data:{mime_type};base64,{data}"));
                json.push_str(image.1);
            }
            _ => {}
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

/// Appends the schema of a tool's parameters, for services that accept only objects.
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

/// Spare capacity in bytes for the options, the tools, the instructions and the newest messages, whose size is
/// not known yet.
pub(crate) const HEADROOM: usize = 4_096;

/// Returns the effort for a level of thinking, in words that all services accept; `None` for `Off`.
pub(crate) fn effort(level: ThinkingLevel) -> Option<&'static str> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal | ThinkingLevel::Low => Some("low"),
        ThinkingLevel::Medium => Some("medium"),
        ThinkingLevel::High => Some("high"),
    }
}

/// Returns the arguments of a call as text. A malformed call was never run, and most servers parse this text,
/// so it gets empty arguments.
pub(crate) fn arguments_text(call: &ToolCall) -> String {
    if call.malformed.is_some() { "{}".to_owned() } else { call.arguments.to_string() }
}

/// Returns the error for a request that the protocol or the service cannot express, and that must not be
/// changed silently.
pub(crate) fn refused(message: &str) -> ProviderError {
    ProviderError::Api { status: 0, kind: ApiErrorKind::InvalidRequest, message: message.to_owned() }
}

/// Returns true if the schema is that of an object.
pub(crate) fn is_object_schema(schema: &Json) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// Returns true if the type of the schema is `kind`, or a list with `kind`.
pub(crate) fn is_of_type(schema: &Map<String, Json>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(|k| k == kind),
        named => named.is_some_and(|k| k == kind),
    }
}
