//! Encodes the body of a request. Messages, tools and instructions are encoded once and then copied.

use std::{cell::OnceCell, collections::HashSet};

use archon_types::{
    AssistantMessage, Content, Json, Message, Request, ThinkingLevel, ToolChoice, ToolResultMessage,
    ToolSpec, Transcript, UserMessage,
};
use serde_json::{Map, json};

use super::{SafetySetting, schema::accepted, traits::Traits};
use crate::{
    json_text::{push_field, push_json, push_separated},
    media::{PDF, RESULT_MEDIA, Shown, Takes, result_media, text_and_notes},
    request::HEADROOM,
    signature::Signature,
    tool_names,
    turns::{FORMAT_TOOL, SystemField, USER_END, end_messages, push_arguments, push_turn, text_part},
};

// Names of the encodings; each stands for a fixed choice of all options that change the output.
const TOOLS: &str = "gemini-tools";

/// The media that messages and results can have: <https://ai.google.dev/gemini-api/docs/file-input-methods>. The
/// service refuses GIF.
const TAKES: Takes =
    Takes { images: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"], pdfs: true };

/// The text at the beginning of every message. A message of the model ends with `MODEL_END`.
const PARTS: &str = "{\"parts\":[";
const MODEL_END: &str = "],\"role\":\"model\"},\n";
/// The placeholder for the signature of a tool call of another model:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// The prefixes of ids that decoders of this crate generate. The service does not know such ids.
pub(super) const MADE_UP: [&str; 3] = ["google-fc-", "vertex-fc-", "manual-id-"];
/// The field with the instructions.
const SYSTEM: SystemField = SystemField {
    encoding: "gemini-system",
    begin: ",\"systemInstruction\":{\"parts\":[",
    end: "]}",
    block: text_part,
};

/// The tool-call ids that a service accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallIds<'a> {
    /// All ids, of any service.
    All,
    /// Only ids that the provider with this id generated; for models before Gemini 3, no ids at all.
    Own(&'a str),
}

/// The form in which the messages of one request are encoded.
struct Style<'a> {
    third: bool,
    ids: CallIds<'a>,
    /// The media that messages and results can have.
    takes: Takes,
    messages: &'a Transcript,
    /// The ids of calls that are sent, if the service accepts only its own ids. Computed at the first use.
    own: OnceCell<HashSet<&'a str>>,
}

impl<'a> Style<'a> {
    /// Returns the name of the encoding of messages in this style. A conversation keeps its encoded text as long as
    /// this name stays the same.
    fn name(&self) -> String {
        format!("gemini-contents {} {:?} {:?}", self.third, self.ids, self.takes)
    }

    /// Returns true if this id of a call or a result is sent.
    fn sends_id(&self, id: &str) -> bool {
        if id.is_empty() || MADE_UP.iter().any(|made_up| id.starts_with(made_up)) {
            return false;
        }
        match self.ids {
            CallIds::All => true,
            CallIds::Own(_) if !self.third => false,
            CallIds::Own(provider) => self.own.get_or_init(|| calls_of(self.messages, provider)).contains(id),
        }
    }

    /// Adds the id of a call, if the service accepts it.
    fn push_id(&self, json: &mut String, id: &str) {
        if self.sends_id(id) {
            push_field(json, "id", id);
        }
    }
}

/// Returns the ids of the calls in answers of this provider, except ids that also occur in an answer of
/// another provider: a result does not name the answer that it belongs to.
fn calls_of<'a>(messages: &'a Transcript, provider: &str) -> HashSet<&'a str> {
    let mut own = HashSet::new();
    let mut foreign = Vec::new();
    for message in messages.iter() {
        let Message::Assistant(answer) = &**message else { continue };
        let ids = answer.tool_calls().map(|call| call.id.as_str());
        if answer.provider == provider { own.extend(ids) } else { foreign.extend(ids) }
    }
    for id in foreign {
        own.remove(id);
    }
    own
}

/// Returns the name of the tool that carries the structured output. Before the third generation, a model
/// accepts tools or a response schema, but not both.
pub(super) fn format_tool(request: &Request, traits: Traits) -> Option<String> {
    let format = request.options.response_format.as_ref()?;
    let both = !request.tools.is_empty() && !traits.is_third_generation();
    both.then(|| tool_names::free_name(&format.name, &request.tools))
}

/// Returns the JSON text of a request.
pub(super) fn body(request: &Request, traits: Traits, safety: &[SafetySetting], ids: CallIds<'_>) -> Vec<u8> {
    let mut body = String::with_capacity(request.messages.encoded_len() + HEADROOM);
    body.push_str("{\"contents\":[");
    let start = body.len();
    let third = traits.is_third_generation();
    let format_tool = format_tool(request, traits);
    let takes = TAKES.read_by(request.reads);
    let style = Style { third, ids, takes, messages: &request.messages, own: OnceCell::new() };
    request.messages.encode_into(&style.name(), &mut body, |m, out| message(m, &style, out));
    end_messages(&mut body, start);
    body.push(']');
    SYSTEM.push(&mut body, request, format_tool.as_deref(), None);
    if !request.tools.is_empty() {
        body.push_str(",\"tools\":[{\"functionDeclarations\":");
        request.tools.with_encoded(TOOLS, |tools| self::tools(tools), |text| body.push_str(text));
        if let (Some(name), Some(format)) = (&format_tool, &request.options.response_format) {
            body.pop();
            let schema = accepted(&format.schema);
            body.push(',');
            let tool = json!({"name": name, "description": FORMAT_TOOL, "parametersJsonSchema": schema});
            push_json(&mut body, &tool);
            body.push(']');
        }
        body.push_str("}]");
        let config = match (&format_tool, &request.options.tool_choice) {
            (Some(name), ToolChoice::None) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
            // A tool that must be called comes before the answer.
            (None, _) | (Some(_), ToolChoice::Tool(_)) => tool_config(request),
            (Some(_), _) => Some(json!({"mode": "ANY"})),
        };
        if let Some(config) = config {
            push_field(&mut body, "toolConfig", &json!({"functionCallingConfig": config}));
        }
    }
    if !safety.is_empty() {
        let settings: Vec<Json> =
            safety.iter().map(|s| json!({"category": s.category, "threshold": s.threshold})).collect();
        push_field(&mut body, "safetySettings", &settings);
    }
    let config = generation_config(request, traits, format_tool.as_deref());
    if !config.is_empty() {
        push_field(&mut body, "generationConfig", &config);
    }
    body.push('}');
    body.into_bytes()
}

fn generation_config(request: &Request, traits: Traits, format_tool: Option<&str>) -> Map<String, Json> {
    let options = &*request.options;
    let mut config = Map::new();
    let mut set = |key: &str, value: Json| drop(config.insert(key.to_owned(), value));
    if let Some(limit) = options.max_tokens {
        set("maxOutputTokens", limit.into());
    }
    if let Some(temperature) = options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(seed) = options.seed {
        // The field has 32 bits.
        set("seed", (seed & 0x7FFF_FFFF).into());
    }
    if !options.stop.is_empty() {
        set("stopSequences", json!(options.stop));
    }
    if let Some(format) = options.response_format.as_ref().filter(|_| format_tool.is_none()) {
        set("responseMimeType", "application/json".into());
        set("responseJsonSchema", accepted(&format.schema));
    }
    if let Some(mut thinking) = traits.thinking_config(options.thinking) {
        if options.thinking != ThinkingLevel::Off {
            thinking.insert("includeThoughts".to_owned(), true.into());
        }
        set("thinkingConfig", thinking.into());
    }
    config
}

fn tool_config(request: &Request) -> Option<Json> {
    Some(match &request.options.tool_choice {
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => {
            let name = tool_names::wire_name(name, &request.tools);
            json!({"mode": "ANY", "allowedFunctionNames": [name]})
        }
        // The service's default.
        _ => return None,
    })
}

fn tools(tools: &[ToolSpec]) -> String {
    let list = tool_names::tool_list(tools, "{\"name\":", |tool, text| {
        push_field(text, "description", &tool.description);
        let properties = tool.parameters.get("properties").and_then(Json::as_object);
        if properties.is_some_and(|properties| !properties.is_empty()) {
            push_field(text, "parametersJsonSchema", &accepted(&tool.parameters));
        }
        text.push('}');
    });
    format!("[{list}]")
}

fn message(message: &Message, style: &Style<'_>, out: &mut String) {
    match message {
        Message::User(m) => user(m, style.takes, out),
        Message::Assistant(m) => assistant(m, style, out),
        Message::ToolResult(m) => tool_result(m, style, out),
    }
}

fn user(message: &UserMessage, takes: Takes, out: &mut String) {
    let mut parts = String::new();
    for block in &message.content {
        match block {
            Content::Text { text } if text.is_empty() => {}
            Content::Text { text } => push_separated(&mut parts, 0, &text_part(text)),
            other => push_media(&mut parts, takes, other),
        }
    }
    if parts.is_empty() {
        parts = text_part(" ");
    }
    push_turn(out, PARTS, &parts, USER_END);
}

fn tool_result(message: &ToolResultMessage, style: &Style<'_>, out: &mut String) {
    let mut media = String::new();
    let sent = message.content.iter().filter(|block| style.takes.sends(block));
    sent.for_each(|block| push_media(&mut media, style.takes, block));
    let mut part = String::from("{\"functionResponse\":{\"name\":");
    let name = tool_names::to_wire(&message.tool_name);
    push_json(&mut part, &*name);
    style.push_id(&mut part, message.tool_call_id.as_str());
    let key = if message.is_error { "error" } else { "result" };
    push_field(&mut part, "response", &json!({key: text_and_notes(&message.content, &style.takes)}));
    if style.third && !media.is_empty() {
        part.push_str(",\"parts\":[");
        part.push_str(&media);
        part.push(']');
    }
    part.push_str("}}");
    // Before the third generation, a response has no media. The service then counts the responses of a turn, and
    // refuses parts between them.
    let later = take_result_media(out);
    push_turn(out, PARTS, &part, USER_END);
    for more in [later, media_of_result(&name, &media).filter(|_| !style.third)].into_iter().flatten() {
        push_turn(out, PARTS, &more, USER_END);
    }
}

/// Returns the parts with the media of a result; `None` without media.
fn media_of_result(tool: &str, media: &str) -> Option<String> {
    (!media.is_empty()).then(|| format!("{},{media}", text_part(&result_media(tool))))
}

/// Removes the media of earlier results of the same turn from the end of the last message. Returns them, if there are
/// any.
fn take_result_media(out: &mut String) -> Option<String> {
    let end = out.strip_suffix(USER_END)?.len();
    let message = out[..end].rfind('\n').map_or(0, |end| end + 1);
    let begin = message + out[message..end].find(&format!(",{{\"text\":\"{RESULT_MEDIA}"))?;
    out.truncate(end);
    let media = out.split_off(begin + 1);
    out.truncate(begin);
    out.push_str(USER_END);
    Some(media)
}

fn assistant(message: &AssistantMessage, style: &Style<'_>, out: &mut String) {
    let mut parts = String::new();
    let mut signature = None;
    let mut calls = 0;
    for block in &message.content {
        match block {
            Content::Text { text } if !text.is_empty() => push_separated(&mut parts, 0, &text_part(text)),
            // Only the signature of a thought is sent back, not its text.
            Content::Thinking { signature: Some(text), .. } => match Signature::of(text) {
                Signature::Gemini(text) => signature = Some(text),
                Signature::GeminiText(text) => {
                    let mut part = String::from("{\"text\":\"\"");
                    push_field(&mut part, "thoughtSignature", text);
                    part.push('}');
                    push_separated(&mut parts, 0, &part);
                }
                _ => {}
            },
            Content::ToolCall(call) => {
                let mut part = String::from("{\"functionCall\":{\"name\":");
                push_json(&mut part, &*tool_names::to_wire(&call.name));
                style.push_id(&mut part, call.id.as_str());
                part.push_str(",\"args\":");
                push_arguments(&mut part, &call.arguments);
                part.push('}');
                // Of several calls only the first is signed.
                let missing = (style.third && calls == 0).then_some(NO_SIGNATURE);
                if let Some(signature) = signature.take().or(missing) {
                    push_field(&mut part, "thoughtSignature", signature);
                }
                part.push('}');
                push_separated(&mut parts, 0, &part);
                calls += 1;
            }
            Content::Text { .. } | Content::Thinking { .. } => {}
            other => push_media(&mut parts, style.takes, other),
        }
    }
    if !parts.is_empty() {
        out.push_str(PARTS);
        out.push_str(&parts);
        out.push_str(MODEL_END);
    }
}

/// Appends a block of media as a part; a block without media is left out.
fn push_media(parts: &mut String, takes: Takes, block: &Content) {
    let (mime_type, data) = match takes.shown(block) {
        None => return,
        Some(Shown::Note(note)) => return push_separated(parts, 0, &text_part(&note)),
        Some(Shown::Image { mime_type, data }) => (mime_type, data),
        Some(Shown::Pdf { data, .. }) => (PDF, data),
    };
    push_separated(parts, 0, "{\"inlineData\":{\"mimeType\":");
    push_json(parts, mime_type);
    push_field(parts, "data", data);
    parts.push_str("}}");
}
