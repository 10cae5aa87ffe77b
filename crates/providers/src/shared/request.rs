//! Facts about requests that the encoders of several protocols need.

use archon_types::{ApiErrorKind, Json, ProviderError, ThinkingLevel};
use serde_json::Map;

/// Spare capacity of a body in bytes, for the options, the tools, the instructions and the newest messages, whose
/// size is not known yet.
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

/// Returns the error for a request that the protocol or the service cannot express, and that must not be
/// changed silently.
pub(crate) fn invalid_request(message: &str) -> ProviderError {
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
