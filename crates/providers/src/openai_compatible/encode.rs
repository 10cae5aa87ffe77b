//! Encodes the body of a request. Messages and tools are encoded once, and the body of a turn extends the
//! body of the turn before: the cost of a turn depends only on the bytes that it adds.

use std::{borrow::Cow, sync::Arc};

use archon_types::{
    AssistantMessage, Content, ContentHash, Json, Message, Request, ToolResultMessage, ToolSpec, UserMessage,
};

use super::head::{head, schema_instructions, thinks};
use crate::{
    json_text::{arguments_text, push_content, push_field, push_json},
    media::{COMMON_IMAGES, PDF, Shown, Takes, data_url, result_media, text_and_notes},
    profile::{Compat, DocumentPart, ReasoningField, ResultMedia, SystemRole, ToolCallIds},
    signature::Signature,
    tool_names as names,
};

/// The beginning of a part with text.
const TEXT: &str = "{\"type\":\"text\",\"text\":";
/// The beginning and the end of a message with the media of tool results. No other message begins or ends so.
const MEDIA_BEGIN: &str = "{\"content\":[{\"type\":\"text\"";
const MEDIA_END: &str = "],\"role\":\"user\"}";

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
    let documents = match compat.documents {
        // Somebody who knows the server says that it takes PDF files; OpenAI's form is the usual one.
        DocumentPart::Unsupported if request.reads.pdfs == Some(true) => DocumentPart::File,
        documents => documents,
    };
    let style = Style {
        reasoning: compat.reasoning_in_history,
        missing: compat.missing_reasoning.filter(|_| thinks(request, compat)),
        ids: compat.tool_call_ids,
        documents,
        takes: Takes { images: COMMON_IMAGES, pdfs: documents != DocumentPart::Unsupported }
            .read_by(request.reads),
        result_media: compat.result_media,
    };
    request.messages.body(&style.name(), &head, "]}", |m, out| message(m, style, out))
}

/// The options by which services differ in the text of a message.
#[derive(Clone, Copy, Debug)]
struct Style {
    reasoning: ReasoningField,
    /// The placeholder for missing reasoning in a message.
    missing: Option<&'static str>,
    ids: ToolCallIds,
    documents: DocumentPart,
    /// The media that a user's message can have.
    takes: Takes,
    result_media: ResultMedia,
}

impl Style {
    /// Returns the name of the encoding of messages in this style, with every option that changes the text. A
    /// conversation keeps its encoded text as long as this name stays the same.
    fn name(self) -> String {
        format!("openai-chat {self:?}")
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
        Message::User(m) => user(m, style, json),
        Message::Assistant(m) => assistant(m, style, json),
        Message::ToolResult(m) => tool_result(m, style, json),
    }
}

fn user(message: &UserMessage, style: Style, json: &mut String) {
    json.push_str("{\"role\":\"user\",\"content\":");
    let media = |json: &mut String, shown: Shown<'_>| media_part(json, style.documents, shown);
    push_content(json, &message.content, &style.takes, TEXT, media);
    json.push('}');
}

/// Appends an image or a PDF as a part of a user's message.
fn media_part(json: &mut String, documents: DocumentPart, shown: Shown<'_>) {
    match (shown, documents) {
        (Shown::Image { mime_type, data }, _) => {
            json.push_str("{\"type\":\"image_url\",\"image_url\":{\"url\":");
            push_json(json, &data_url(mime_type, data));
            json.push_str("}}");
        }
        (Shown::Pdf { name, data }, DocumentPart::DocumentUrl) => {
            json.push_str("{\"type\":\"document_url\",\"document_url\":");
            push_json(json, &data_url(PDF, data));
            if let Some(name) = name {
                push_field(json, "document_name", name);
            }
            json.push('}');
        }
        (Shown::Pdf { name, data }, _) => {
            json.push_str("{\"type\":\"file\",\"file\":{\"filename\":");
            // The service requires a name.
            push_json(json, name.unwrap_or("document.pdf"));
            push_field(json, "file_data", &data_url(PDF, data));
            json.push_str("}}");
        }
        (Shown::Note(note), _) => {
            json.push_str(TEXT);
            push_json(json, &note);
            json.push('}');
        }
    }
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
    let takes = match style.result_media {
        ResultMedia::Note => Takes::NONE,
        ResultMedia::UserMessage => style.takes,
    };
    let has_media = message.content.iter().any(|block| takes.sends(block));
    let mut text = text_and_notes(&message.content, &takes);
    if has_media && text.is_empty() {
        text.push_str("(the data follows the results)");
    }
    // All results of a turn stand together, so the message with their media moves to the end.
    let mut media = take_result_media(json);
    json.push_str("{\"role\":\"tool\",\"tool_call_id\":");
    push_json(json, &*style.id(message.tool_call_id.as_str()));
    push_field(json, "content", &text);
    json.push('}');
    if has_media {
        media.push_str(if media.is_empty() { "{\"content\":[" } else { "," });
        media.push_str(TEXT);
        push_json(&mut media, &result_media(&names::to_wire(&message.tool_name)));
        media.push('}');
        let sent = message.content.iter().filter(|block| takes.sends(block));
        for shown in sent.filter_map(|block| takes.shown(block)) {
            media.push(',');
            media_part(&mut media, style.documents, shown);
        }
    }
    if !media.is_empty() {
        json.push(',');
        json.push_str(&media);
        json.push_str(MEDIA_END);
    }
}

/// Removes the message with the media of tool results from the end of the conversation, where only the comma
/// before the next message follows it. Returns the message without its end; an empty text if there is none.
fn take_result_media(json: &mut String) -> String {
    let before = json.strip_suffix(',').and_then(|json| json.strip_suffix(MEDIA_END)).map(str::len);
    let begin = before.and_then(|end| json[..end].rfind(MEDIA_BEGIN));
    let (Some(end), Some(begin)) = (before, begin) else { return String::new() };
    json.truncate(end);
    json.split_off(begin)
}
