//! Encodes the body of a request. Messages and tools are encoded once, and the body of a turn extends the
//! body of the turn before: the cost of a turn depends only on the bytes that it adds.

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use archon_types::{
    AssistantMessage, Content, ContentHash, Json, Message, Request, ToolResultMessage, ToolSpec, UserMessage,
};

use super::head::{head, schema_instructions, thinks};
use crate::{
    json_text::{arguments_text, push_content, push_field, push_json},
    media::as_notes,
    profile::{Compat, ReasoningField, SystemRole, ToolCallIds},
    signature::Signature,
    tool_names as names,
};

// Names of the encodings; each stands for a fixed choice of all options that change the output.
const SYSTEM: &str = "openai-chat-system";
const DEVELOPER: &str = "openai-chat-developer";
const TOOLS: &str = "openai-chat-tools";

/// Returns the JSON text of a request.
pub(super) fn body(request: &Request, compat: &Compat) -> Arc<String> {
    let mut head = head(request, compat);
    if !request.tools.is_empty() {
        head.push_str(",\"tools\":");
        request.tools.with_encoded(TOOLS, |t| tools(t), |text| head.push_str(text));
    }
    head.push_str(",\"messages\":[");
    if let Some(system) = &request.system {
        let (format, role) = match compat.system_role {
            SystemRole::System => (SYSTEM, "system"),
            SystemRole::Developer => (DEVELOPER, "developer"),
        };
        system.with_encoded(format, |text| instructions(role, text), |text| head.push_str(text));
    }
    if let Some(schema) = schema_instructions(request, compat) {
        if !head.ends_with('[') {
            head.push(',');
        }
        head.push_str(&instructions("system", &schema));
    }
    let style = Style {
        reasoning: compat.reasoning_in_history,
        missing: compat.missing_reasoning.filter(|_| thinks(request, compat)),
        ids: compat.tool_call_ids,
    };
    request.messages.body(&style.name(), &head, "]}", |m, out| message(m, style, out))
}

/// The options by which services differ in the text of a message.
#[derive(Clone, Copy)]
struct Style {
    reasoning: ReasoningField,
    /// The placeholder for missing reasoning in a message.
    missing: Option<&'static str>,
    ids: ToolCallIds,
}

impl Style {
    /// Returns the name of the encoding of messages in this style, with every option that changes the text. A
    /// conversation keeps its encoded text as long as this name stays the same.
    fn name(self) -> Cow<'static, str> {
        let reasoning = match self.reasoning {
            ReasoningField::None => "",
            ReasoningField::ReasoningContent => "+reasoning_content",
            ReasoningField::Reasoning => "+reasoning",
            ReasoningField::ReasoningDetails => "+reasoning_details",
        };
        let ids = if self.ids == ToolCallIds::Any { "" } else { "+ids" };
        match (reasoning, ids, self.missing) {
            ("", "", None) => Cow::Borrowed("openai-chat"),
            (_, _, None) => Cow::Owned(format!("openai-chat{reasoning}{ids}")),
            (_, _, Some(missing)) => Cow::Owned(format!("openai-chat{reasoning}{ids}+missing:{missing}")),
        }
    }

    /// Returns a tool-call id that the service accepts.
    fn id(self, id: &str) -> Cow<'_, str> {
        const LENGTH: usize = 9;
        const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let fits = id.len() == LENGTH && id.bytes().all(|b| b.is_ascii_alphanumeric());
        if self.ids == ToolCallIds::Any || fits {
            return Cow::Borrowed(id);
        }
        let mut rest = ContentHash::of(id);
        let mut letter = || {
            let letter = LETTERS[(rest % 62) as usize];
            rest /= 62;
            char::from(letter)
        };
        Cow::Owned((0..LENGTH).map(|_| letter()).collect())
    }
}

fn tools(tools: &[ToolSpec]) -> String {
    let list = names::tool_list(tools, "{\"type\":\"function\",\"function\":{\"name\":", |tool, text| {
        push_field(text, "description", &tool.description);
        push_field(text, "parameters", &tool.parameters);
        text.push_str("}}");
    });
    format!("[{list}]")
}

fn instructions(role: &str, text: &str) -> String {
    let mut json = format!("{{\"role\":\"{role}\",\"content\":");
    push_json(&mut json, text);
    json.push('}');
    json
}

/// Appends the text of a message; appends nothing for a message that is not sent.
fn message(message: &Message, style: Style, json: &mut String) {
    match message {
        Message::User(m) => user(m, json),
        Message::Assistant(m) => assistant(m, style, json),
        Message::ToolResult(m) => tool_result(m, style, json),
    }
}

fn user(message: &UserMessage, json: &mut String) {
    json.push_str("{\"role\":\"user\",\"content\":");
    let image = ("{\"type\":\"image_url\",\"image_url\":{\"url\":", "}}");
    push_content(json, &message.content, "{\"type\":\"text\",\"text\":", image);
    json.push('}');
}

fn assistant(message: &AssistantMessage, style: Style, json: &mut String) {
    let text = message.text();
    let says = !text.is_empty() || message.tool_calls().next().is_some();
    let start = json.len();
    json.push_str("{\"role\":\"assistant\",\"content\":");
    // An empty text and not null: chat templates of local servers insert it as it is.
    push_json(json, &text);
    let before = json.len();
    push_reasoning(json, &message.content, style.reasoning);
    if json.len() == before {
        if !says {
            // An answer that broke off at once is not sent, since some services refuse it.
            json.truncate(start);
            return;
        }
        if let (Some(name), Some(missing)) = (text_field(style.reasoning), style.missing) {
            push_field(json, name, missing);
        }
    }
    let mut separator = ",\"tool_calls\":[";
    for call in message.tool_calls() {
        json.push_str(separator);
        separator = ",";
        json.push_str("{\"id\":");
        push_json(json, &*style.id(call.id.as_str()));
        json.push_str(",\"type\":\"function\",\"function\":{\"name\":");
        push_json(json, &*names::to_wire(&call.name));
        push_field(json, "arguments", &arguments_text(call));
        json.push_str("}}");
    }
    if separator == "," {
        json.push(']');
    }
    json.push('}');
}

/// Returns the name of the field for reasoning as text.
fn text_field(field: ReasoningField) -> Option<&'static str> {
    match field {
        ReasoningField::None => None,
        ReasoningField::ReasoningContent => Some("reasoning_content"),
        ReasoningField::Reasoning | ReasoningField::ReasoningDetails => Some("reasoning"),
    }
}

/// Appends the model's reasoning in the field that the service expects.
fn push_reasoning(json: &mut String, content: &[Content], field: ReasoningField) {
    let Some(name) = text_field(field) else { return };
    // The list comes from this module, or from a log that somebody else wrote, so its type is checked.
    if field == ReasoningField::ReasoningDetails
        && let Some(details) = content.iter().find_map(details)
    {
        return push_field(json, "reasoning_details", &details);
    }
    let thinking = |block: &Content| match block {
        Content::Thinking { thinking, .. } if !thinking.is_empty() => Some(thinking.clone()),
        _ => None,
    };
    let reasoning: Vec<String> = content.iter().filter_map(thinking).collect();
    if !reasoning.is_empty() {
        push_field(json, name, &reasoning.join("\n"));
    }
}

fn details(block: &Content) -> Option<Json> {
    match block {
        Content::Thinking { signature: Some(signature), .. } => match Signature::of(signature) {
            Signature::Details(details) => serde_json::from_str(details).ok().filter(Json::is_array),
            _ => None,
        },
        _ => None,
    }
}

fn tool_result(message: &ToolResultMessage, style: Style, json: &mut String) {
    let content = as_notes(&message.content);
    let mut text = Content::join_text(&content);
    let images = message.content.iter().filter(|block| matches!(block, Content::Image { .. })).count();
    if images > 0 {
        // In this protocol a result can have only text.
        let separator = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text.to_mut(), "{separator}({images} image(s) that cannot be shown here)");
    }
    json.push_str("{\"role\":\"tool\",\"tool_call_id\":");
    push_json(json, &*style.id(message.tool_call_id.as_str()));
    push_field(json, "content", &text);
    json.push('}');
}
