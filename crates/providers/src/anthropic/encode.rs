//! The body of a request. Messages, tools and instructions are encoded once and then copied; marks of
//! the prompt cache move from turn to turn, so they are put in afterwards.

use archon_types::{
    AssistantMessage, Content, Json, Message, ProviderError, Request, ThinkingLevel, ToolChoice,
    ToolResultMessage, ToolSpec, UserMessage,
};
use serde_json::json;

use super::{
    AnthropicTraits, ChangedHistory, Inner, ThinkingBudgets, ThinkingForm, ThinkingOff, format, refused,
};
use crate::{
    json_text::{push_field, push_json},
    signature::Signature,
    tool_names,
};

// Names of the encodings; each fixes every option that changes its output.
const MESSAGES: &str = "anthropic-messages";
const MESSAGES_WITHOUT_THINKING: &str = "anthropic-messages-without-thinking";
const SYSTEM: &str = "anthropic-system";
const TOOLS: &str = "anthropic-tools";

/// What a message of one role ends with. No text inside of a message holds a raw line break, so this is
/// found without parsing.
const USER_END: &str = "],\"role\":\"user\"},\n";
const ASSISTANT_END: &str = "],\"role\":\"assistant\"},\n";
/// What a message ends with whose last block is thinking, which the cache does not take a mark on.
const THINKING_ENDS: [&str; 2] = [
    "\"type\":\"thinking\"}],\"role\":\"assistant\"},\n",
    "\"type\":\"redacted_thinking\"}],\"role\":\"assistant\"},\n",
];
/// Where a prefix of the prompt ends that is to be cached.
const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
/// The smallest budget for thinking that the service takes.
const LEAST_BUDGET: u32 = 1_024;
/// Room for the tools, the instructions and the newest messages, whose size is not known yet.
const HEADROOM: usize = 4_096;

/// Encodes one request.
pub(super) struct Encoder<'a> {
    request: &'a Request,
    traits: AnthropicTraits,
    options: &'a Inner,
    thinking: Thinking,
    /// The name of the tool that stands for the form of the answer.
    format_tool: Option<String>,
}

/// How thinking is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    Unsaid,
    Disabled,
    BetweenTools,
    Budget(u32),
    Adaptive(&'static str),
}

impl<'a> Encoder<'a> {
    pub(super) fn new(request: &'a Request, traits: AnthropicTraits, options: &'a Inner) -> Self {
        let format = request.options.response_format.as_ref();
        let format = format.filter(|_| !traits.json_schema);
        let format_tool = format.map(|format| tool_names::free_name(&format.name, &request.tools));
        let thinking = thinking(request.options.thinking, &traits, &options.budgets);
        Self { request, traits, options, thinking, format_tool }
    }

    /// The tool whose arguments are the answer, if the form is asked for that way.
    pub(super) fn format_tool(&self) -> Option<&str> {
        self.format_tool.as_deref()
    }

    /// What cannot be asked.
    pub(super) fn refusal(&self) -> Option<ProviderError> {
        let format = self.request.options.response_format.as_ref().filter(|_| self.format_tool.is_some())?;
        let is_object = format.schema.get("type").is_some_and(|kind| kind == "object");
        (!is_object).then(|| refused("this model gives an answer of a given form only as an object"))
    }

    /// Whether the service is asked to drop thinking that does not fit the conversation any more.
    pub(super) fn drops_changed_thinking(&self) -> bool {
        self.traits.bound_thinking
            && self.options.changed_history == ChangedHistory::DropThinking
            && matches!(self.thinking, Thinking::Adaptive(_))
    }

    /// The JSON text of the request.
    pub(super) fn body(&self) -> Vec<u8> {
        let cached = self.request.options.cache.parts();
        let mut body = self.head();
        body.reserve(self.request.messages.encoded_len() + HEADROOM);
        self.system(&mut body, cached.system);
        self.tools(&mut body, cached.tools);
        body.push_str(",\"messages\":[");
        let start = body.len();
        let format = match self.thinking {
            Thinking::BetweenTools => MESSAGES_WITHOUT_THINKING,
            _ => MESSAGES,
        };
        let with_thinking = format == MESSAGES;
        self.request.messages.encode_into(format, &mut body, |m, out| message(m, with_thinking, out));
        if cached.messages {
            mark_messages(&mut body, start);
        }
        // The last comma and line break.
        if body.len() > start {
            body.truncate(body.len() - 2);
        }
        body.push_str("]}");
        body.into_bytes()
    }

    /// The fields before instructions, tools and messages, without the closing brace.
    fn head(&self) -> String {
        let options = &*self.request.options;
        let mut head = String::with_capacity(256);
        head.push_str("{\"model\":");
        push_json(&mut head, &self.request.model);
        let mut max_tokens = options.max_tokens.unwrap_or(self.options.max_tokens);
        if let Thinking::Budget(budget) = self.thinking
            && max_tokens <= budget
        {
            // Thinking counts as output, and some has to be left for the answer.
            max_tokens = budget.saturating_add(max_tokens);
        }
        push_field(&mut head, "max_tokens", &max_tokens);
        head.push_str(",\"stream\":true");
        let thinks = matches!(self.thinking, Thinking::Budget(_) | Thinking::Adaptive(_));
        if let Some(temperature) = options.temperature.filter(|_| self.traits.sampling && !thinks) {
            push_field(&mut head, "temperature", &temperature);
        }
        if !options.stop.is_empty() {
            push_field(&mut head, "stop_sequences", &options.stop);
        }
        self.thinking(&mut head);
        self.output_config(&mut head);
        self.tool_choice(&mut head);
        head
    }

    fn thinking(&self, head: &mut String) {
        let thinking = match self.thinking {
            Thinking::Unsaid => return,
            Thinking::Disabled => json!({"type": "disabled"}),
            Thinking::BetweenTools => json!({"type": "between_tools"}),
            Thinking::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
            // Newer models say nothing of what they think unless they are asked.
            Thinking::Adaptive(_) if self.drops_changed_thinking() => json!({
                "type": "adaptive",
                "display": "summarized",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            }),
            Thinking::Adaptive(_) => json!({"type": "adaptive", "display": "summarized"}),
        };
        push_field(head, "thinking", &thinking);
    }

    fn output_config(&self, head: &mut String) {
        let mut config = serde_json::Map::new();
        if let Thinking::Adaptive(effort) = self.thinking
            && self.traits.effort
        {
            config.insert("effort".to_owned(), effort.into());
        }
        if let Some(format) =
            self.request.options.response_format.as_ref().filter(|_| self.traits.json_schema)
        {
            let schema = format::strict(&format.schema);
            config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
        }
        if !config.is_empty() {
            push_field(head, "output_config", &config);
        }
    }

    fn tool_choice(&self, head: &mut String) {
        let tools = &self.request.tools;
        // With a budget for thinking, and on some models, nothing can be forced.
        let can_force = self.traits.forced_tools && !matches!(self.thinking, Thinking::Budget(_));
        if let Some(name) = &self.format_tool {
            if can_force && tools.is_empty() {
                push_field(head, "tool_choice", &json!({"type": "tool", "name": name}));
            } else if can_force {
                head.push_str(",\"tool_choice\":{\"type\":\"any\"}");
            }
            return;
        }
        if tools.is_empty() {
            return;
        }
        match &self.request.options.tool_choice {
            ToolChoice::None => head.push_str(",\"tool_choice\":{\"type\":\"none\"}"),
            ToolChoice::Required if can_force => head.push_str(",\"tool_choice\":{\"type\":\"any\"}"),
            ToolChoice::Tool(name) if can_force => {
                let place = tools.iter().position(|tool| tool.name == *name);
                let known = place.map(|place| tool_names::wire_names(tools).swap_remove(place));
                let name = known.unwrap_or_else(|| tool_names::to_wire(name));
                push_field(head, "tool_choice", &json!({"type": "tool", "name": name}));
            }
            // The default of the service.
            _ => {}
        }
    }

    fn system(&self, body: &mut String, cached: bool) {
        let start = body.len();
        if let Some(system) = self.request.system.as_ref().filter(|system| !system.trim().is_empty()) {
            body.push_str(",\"system\":[");
            system.with_encoded(SYSTEM, |text| text_block(text), |text| body.push_str(text));
            if cached {
                body.insert_str(body.len() - 1, MARK);
            }
        }
        if let Some(name) = &self.format_tool {
            body.push_str(if body.len() > start { "," } else { ",\"system\":[" });
            body.push_str(&text_block(&format!("Give your final answer only by calling the tool `{name}`.")));
        }
        if body.len() > start {
            body.push(']');
        }
    }

    fn tools(&self, body: &mut String, cached: bool) {
        if self.request.tools.is_empty() && self.format_tool.is_none() {
            return;
        }
        body.push_str(",\"tools\":[");
        self.request.tools.with_encoded(TOOLS, |tools| self::tools(tools), |text| body.push_str(text));
        if let (Some(name), Some(format)) = (&self.format_tool, &self.request.options.response_format) {
            if !self.request.tools.is_empty() {
                body.push(',');
            }
            let tool = json!({
                "name": name,
                "description": "Gives the final answer. Its arguments are the answer.",
                "input_schema": format.schema,
            });
            push_json(body, &tool);
        }
        if cached {
            body.insert_str(body.len() - 1, MARK);
        }
        body.push(']');
    }
}

/// How a model with these traits is asked to think that much.
pub(crate) fn thinking(
    level: ThinkingLevel,
    traits: &AnthropicTraits,
    budgets: &ThinkingBudgets,
) -> Thinking {
    let (budget, effort) = match level {
        ThinkingLevel::Off => {
            return match traits.thinking_off {
                ThinkingOff::Unasked => Thinking::Unsaid,
                ThinkingOff::Disabled => Thinking::Disabled,
                ThinkingOff::BetweenTools => Thinking::BetweenTools,
                ThinkingOff::LeastEffort => Thinking::Adaptive("low"),
            };
        }
        ThinkingLevel::Minimal => (budgets.minimal, "low"),
        ThinkingLevel::Low => (budgets.low, "low"),
        ThinkingLevel::Medium => (budgets.medium, "medium"),
        ThinkingLevel::High => (budgets.high, "high"),
    };
    match traits.thinking {
        ThinkingForm::Never => Thinking::Unsaid,
        ThinkingForm::Budget => Thinking::Budget(budget.max(LEAST_BUDGET)),
        ThinkingForm::Adaptive => Thinking::Adaptive(effort),
    }
}

/// Marks the end of the second-to-last message: what comes before it is read again by every later turn.
fn mark_messages(body: &mut String, start: usize) {
    let messages = &body[start..];
    let Some(end) = messages.len().checked_sub(1).and_then(|last| messages[..last].rfind('\n')) else {
        return;
    };
    let message = &messages[..=end];
    let role_end = if message.ends_with(USER_END) { USER_END } else { ASSISTANT_END };
    if message.ends_with(role_end) && !THINKING_ENDS.iter().any(|end| message.ends_with(end)) {
        // Inside of the brace that ends the last block.
        body.insert_str(start + message.len() - role_end.len() - 1, MARK);
    }
}

fn tools(tools: &[ToolSpec]) -> String {
    let mut text = String::new();
    for (tool, name) in tools.iter().zip(tool_names::wire_names(tools)) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str("{\"name\":");
        push_json(&mut text, &*name);
        push_field(&mut text, "description", &tool.description);
        text.push_str(",\"input_schema\":");
        match &tool.parameters {
            Json::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => {
                push_json(&mut text, schema);
            }
            Json::Object(schema) => {
                let mut schema = schema.clone();
                schema.insert("type".to_owned(), "object".into());
                push_json(&mut text, &schema);
            }
            _ => text.push_str("{\"type\":\"object\"}"),
        }
        text.push('}');
    }
    text
}

fn message(message: &Message, with_thinking: bool, out: &mut String) {
    match message {
        Message::User(m) => user(m, out),
        Message::Assistant(m) => assistant(m, with_thinking, out),
        Message::ToolResult(m) => tool_result(m, out),
    }
}

/// Adds blocks to the message of the person. All that stands between two answers is one message: the
/// service wants all results of a turn together.
fn push_user(blocks: &str, out: &mut String) {
    if out.ends_with(USER_END) {
        out.truncate(out.len() - USER_END.len());
        out.push(',');
    } else {
        out.push_str("{\"content\":[");
    }
    out.push_str(blocks);
    out.push_str(USER_END);
}

fn user(message: &UserMessage, out: &mut String) {
    let mut blocks = String::new();
    push_blocks(&mut blocks, &message.content);
    if blocks.is_empty() {
        // A message without a block is refused, and so is a conversation that does not begin with one.
        blocks = text_block("(nothing)");
    }
    push_user(&blocks, out);
}

fn tool_result(message: &ToolResultMessage, out: &mut String) {
    let mut block = String::from("{\"type\":\"tool_result\",\"tool_use_id\":");
    push_json(&mut block, &call_id(message.tool_call_id.as_str()));
    let mut content = String::new();
    push_blocks(&mut content, &message.content);
    if !content.is_empty() {
        block.push_str(",\"content\":[");
        block.push_str(&content);
        block.push(']');
    }
    if message.is_error {
        block.push_str(",\"is_error\":true");
    }
    block.push('}');
    push_user(&block, out);
}

/// Text and images; blank text is refused by the service, and left out.
fn push_blocks(json: &mut String, content: &[Content]) {
    for block in content {
        let text = match block {
            Content::Text { text } if !text.trim().is_empty() => text_block(text),
            Content::Image { data, mime_type } => json!({
                "type": "image",
                "source": {"type": "base64", "media_type": mime_type, "data": data},
            })
            .to_string(),
            _ => continue,
        };
        push_separated(json, &text);
    }
}

fn push_separated(json: &mut String, block: &str) {
    if !json.is_empty() {
        json.push(',');
    }
    json.push_str(block);
}

fn text_block(text: &str) -> String {
    let mut block = String::from("{\"type\":\"text\"");
    push_field(&mut block, "text", text);
    block.push('}');
    block
}

fn assistant(message: &AssistantMessage, with_thinking: bool, out: &mut String) {
    let mut blocks = String::new();
    for block in &message.content {
        let text = match block {
            Content::Text { text } if !text.trim().is_empty() => text_block(text),
            Content::Thinking { thinking, signature: Some(signature) } if with_thinking => {
                match self::thinking_block(thinking, signature) {
                    Some(text) => text,
                    None => continue,
                }
            }
            Content::ToolCall(call) => {
                let mut text = String::from("{\"type\":\"tool_use\",\"id\":");
                push_json(&mut text, &call_id(call.id.as_str()));
                push_field(&mut text, "name", &*tool_names::to_wire(&call.name));
                text.push_str(",\"input\":");
                match &call.arguments {
                    Json::Object(arguments) => push_json(&mut text, arguments),
                    // What is no object was never run, and the service takes nothing else.
                    _ => text.push_str("{}"),
                }
                text.push('}');
                text
            }
            _ => continue,
        };
        push_separated(&mut blocks, &text);
    }
    // An answer that broke off before anything was said is refused by the service.
    if !blocks.is_empty() {
        out.push_str("{\"content\":[");
        out.push_str(&blocks);
        out.push_str(ASSISTANT_END);
    }
}

/// Thinking as it came; what another protocol signed is nothing to this one. The type comes last, so that
/// the end of the message shows it.
fn thinking_block(thinking: &str, signature: &str) -> Option<String> {
    let mut block = match Signature::of(signature) {
        Signature::Anthropic(signature) => {
            let mut block = String::from("{\"thinking\":");
            push_json(&mut block, thinking);
            push_field(&mut block, "signature", signature);
            block + ",\"type\":\"thinking"
        }
        Signature::Redacted(data) => {
            let mut block = String::from("{\"data\":");
            push_json(&mut block, data);
            block + ",\"type\":\"redacted_thinking"
        }
        _ => return None,
    };
    block.push_str("\"}");
    Some(block)
}

/// An id as the service takes it; another one's may hold other characters.
fn call_id(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let id: String = id.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if id.is_empty() { "_".to_owned() } else { id }
}
