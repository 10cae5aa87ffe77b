//! What a message is made of: text, images, thinking and tool calls.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Json, ToolCallId};

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// The bytes in base64.
        data: String,
        /// For instance `image/png`.
        mime_type: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The reasoning text; empty when the provider redacted it.
        thinking: String,
        /// What the provider wants back with the text, unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A request to run a tool; shared by the conversation and what works on the call.
    ToolCall(Arc<ToolCall>),
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }

    /// The call of a tool-call block.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// All text blocks joined by newlines.
    pub fn join_text(blocks: &[Self]) -> Cow<'_, str> {
        match blocks {
            [Self::Text { text }] => Cow::Borrowed(text),
            _ => blocks.iter().filter_map(Self::as_text).collect::<Vec<_>>().join("\n").into(),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ToolCall> for Content {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(Arc::new(call))
    }
}

impl From<Arc<ToolCall>> for Content {
    fn from(call: Arc<ToolCall>) -> Self {
        Self::ToolCall(call)
    }
}

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// As the model named the call; unique within one response at best.
    pub id: ToolCallId,
    /// As the model named the tool, known or not.
    pub name: String,
    /// What the model sent, key order kept; an empty object when `malformed` is set.
    #[serde(default = "empty_object")]
    pub arguments: Json,
    /// Set when the model's arguments were not JSON, or the call is not to run for another reason. Such a call is never
    /// executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<MalformedArguments>,
}

impl ToolCall {
    /// A call with well-formed arguments.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, arguments: Json) -> Self {
        Self { id: id.into(), name: name.into(), arguments, malformed: None }
    }

    /// A call from the argument text of a stream.
    ///
    /// Empty text and `null` mean no arguments, `{}`. Text that is not JSON is kept as
    /// [`malformed`](Self::malformed); nothing is repaired or invented.
    pub fn from_json_text(id: impl Into<ToolCallId>, name: impl Into<String>, text: &str) -> Self {
        let mut call = Self::new(id, name, empty_object());
        if !text.trim().is_empty() {
            match serde_json::from_str(text) {
                Ok(Json::Null) => {}
                Ok(arguments) => call.arguments = arguments,
                Err(e) => {
                    call.malformed = Some(MalformedArguments { text: text.to_owned(), error: e.to_string() });
                }
            }
        }
        call
    }

    /// Marks the call as one that is never run, with the reason in words that the model reads. What it has as arguments
    /// is kept as text, and what was wrong with them behind the reason.
    pub fn refuse(&mut self, reason: impl Into<String>) {
        let mut error = reason.into();
        let text = match self.malformed.take() {
            Some(malformed) => {
                error = match malformed.error.starts_with(&error) {
                    true => malformed.error,
                    false => format!("{error}: {}", malformed.error),
                };
                malformed.text
            }
            None if self.arguments == empty_object() => String::new(),
            None => std::mem::replace(&mut self.arguments, empty_object()).to_string(),
        };
        self.malformed = Some(MalformedArguments { text, error });
    }
}

/// Arguments that a model sent and that no tool is called with: cut off, or never meant as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MalformedArguments {
    /// What the model sent.
    pub text: String,
    /// Why it is not JSON, with line and column, or why the call is not run.
    pub error: String,
}

fn empty_object() -> Json {
    Json::Object(serde_json::Map::new())
}
