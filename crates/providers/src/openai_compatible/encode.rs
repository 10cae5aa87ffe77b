//! The body of a request. Messages and tools are encoded once and then copied, so a turn costs no
//! more than the bytes that have to be sent.

use std::fmt::Write as _;

use archon_types::{
    AssistantMessage, Content, Message, Request, RequestOptions, ThinkingLevel, ToolChoice,
    ToolResultMessage, ToolSpec, UserMessage,
};

use super::profile::{Compat, MaxTokensField, SystemRole};
use crate::{
    json_text::{push_field, push_json},
    tool_names as names,
};

// Names of the encodings; each fixes every option that changes its output.
const MESSAGE: &str = "openai-chat";
const MESSAGE_WITH_REASONING: &str = "openai-chat+reasoning";
const SYSTEM: &str = "openai-chat-system";
const DEVELOPER: &str = "openai-chat-developer";
const TOOLS: &str = "openai-chat-tools";

/// The JSON text of a request.
pub(super) fn body(request: &Request, compat: &Compat) -> Vec<u8> {
    let mut body = head(request, compat);
    body.reserve(request.messages.encoded_len() + HEADROOM);
    if !request.tools.is_empty() {
        body.push_str(",\"tools\":");
        request.tools.with_encoded(TOOLS, |t| tools(t), |text| body.push_str(text));
    }
    body.push_str(",\"messages\":[");
    let before = body.len();
    if let Some(system) = &request.system {
        let (format, role) = match compat.system_role {
            SystemRole::System => (SYSTEM, "system"),
            SystemRole::Developer => (DEVELOPER, "developer"),
        };
        system.with_encoded(format, |text| instructions(role, text), |text| body.push_str(text));
        body.push(',');
    }
    let with_reasoning = compat.reasoning_in_history;
    let format = if with_reasoning { MESSAGE_WITH_REASONING } else { MESSAGE };
    request.messages.encode_into(format, &mut body, |m, out| {
        out.push_str(&message(m, with_reasoning));
        out.push(',');
    });
    // Every part ends with a comma, so that the text of the messages can be copied in one piece.
    if body.len() > before {
        body.pop();
    }
    body.push_str("]}");
    body.into_bytes()
}

/// Room for the tools, the instructions and the newest messages, whose size is not known yet.
const HEADROOM: usize = 4096;

/// The fields before tools and messages, without the closing brace.
fn head(request: &Request, compat: &Compat) -> String {
    let mut head = String::with_capacity(160);
    head.push_str("{\"model\":");
    push_json(&mut head, &request.model);
    head.push_str(",\"stream\":true");
    if compat.usage_in_stream {
        head.push_str(",\"stream_options\":{\"include_usage\":true}");
    }
    if *request.options != RequestOptions::default() {
        options(&mut head, request, compat);
    }
    head
}

fn options(head: &mut String, request: &Request, compat: &Compat) {
    let options = &*request.options;
    if let Some(limit) = options.max_tokens {
        let field = match compat.max_tokens_field {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        };
        push_field(head, field, &limit);
    }
    if let Some(temperature) = options.temperature {
        push_field(head, "temperature", &temperature);
    }
    if let Some(seed) = options.seed.filter(|_| compat.seed) {
        push_field(head, "seed", &seed);
    }
    if !options.stop.is_empty() {
        push_field(head, "stop", &options.stop);
    }
    if let Some(effort) = effort(options.thinking).filter(|_| compat.reasoning_effort) {
        push_field(head, "reasoning_effort", effort);
    }
    // A choice among no tools is refused by services.
    if !request.tools.is_empty() {
        match &options.tool_choice {
            ToolChoice::None => push_field(head, "tool_choice", "none"),
            ToolChoice::Required => push_field(head, "tool_choice", "required"),
            ToolChoice::Tool(name) => {
                let place = request.tools.iter().position(|tool| tool.name == *name);
                let known = place.map(|place| names::wire_names(&request.tools).swap_remove(place));
                head.push_str(",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":");
                push_json(head, &*known.unwrap_or_else(|| names::to_wire(name)));
                head.push_str("}}");
            }
            // The default of every service.
            _ => {}
        }
    }
    if let Some(format) = &options.response_format {
        head.push_str(",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":");
        push_json(head, &format.name);
        head.push_str(",\"strict\":true");
        push_field(head, "schema", &format.schema);
        head.push_str("}}");
    }
}

/// What services know; a glance is little, and nothing is their default.
fn effort(level: ThinkingLevel) -> Option<&'static str> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal | ThinkingLevel::Low => Some("low"),
        ThinkingLevel::Medium => Some("medium"),
        ThinkingLevel::High => Some("high"),
    }
}

fn tools(tools: &[ToolSpec]) -> String {
    let mut text = String::from("[");
    for (tool, name) in tools.iter().zip(names::wire_names(tools)) {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str("{\"type\":\"function\",\"function\":{\"name\":");
        push_json(&mut text, &*name);
        push_field(&mut text, "description", &tool.description);
        push_field(&mut text, "parameters", &tool.parameters);
        text.push_str("}}");
    }
    text.push(']');
    text
}

fn instructions(role: &str, text: &str) -> String {
    let mut json = format!("{{\"role\":\"{role}\",\"content\":");
    push_json(&mut json, text);
    json.push('}');
    json
}

fn message(message: &Message, with_reasoning: bool) -> String {
    match message {
        Message::User(m) => user(m),
        Message::Assistant(m) => assistant(m, with_reasoning),
        Message::ToolResult(m) => tool_result(m),
    }
}

fn user(message: &UserMessage) -> String {
    let mut json = String::from("{\"role\":\"user\",\"content\":");
    if message.content.iter().all(|block| block.as_text().is_some()) {
        push_json(&mut json, &Content::join_text(&message.content));
    } else {
        push_parts(&mut json, &message.content);
    }
    json.push('}');
    json
}

fn push_parts(json: &mut String, content: &[Content]) {
    json.push('[');
    let mut first = true;
    for block in content {
        let start = json.len();
        if !first {
            json.push(',');
        }
        match block {
            Content::Text { text } => {
                json.push_str("{\"type\":\"text\"");
                push_field(json, "text", text);
                json.push('}');
            }
            Content::Image { data, mime_type } => {
                json.push_str("{\"type\":\"image_url\",\"image_url\":{\"url\":");
                push_json(json, &format!("data:{mime_type};base64,{data}"));
                json.push_str("}}");
            }
            // Nobody but a model thinks or calls.
            _ => {
                json.truncate(start);
                continue;
            }
        }
        first = false;
    }
    json.push(']');
}

fn assistant(message: &AssistantMessage, with_reasoning: bool) -> String {
    let mut json = String::from("{\"role\":\"assistant\",\"content\":");
    // An empty text and not null: chat templates of local servers paste it as it is.
    push_json(&mut json, &message.text());
    if with_reasoning {
        let thinking = |block: &Content| match block {
            Content::Thinking { thinking, .. } => Some(thinking.clone()),
            _ => None,
        };
        let reasoning: Vec<String> = message.content.iter().filter_map(thinking).collect();
        if !reasoning.is_empty() {
            push_field(&mut json, "reasoning_content", &reasoning.join("\n"));
        }
    }
    let mut separator = ",\"tool_calls\":[";
    for call in message.tool_calls() {
        json.push_str(separator);
        separator = ",";
        json.push_str("{\"id\":");
        push_json(&mut json, call.id.as_str());
        json.push_str(",\"type\":\"function\",\"function\":{\"name\":");
        push_json(&mut json, &*names::to_wire(&call.name));
        // What was malformed was never run, and most servers parse this text: they get no arguments.
        let arguments = if call.malformed.is_some() { "{}".to_owned() } else { call.arguments.to_string() };
        push_field(&mut json, "arguments", &arguments);
        json.push_str("}}");
    }
    if separator == "," {
        json.push(']');
    }
    json.push('}');
    json
}

fn tool_result(message: &ToolResultMessage) -> String {
    let mut text = Content::join_text(&message.content);
    let images = message.content.iter().filter(|block| matches!(block, Content::Image { .. })).count();
    if images > 0 {
        // This protocol has room for text only in a result.
        let separator = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{separator}({images} image(s) that cannot be shown here)");
    }
    let mut json = String::from("{\"role\":\"tool\",\"tool_call_id\":");
    push_json(&mut json, message.tool_call_id.as_str());
    push_field(&mut json, "content", &text);
    json.push('}');
    json
}
