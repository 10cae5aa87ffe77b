//! Encodes the body of a request. Messages and tools are encoded once and then copied, so the cost of a turn
//! depends only on the bytes that are sent.
//!
//! <https://platform.openai.com/docs/api-reference/responses/create>. The service stores nothing: the whole
//! conversation is sent, with the model's reasoning as the service encrypted it.

use archon_types::{
    AssistantMessage, Content, Json, Message, Request, ToolChoice, ToolResultMessage, ToolSpec, UserMessage,
};

use super::{ReasoningModels, ReasoningSummary, ResponsesCompat};
use crate::{
    call_ids,
    json_text::{arguments_text, push_content, push_field, push_json},
    media::{COMMON_IMAGES, PDF, Shown, Takes, data_url},
    request::{HEADROOM, effort},
    signature::Signature,
    strict_schema::is_strict,
    tool_names,
};

// Names of the encodings; each stands for a fixed choice of all options that change the output.
const INSTRUCTIONS: &str = "openai-responses-instructions";
const TOOLS: &str = "openai-responses-tools";

/// The media that messages and results can have:
/// <https://developers.openai.com/api/docs/guides/file-inputs>.
const TAKES: Takes = Takes { images: COMMON_IMAGES, pdfs: true };

/// The minimum token limit of an answer that the service accepts.
const FEWEST_TOKENS: u32 = 16;

/// Returns the JSON text of a request to the provider with this id.
pub(crate) fn body(request: &Request, compat: &ResponsesCompat, provider: &str) -> Vec<u8> {
    let reasons = match compat.reasoning_models {
        ReasoningModels::All => true,
        ReasoningModels::None => false,
        ReasoningModels::ByName => reasons(&request.model),
    };
    let mut body = String::with_capacity(request.messages.encoded_len() + HEADROOM);
    body.push_str("{\"model\":");
    push_json(&mut body, &request.model);
    body.push_str(",\"stream\":true,\"store\":false");
    options(&mut body, request, compat, reasons);
    if let Some(system) = &request.system {
        body.push_str(",\"instructions\":");
        let encode = |text: &String| Json::from(text.as_str()).to_string();
        system.with_encoded(INSTRUCTIONS, encode, |text| body.push_str(text));
    }
    if !request.tools.is_empty() {
        body.push_str(",\"tools\":");
        request.tools.with_encoded(TOOLS, |t| tools(t), |text| body.push_str(text));
    }
    body.push_str(",\"input\":[");
    let before = body.len();
    // Every item ends with a comma, so that the text of the messages can be copied in one piece.
    let form = Form { reasoning_of: reasons.then_some(provider), takes: TAKES.read_by(request.reads) };
    request.messages.encode_into(&form.name(), &mut body, |m, out| message(m, form, out));
    if body.len() > before {
        body.pop();
    }
    body.push_str("]}");
    body.into_bytes()
}

fn options(body: &mut String, request: &Request, compat: &ResponsesCompat, reasons: bool) {
    let options = &*request.options;
    if reasons {
        push_field(body, "include", &["reasoning.encrypted_content"]);
    }
    if let Some(effort) = effort(options.thinking).filter(|_| reasons) {
        body.push_str(",\"reasoning\":{\"effort\":");
        push_json(body, effort);
        match compat.reasoning_summary {
            ReasoningSummary::Off => {}
            ReasoningSummary::Auto => push_field(body, "summary", "auto"),
            ReasoningSummary::Concise => push_field(body, "summary", "concise"),
            ReasoningSummary::Detailed => push_field(body, "summary", "detailed"),
        }
        body.push('}');
    }
    if let Some(limit) = options.max_tokens {
        push_field(body, "max_output_tokens", &limit.max(FEWEST_TOKENS));
    }
    // Models that reason refuse it.
    if let Some(temperature) = options.temperature.filter(|_| !reasons) {
        push_field(body, "temperature", &temperature);
    }
    if let Some(key) = &compat.prompt_cache_key {
        push_field(body, "prompt_cache_key", key);
    }
    // The service refuses a tool choice without tools.
    if !request.tools.is_empty() {
        tool_choice(body, &options.tool_choice, &request.tools);
    }
    if let Some(format) = &options.response_format {
        body.push_str(",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":");
        push_json(body, &*tool_names::to_wire(&format.name));
        push_field(body, "strict", &is_strict(&format.schema));
        push_field(body, "schema", &format.schema);
        body.push_str("}}");
    }
}

fn tool_choice(body: &mut String, choice: &ToolChoice, tools: &[ToolSpec]) {
    match choice {
        ToolChoice::None => push_field(body, "tool_choice", "none"),
        ToolChoice::Required => push_field(body, "tool_choice", "required"),
        ToolChoice::Tool(name) => {
            body.push_str(",\"tool_choice\":{\"type\":\"function\",\"name\":");
            push_json(body, &*tool_names::wire_name(name, tools));
            body.push('}');
        }
        // The service's default.
        _ => {}
    }
}

/// Returns true if OpenAI's model with this name reasons. A model that does not reason refuses a request for
/// reasoning. An unknown name belongs to a newer model, and newer models reason.
fn reasons(model: &str) -> bool {
    // The name of a fine-tuned model contains that of its base: `ft:gpt-4o:…`.
    let model = model.strip_prefix("ft:").unwrap_or(model);
    let chats = ["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"];
    !chats.iter().any(|name| model.starts_with(name))
}

fn tools(tools: &[ToolSpec]) -> String {
    let list = tool_names::tool_list(tools, "{\"type\":\"function\",\"name\":", |tool, text| {
        push_field(text, "description", &tool.description);
        push_field(text, "parameters", &tool.parameters);
        // Otherwise the service would rewrite the schema, or refuse one that it cannot rewrite.
        text.push_str(",\"strict\":false}");
    });
    format!("[{list}]")
}

/// The options that change the text of a message.
#[derive(Clone, Copy, Debug)]
struct Form<'a> {
    /// The provider whose reasoning is sent. Reasoning is sent only to the provider that produced it: it is encrypted
    /// for one organisation or resource, and others refuse it.
    reasoning_of: Option<&'a str>,
    /// The media that messages and results can have.
    takes: Takes,
}

impl Form<'_> {
    /// Returns the name of the encoding of messages in this form. A conversation keeps its encoded text as long as
    /// this name stays the same.
    fn name(self) -> String {
        format!("openai-responses {self:?}")
    }
}

/// Appends the items of a message, each with a comma after it.
fn message(message: &Message, form: Form<'_>, json: &mut String) {
    match message {
        Message::User(m) => user(m, form.takes, json),
        Message::Assistant(m) => assistant(m, form.reasoning_of == Some(m.provider.as_str()), json),
        Message::ToolResult(m) => tool_result(m, form.takes, json),
    }
}

fn user(message: &UserMessage, takes: Takes, json: &mut String) {
    json.push_str("{\"role\":\"user\",\"content\":");
    content(&message.content, takes, json);
    json.push_str("},");
}

/// Appends text as a string, or text, images and PDF files as a list of parts.
fn content(blocks: &[Content], takes: Takes, json: &mut String) {
    push_content(json, blocks, &takes, "{\"type\":\"input_text\",\"text\":", media_part);
}

fn media_part(json: &mut String, shown: Shown<'_>) {
    match shown {
        Shown::Image { mime_type, data } => {
            json.push_str("{\"type\":\"input_image\",\"detail\":\"auto\"");
            push_field(json, "image_url", &data_url(mime_type, data));
        }
        Shown::Pdf { name, data } => {
            json.push_str("{\"type\":\"input_file\"");
            // The service requires a name.
            push_field(json, "filename", name.unwrap_or("document.pdf"));
            push_field(json, "file_data", &data_url(PDF, data));
        }
        Shown::Note(note) => {
            json.push_str("{\"type\":\"input_text\"");
            push_field(json, "text", &note);
        }
    }
    json.push('}');
}

fn assistant(message: &AssistantMessage, with_reasoning: bool, json: &mut String) {
    for (place, block) in message.content.iter().enumerate() {
        match block {
            Content::Text { text } if !text.is_empty() => {
                json.push_str("{\"role\":\"assistant\",\"content\":");
                push_json(json, text);
                if let Some(phase) = message.content.get(place + 1).and_then(phase) {
                    push_field(json, "phase", phase);
                }
                json.push_str("},");
            }
            // The service refuses reasoning without an answer after it, because it was cut off.
            Content::Thinking { signature: Some(signature), .. }
                if with_reasoning && message.content[place + 1..].iter().any(is_message) =>
            {
                if let Some(item) = reasoning(signature) {
                    json.push_str(&item.to_string());
                    json.push(',');
                }
            }
            Content::ToolCall(call) => {
                json.push_str("{\"type\":\"function_call\",\"call_id\":");
                push_json(json, &*call_ids::to_wire(call.id.as_str()));
                push_field(json, "name", &*tool_names::to_wire(&call.name));
                push_field(json, "arguments", &arguments_text(call));
                json.push_str("},");
            }
            _ => {}
        }
    }
}

fn is_message(block: &Content) -> bool {
    match block {
        Content::Text { text } => !text.is_empty(),
        other => matches!(other, Content::ToolCall(_)),
    }
}

/// Returns the phase that the service gave to the text before this block.
fn phase(block: &Content) -> Option<&str> {
    match block {
        Content::Thinking { signature: Some(signature), .. } => match Signature::of(signature) {
            Signature::Phase(phase) => Some(phase),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the service's own item from a signature; `None` if the signature is another service's.
fn reasoning(signature: &str) -> Option<Json> {
    let item: Json = serde_json::from_str(signature).ok()?;
    (item.get("type")? == "reasoning").then_some(item)
}

fn tool_result(message: &ToolResultMessage, takes: Takes, json: &mut String) {
    json.push_str("{\"type\":\"function_call_output\",\"call_id\":");
    push_json(json, &*call_ids::to_wire(message.tool_call_id.as_str()));
    json.push_str(",\"output\":");
    content(&message.content, takes, json);
    json.push_str("},");
}
