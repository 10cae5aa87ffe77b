//! A member's answer: text, or a JSON object with more fields.

use std::collections::BTreeMap;

use archon_types::Json;
use serde::{Deserialize, Serialize};

/// A member's answer.
///
/// An answer that is one JSON object with a `result` is read with all of these fields. Any other text
/// becomes the `result`, with the status of a success.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Response {
    /// Status of the task. Default success.
    #[serde(default)]
    pub status: ResponseStatus,
    /// Result of the task.
    pub result: Json,
    /// The member's confidence in the result, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The member's claims by key: values that the team compares with the claims of other members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, Json>,
}

/// Status of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResponseStatus {
    /// The task is done.
    #[default]
    Success,
    /// The task is partly done.
    Partial,
    /// The task has no useful result.
    Failed,
}

impl Response {
    /// Creates a successful response with this text as its result.
    pub fn text_only(text: impl Into<String>) -> Self {
        Self::of(Json::String(text.into()))
    }

    pub(crate) fn of(result: Json) -> Self {
        Self { result, ..Self::default() }
    }

    /// Reads an answer. Reading never fails: an answer that is not a JSON object with a `result` becomes a
    /// text result.
    pub fn read(answer: &str) -> Self {
        let inner = answer.trim();
        let inner = inner.strip_prefix("```json").and_then(|s| s.strip_suffix("```")).unwrap_or(inner);
        let read = serde_json::from_str::<Json>(inner).ok().filter(|json| json.get("result").is_some());
        let read = read.and_then(|json| serde_json::from_value::<Self>(json).ok());
        let mut response = read.unwrap_or_else(|| Self::text_only(answer.trim()));
        response.confidence = response.confidence.filter(|sure| sure.is_finite()).map(|c| c.clamp(0.0, 1.0));
        response
    }

    /// Returns the result as text.
    pub fn text(&self) -> String {
        text_of(&self.result)
    }
}

/// Returns whether a text may be a key: one short line that is not empty, because prompts contain keys.
pub(crate) fn is_key(key: &str) -> bool {
    !key.trim().is_empty() && key.chars().count() <= LONGEST_KEY && !key.contains(char::is_control)
}

/// Maximum length of the key of a fact or a shared entry, in characters.
pub(crate) const LONGEST_KEY: usize = 200;

/// Returns JSON as text; a string without its quotes.
pub(crate) fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
