//! Encodes the fields of a request before its tools and messages: the model and the options, with each
//! service's field names.

use archon_types::{Request, RequestOptions, ResponseFormat, ThinkingLevel, ToolChoice, ToolSpec};
use serde_json::json;

use crate::{
    json_text::{push_field, push_json},
    profile::{Compat, MaxTokensField, ResponseFormatSupport, ThinkingParameter, ToolChoiceSupport},
    request::effort,
    strict_schema::is_strict,
    tool_names as names,
};

/// Returns the fields before tools and messages, without the closing brace.
pub(super) fn head(request: &Request, compat: &Compat) -> String {
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
    let among = |starts: &[&str]| starts.iter().any(|start| request.model.starts_with(start));
    if let Some(temperature) = options.temperature.filter(|_| !among(compat.without_temperature)) {
        push_field(head, "temperature", &temperature);
    }
    if let Some(seed) = options.seed.filter(|_| compat.seed) {
        push_field(head, "seed", &seed);
    }
    if !options.stop.is_empty() && !among(compat.without_stop) {
        push_field(head, "stop", &options.stop);
    }
    if let Some(effort) = effort(options.thinking).filter(|_| compat.thinking_models.includes(&request.model))
    {
        thinking(head, compat.thinking, effort);
    }
    // Services refuse a tool choice without tools.
    if !request.tools.is_empty() {
        tool_choice(head, &options.tool_choice, &request.tools, compat.tool_choice);
    }
    if let Some(format) = &options.response_format {
        response_format(head, format, compat.response_format);
    }
}

/// Returns true if the model thinks for this request, as far as the profile shows.
pub(super) fn thinks(request: &Request, compat: &Compat) -> bool {
    let asked = request.options.thinking != ThinkingLevel::Off
        && compat.thinking != ThinkingParameter::Unsupported
        && compat.thinking_models.includes(&request.model);
    asked || compat.thinks_unasked.includes(&request.model)
}

fn thinking(head: &mut String, parameter: ThinkingParameter, effort: &str) {
    match parameter {
        ThinkingParameter::Unsupported => {}
        ThinkingParameter::Effort => push_field(head, "reasoning_effort", effort),
        ThinkingParameter::ReasoningObject => push_field(head, "reasoning", &json!({ "effort": effort })),
        ThinkingParameter::ThinkingObject => push_field(head, "thinking", &json!({ "type": "enabled" })),
        ThinkingParameter::ChatTemplate => {
            push_field(head, "chat_template_kwargs", &json!({ "enable_thinking": true }));
        }
    }
}

fn tool_choice(head: &mut String, choice: &ToolChoice, tools: &[ToolSpec], takes: ToolChoiceSupport) {
    use ToolChoiceSupport::{Any, Auto, AutoOrNone, Words};
    match (choice, takes) {
        (ToolChoice::None, Any | Words | AutoOrNone) => push_field(head, "tool_choice", "none"),
        (ToolChoice::Required, Any | Words) | (ToolChoice::Tool(_), Words) => {
            push_field(head, "tool_choice", "required");
        }
        (ToolChoice::Tool(name), Any) => {
            head.push_str(",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":");
            push_json(head, &*names::wire_name(name, tools));
            head.push_str("}}");
        }
        // The service's default, or a choice that this service does not support.
        (_, Any | Words | AutoOrNone | Auto) => {}
    }
}

fn response_format(head: &mut String, format: &ResponseFormat, by: ResponseFormatSupport) {
    match by {
        ResponseFormatSupport::JsonSchema => {
            head.push_str(",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":");
            push_json(head, &*names::to_wire(&format.name));
            push_field(head, "strict", &is_strict(&format.schema));
            push_field(head, "schema", &format.schema);
            head.push_str("}}");
        }
        ResponseFormatSupport::JsonObject => {
            push_field(head, "response_format", &json!({ "type": "json_object" }));
        }
        ResponseFormatSupport::Instructions | ResponseFormatSupport::Unsupported => {}
    }
}

/// Returns the instruction with the schema, if the service does not enforce schemas.
pub(super) fn schema_instructions(request: &Request, compat: &Compat) -> Option<String> {
    let format = request.options.response_format.as_ref()?;
    let told = matches!(
        compat.response_format,
        ResponseFormatSupport::JsonObject | ResponseFormatSupport::Instructions
    );
    told.then(|| {
        format!(
            "Your final answer is one JSON object and nothing else, without a code fence. It is valid by this JSON Schema:\n{}",
            format.schema
        )
    })
}
