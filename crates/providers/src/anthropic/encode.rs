//! Encodes the body of a request. Messages, tools and instructions are encoded once and then copied; marks
//! of the prompt cache move from turn to turn, so they are inserted afterwards.

use archon_types::{Json, ProviderError, Request, ThinkingLevel, ToolChoice, ToolSpec};
use serde_json::json;

use super::{
    AnthropicOptions, AnthropicTraits, ChangedHistory, ThinkingBudgets, ThinkingForm, ThinkingOff, format,
    messages::{self, MARK, TAKES, text_block, turn_began_without_thinking},
};
use crate::{
    json_text::{push_field, push_json, push_object_schema},
    request::{HEADROOM, effort, invalid_request, is_object_schema},
    tool_names,
    turns::{FORMAT_TOOL, SystemField, end_messages, mark_second_to_last},
};

// Names of the encodings of the tools; each stands for a fixed choice of all options that change the output.
const TOOLS: &str = "anthropic-tools";

/// The minimum thinking budget in tokens that the service accepts.
const LEAST_BUDGET: u32 = 1_024;
/// The field with the instructions.
const SYSTEM: SystemField =
    SystemField { encoding: "anthropic-system", begin: ",\"system\":[", end: "]", block: text_block };

/// Encodes one request.
pub(super) struct Encoder<'a> {
    request: &'a Request,
    traits: AnthropicTraits,
    options: &'a AnthropicOptions,
    thinking: Thinking,
    /// The name of the tool that carries the structured output.
    format_tool: Option<String>,
}

/// The form in which a request asks for thinking.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    Unsaid,
    Disabled,
    BetweenTools,
    Budget(u32),
    Adaptive(&'static str),
}

impl<'a> Encoder<'a> {
    pub(super) fn new(request: &'a Request, traits: AnthropicTraits, options: &'a AnthropicOptions) -> Self {
        let format = request.options.response_format.as_ref();
        let format = format.filter(|format| !traits.json_schema || needs_tool(&format.schema));
        let format_tool = format.map(|format| tool_names::free_name(&format.name, &request.tools));
        let thinking = Thinking::of(request, &traits, &options.thinking_budgets);
        Self { request, traits, options, thinking, format_tool }
    }

    /// Returns the name of the tool whose arguments are the structured output, if it is requested as a tool
    /// call.
    pub(super) fn format_tool(&self) -> Option<&str> {
        self.format_tool.as_deref()
    }

    /// Returns the error if the request cannot be expressed in the protocol.
    pub(super) fn refusal(&self) -> Option<ProviderError> {
        let format = self.request.options.response_format.as_ref().filter(|_| self.format_tool.is_some())?;
        (!is_object_schema(&format.schema)).then(|| {
            invalid_request(
                "structured output of this model must be an object: set the schema's type to \"object\"",
            )
        })
    }

    /// Returns true if the request tells the service to drop thinking blocks that no longer fit the conversation.
    pub(super) fn drops_changed_thinking(&self) -> bool {
        self.traits.bound_thinking
            && self.options.changed_history == ChangedHistory::DropThinking
            && matches!(self.thinking, Thinking::Adaptive(_))
    }

    /// Returns the JSON text of the request.
    pub(super) fn body(&self) -> Vec<u8> {
        let cached = self.request.options.cache.parts();
        let mut body = self.head();
        body.reserve(self.request.messages.encoded_len() + HEADROOM);
        SYSTEM.push(&mut body, self.request, self.format_tool(), cached.system.then_some((MARK, 1)));
        self.tools(&mut body, cached.tools);
        body.push_str(",\"messages\":[");
        let start = body.len();
        let form = messages::Form {
            thinking: self.thinking != Thinking::BetweenTools,
            takes: TAKES.read_by(self.request.reads),
        };
        self.request.messages.encode_into(&form.name(), &mut body, |m, out| messages::push(m, form, out));
        if cached.messages {
            // Before the brace that ends the last block.
            mark_second_to_last(&mut body, start, MARK, 1);
        }
        end_messages(&mut body, start);
        body.push_str("]}");
        body.into_bytes()
    }

    /// Returns the fields before instructions, tools and messages, without the closing brace.
    fn head(&self) -> String {
        let options = &*self.request.options;
        let mut head = String::with_capacity(256);
        head.push_str("{\"model\":");
        push_json(&mut head, &self.request.model);
        let mut max_tokens = options.max_tokens.unwrap_or(self.options.max_tokens);
        if let Thinking::Budget(budget) = self.thinking
            && max_tokens <= budget
        {
            // Thinking counts as output, so the limit must leave room for the answer.
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
        let Some(mut thinking) = self.thinking.to_json() else { return };
        if self.drops_changed_thinking() {
            thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        }
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
            self.request.options.response_format.as_ref().filter(|_| self.format_tool.is_none())
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
        // With a budget for thinking, and on some models, no call can be forced.
        let can_force = self.traits.forced_tools && !matches!(self.thinking, Thinking::Budget(_));
        let choice = &self.request.options.tool_choice;
        let format_tool = self.format_tool.as_ref();
        // A tool that must be called comes before the answer.
        if let Some(name) = format_tool.filter(|_| tools.is_empty() || !matches!(choice, ToolChoice::Tool(_)))
        {
            if can_force && (tools.is_empty() || *choice == ToolChoice::None) {
                push_field(head, "tool_choice", &json!({"type": "tool", "name": name}));
            } else if can_force {
                head.push_str(",\"tool_choice\":{\"type\":\"any\"}");
            }
            return;
        }
        if tools.is_empty() {
            return;
        }
        match choice {
            ToolChoice::None => head.push_str(",\"tool_choice\":{\"type\":\"none\"}"),
            ToolChoice::Required if can_force => head.push_str(",\"tool_choice\":{\"type\":\"any\"}"),
            ToolChoice::Tool(name) if can_force => {
                let name = tool_names::wire_name(name, tools);
                push_field(head, "tool_choice", &json!({"type": "tool", "name": name}));
            }
            // The service's default.
            _ => {}
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
                "description": FORMAT_TOOL,
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

/// Returns true if the structured output must be requested as a tool call: its schema contains a map, which the
/// service accepts in the parameters of a tool but not in a response schema. The parameters of a tool must be an
/// object.
fn needs_tool(schema: &Json) -> bool {
    is_object_schema(schema) && format::has_maps(schema)
}

impl Thinking {
    /// Returns the form in which the request asks a model with these traits for its level of thinking.
    pub(crate) fn of(request: &Request, traits: &AnthropicTraits, budgets: &ThinkingBudgets) -> Self {
        let budget = match request.options.thinking {
            ThinkingLevel::Off => {
                return match traits.thinking_off {
                    ThinkingOff::Unasked => Self::Unsaid,
                    ThinkingOff::Disabled => Self::Disabled,
                    ThinkingOff::BetweenTools => Self::BetweenTools,
                    ThinkingOff::LeastEffort => Self::Adaptive("low"),
                };
            }
            ThinkingLevel::Minimal => budgets.minimal,
            ThinkingLevel::Low => budgets.low,
            ThinkingLevel::Medium => budgets.medium,
            ThinkingLevel::High => budgets.high,
        };
        match traits.thinking {
            ThinkingForm::Never => Self::Unsaid,
            ThinkingForm::Budget if turn_began_without_thinking(&request.messages) => Self::Unsaid,
            ThinkingForm::Budget => Self::Budget(budget.max(LEAST_BUDGET)),
            ThinkingForm::Adaptive => effort(request.options.thinking).map_or(Self::Unsaid, Self::Adaptive),
        }
    }

    /// Returns the value of the field `thinking`; `None` if the field is left out.
    pub(crate) fn to_json(self) -> Option<Json> {
        Some(match self {
            Self::Unsaid => return None,
            Self::Disabled => json!({"type": "disabled"}),
            Self::BetweenTools => json!({"type": "between_tools"}),
            Self::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
            // Newer models show their thinking only if the request asks for it.
            Self::Adaptive(_) => json!({"type": "adaptive", "display": "summarized"}),
        })
    }
}

fn tools(tools: &[ToolSpec]) -> String {
    tool_names::tool_list(tools, "{\"name\":", |tool, text| {
        push_field(text, "description", &tool.description);
        text.push_str(",\"input_schema\":");
        push_object_schema(text, &tool.parameters);
        text.push('}');
    })
}
