//! The blocks of a message: text, media, thinking and tool calls.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Json, values::ToolCallId};

use super::media::{Media, MediaView};

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
    /// A picture, a PDF file or other data, with its name and its hash.
    Media(Media),
    /// An image whose data is a part of the log. New code uses [`Media`](Self::Media).
    Image {
        /// The bytes of the image in base64.
        data: String,
        /// The media type, for instance `image/png`.
        mime_type: String,
    },
    /// The model's thinking.
    Thinking {
        /// The text of the thinking; empty if the provider redacted it.
        thinking: String,
        /// A token that the provider requires back unchanged with the thinking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A tool call, shared to avoid copies.
    ToolCall(Arc<ToolCall>),
}

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text of a text block; `None` for another block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }

    /// Returns the call of a tool call block; `None` for another block.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the picture, PDF file or other data in a block; `None` for a block of another type.
    pub fn as_media(&self) -> Option<MediaView<'_>> {
        match self {
            Self::Media(media) => {
                Some(MediaView { mime_type: media.mime_type(), base64: media.base64(), media: Some(media) })
            }
            Self::Image { data, mime_type } => Some(MediaView { mime_type, base64: Some(data), media: None }),
            _ => None,
        }
    }

    /// Joins all text blocks, separated by newlines.
    pub fn join_text(blocks: &[Self]) -> Cow<'_, str> {
        match blocks {
            [Self::Text { text }] => Cow::Borrowed(text),
            _ => blocks.iter().filter_map(Self::as_text).collect::<Vec<_>>().join("\n").into(),
        }
    }
}

crate::values::from_text!(Content = Content::text);

impl From<Media> for Content {
    fn from(media: Media) -> Self {
        Self::Media(media)
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

/// The name of the tool with which a model searches for deferred tools. Requests do not define deferred
/// tools, so that a thousand tools cost no more tokens than a few.
pub const TOOL_SEARCH: &str = "tool_search";

/// The name of the tool with which a model calls a deferred tool. Its arguments are the name and the
/// arguments of the deferred tool.
pub const CALL_TOOL: &str = "call_tool";

/// A tool call: a model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The model's id for the call, which is unique at most within one answer.
    pub id: ToolCallId,
    /// The name of the tool as the model wrote it; there may be no such tool.
    pub name: String,
    /// The arguments as the model sent them, with their order of keys; an empty object if `malformed` is set.
    #[serde(default = "empty_object")]
    pub arguments: Json,
    /// Set for a call that is never executed, because its arguments are not JSON or for another reason;
    /// `None` for any other call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<MalformedArguments>,
}

impl ToolCall {
    /// Creates a call with well-formed arguments.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, arguments: Json) -> Self {
        Self { id: id.into(), name: name.into(), arguments, malformed: None }
    }

    /// Creates a call from its arguments as JSON text, which services stream.
    ///
    /// Empty text and `null` mean no arguments, `{}`. Text that is not JSON is stored in
    /// [`malformed`](Self::malformed) without any repair.
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

    /// Resolves a call of [`CALL_TOOL`]: returns the call of the deferred tool that the model wants. The
    /// tool's name is in the argument `name`, its arguments are in `arguments`, as an object or as JSON text
    /// (default: none). If there are further arguments beside these two, the returned call is malformed, so
    /// that the tool is not executed without them.
    ///
    /// Returns `None` for a call of any other tool, for a malformed call, and if the argument `name` is
    /// missing or not a text.
    pub fn resolve_call_tool(&self) -> Option<Self> {
        if self.name != CALL_TOOL || self.malformed.is_some() {
            return None;
        }
        let name = self.arguments.get("name")?.as_str()?;
        let mut call = Self::new(self.id.clone(), name, empty_object());
        match self.arguments.get("arguments") {
            None | Some(Json::Null) => {}
            Some(Json::String(text)) => call = Self::from_json_text(self.id.clone(), name, text),
            Some(arguments) => call.arguments = arguments.clone(),
        }
        let is_known = |key: &String| ["name", "arguments"].contains(&key.as_str());
        if !self.arguments.as_object().is_some_and(|all| all.keys().all(is_known)) {
            call.refuse("put all arguments of the tool into the object `arguments`");
        }
        Some(call)
    }

    /// Returns the call to show to people: the result of [`resolve_call_tool`](Self::resolve_call_tool), or a
    /// clone of this call if that is `None`.
    pub fn target(&self) -> Self {
        self.resolve_call_tool().unwrap_or_else(|| self.clone())
    }

    /// Marks the call as malformed, so that it is never executed. The model reads `reason`, with an earlier
    /// error appended. The arguments are kept as text.
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

/// The arguments of a call that must not run, for instance because they are not JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MalformedArguments {
    /// The arguments as text.
    pub text: String,
    /// The parse error with line and column, or the reason why the call does not run.
    pub error: String,
}

fn empty_object() -> Json {
    Json::Object(serde_json::Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resolve_call_tool_gives_the_named_tool_its_arguments() {
        let by_name = |arguments: Json| ToolCall::new("a", CALL_TOOL, arguments).resolve_call_tool();
        let named = |arguments: Json| Some(ToolCall::new("a", "t", arguments));
        assert_eq!(by_name(json!({ "name": "t", "arguments": { "x": 1 } })), named(json!({ "x": 1 })));
        assert_eq!(by_name(json!({ "name": "t", "arguments": "{\"x\": 1}" })), named(json!({ "x": 1 })));
        for none in [json!({ "name": "t" }), json!({ "name": "t", "arguments": null })] {
            assert_eq!(by_name(none), named(json!({})));
        }
        // The arguments are at another place: the tool must not be executed without them.
        for lost in [json!({ "name": "t", "args": { "x": 1 } }), json!({ "name": "t", "x": 1 })] {
            assert!(by_name(lost).unwrap().malformed.is_some());
        }
        assert_eq!(by_name(json!({ "arguments": {} })), None);
        assert_eq!(ToolCall::new("a", "t", json!({ "name": "u" })).resolve_call_tool(), None);
    }
}
