//! What a member answers: text, or an object that says more.

use std::collections::BTreeMap;

use archon_types::Json;
use serde::{Deserialize, Serialize};

/// A member's answer, as the team understands it.
///
/// An answer that is one JSON object with a `result` is read with all of these fields; any other text is the
/// result itself, and a success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Response {
    /// How it went.
    #[serde(default)]
    pub status: ResponseStatus,
    /// What came of it.
    pub result: Json,
    /// How sure the member is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Facts that others may see differently, by what they are about.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, Json>,
}

/// How a task went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResponseStatus {
    /// As it should.
    #[default]
    Success,
    /// There is something, and something is missing.
    Partial,
    /// There is nothing of use.
    Failed,
}

impl Response {
    /// A success with this text.
    pub fn text_only(text: impl Into<String>) -> Self {
        Self {
            status: ResponseStatus::Success,
            result: Json::String(text.into()),
            confidence: None,
            claims: BTreeMap::new(),
        }
    }

    /// Reads an answer. Nothing is an error: what is no such object is text.
    pub fn read(answer: &str) -> Self {
        let inner = answer.trim();
        let inner = inner.strip_prefix("```json").and_then(|s| s.strip_suffix("```")).unwrap_or(inner);
        let read = serde_json::from_str::<Json>(inner).ok().filter(|json| json.get("result").is_some());
        let read = read.and_then(|json| serde_json::from_value::<Self>(json).ok());
        let mut response = read.unwrap_or_else(|| Self::text_only(answer.trim()));
        response.confidence = response.confidence.filter(|sure| sure.is_finite()).map(|c| c.clamp(0.0, 1.0));
        response
    }

    /// The result as text.
    pub fn text(&self) -> String {
        text_of(&self.result)
    }
}

/// Whether something can be named so: in a line, and not a long one. Names stand between other words where they are told.
pub(crate) fn is_key(key: &str) -> bool {
    !key.trim().is_empty() && key.chars().count() <= LONGEST_KEY && !key.contains(char::is_control)
}

/// Characters of what a fact or a shared entry may be named.
pub(crate) const LONGEST_KEY: usize = 200;

/// JSON as text: text without its quotes.
pub(crate) fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
