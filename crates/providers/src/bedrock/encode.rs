//! Encodes the body of a request. Messages, tools and instructions are encoded once and then copied; cache
//! points move from turn to turn, so they are inserted afterwards.
//!
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>

use std::collections::BTreeSet;

use archon_types::{Content, Json, ProviderError, Request, ToolChoice, ToolSpec};
use serde_json::json;

use super::{
    BedrockOptions, ModelFamily, StructuredOutput,
    family::thinking_fields,
    messages::{self, CACHE_POINT, Form},
};
use crate::{
    anthropic::{AnthropicTraits, Thinking},
    json_text::{push_field, push_object_schema, push_separated},
    request::{HEADROOM, invalid_request, is_object_schema},
    tool_names,
    turns::{FORMAT_TOOL, SystemField, text_part},
};

// Names of the encodings; each stands for a fixed choice of all options that change the output.
const TOOLS: &str = "bedrock-tools";

/// The number of tokens for the answer that is added to a thinking budget, if the request sets no token limit.
const ANSWER_TOKENS: u32 = 8_192;
/// The field with the instructions.
const SYSTEM: SystemField =
    SystemField { encoding: "bedrock-system", begin: ",\"system\":[", end: "]", block: text_part };

/// Encodes one request.
pub(super) struct Encoder<'a> {
    request: &'a Request,
    options: &'a BedrockOptions,
    family: ModelFamily,
    traits: AnthropicTraits,
    thinking: Thinking,
    answer_tool: Option<String>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(request: &'a Request, options: &'a BedrockOptions) -> Self {
        let family = options.family.of(&request.model);
        let traits = AnthropicTraits::of(&request.model);
        let thinking = match family {
            ModelFamily::Anthropic => Thinking::of(request, &traits, &options.thinking_budgets),
            _ => Thinking::Unsaid,
        };
        let asked = request.options.response_format.as_ref();
        let asked = asked.filter(|_| options.structured == StructuredOutput::Tool);
        let answer_tool = asked.map(|format| tool_names::free_name(&format.name, &request.tools));
        Self { request, options, family, traits, thinking, answer_tool }
    }

    /// Returns the name on the wire of the tool whose arguments are the answer.
    pub(super) fn answer_tool(&self) -> Option<&str> {
        self.answer_tool.as_deref()
    }

    /// Returns the error if the request cannot be expressed in the protocol.
    pub(super) fn refusal(&self) -> Option<ProviderError> {
        let format = self.request.options.response_format.as_ref().filter(|_| self.answer_tool.is_some())?;
        (!is_object_schema(&format.schema)).then(|| {
            invalid_request("structured output that is requested as a tool call must be an object: set the schema's type to \"object\"")
        })
    }

    /// Returns the JSON text of the request.
    pub(super) fn body(&self) -> Vec<u8> {
        let cached = self.request.options.cache.parts();
        let mut body = String::with_capacity(self.request.messages.encoded_len() + HEADROOM);
        body.push_str("{\"messages\":[");
        self.messages(&mut body, cached.messages && self.family.caches(&self.request.model));
        body.push(']');
        let is_cached = cached.system && self.family.caches(&self.request.model);
        SYSTEM.push(&mut body, self.request, self.answer_tool(), is_cached.then_some((CACHE_POINT, 0)));
        self.inference_config(&mut body);
        self.tool_config(&mut body, cached.tools && self.family.caches_tools(&self.request.model));
        self.additional_fields(&mut body);
        self.output_config(&mut body);
        body.push('}');
        body.into_bytes()
    }

    fn messages(&self, body: &mut String, cached: bool) {
        let status = self.family.takes_status();
        // A model that thinks only between calls does not accept earlier thinking.
        let reasoning = self.family.takes_reasoning() && self.thinking != Thinking::BetweenTools;
        // Anthropic's models refuse citations together with a format of the answer.
        let citations =
            self.family == ModelFamily::Anthropic && self.request.options.response_format.is_none();
        let takes = messages::TAKES.read_by(self.request.reads);
        let form = Form { status, reasoning: status && reasoning, citations, takes };
        messages::push(body, &self.request.messages, form, cached);
    }

    fn inference_config(&self, body: &mut String) {
        let options = &*self.request.options;
        let mut config = serde_json::Map::new();
        let mut max_tokens = options.max_tokens;
        if let Thinking::Budget(budget) = self.thinking
            && max_tokens.is_none_or(|most| most <= budget)
        {
            // Thinking counts as output, so the limit must leave room for the answer.
            max_tokens = Some(budget.saturating_add(max_tokens.unwrap_or(ANSWER_TOKENS)));
        }
        if let Some(most) = max_tokens {
            config.insert("maxTokens".to_owned(), most.into());
        }
        let thinks = matches!(self.thinking, Thinking::Budget(_) | Thinking::Adaptive(_));
        let takes_it = self.family != ModelFamily::Anthropic || self.traits.sampling && !thinks;
        if let Some(temperature) = options.temperature.filter(|_| takes_it) {
            // Converted through text, so that 0.7 does not become 0.699999988079071.
            let exact = temperature.to_string().parse::<f64>().unwrap_or_default();
            config.insert("temperature".to_owned(), exact.into());
        }
        if !options.stop.is_empty() {
            config.insert("stopSequences".to_owned(), options.stop.clone().into());
        }
        if !config.is_empty() {
            push_field(body, "inferenceConfig", &config);
        }
    }

    fn tool_config(&self, body: &mut String, cached: bool) {
        let tools = &self.request.tools;
        // The service requires tools for a conversation with tool calls.
        let called = self.called_tools();
        // The service can forbid calls only if the request has no tools.
        let forbidden = self.request.options.tool_choice == ToolChoice::None && called.is_empty();
        let given = !tools.is_empty() && !forbidden;
        if !given && called.is_empty() && self.answer_tool.is_none() {
            return;
        }
        body.push_str(",\"toolConfig\":{\"tools\":[");
        let start = body.len();
        if given {
            tools.with_encoded(TOOLS, |tools| self::tools(tools), |text| body.push_str(text));
        } else {
            for name in called {
                let tool = json!({"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}});
                push_separated(body, start, &tool.to_string());
            }
        }
        if let (Some(name), Some(format)) = (&self.answer_tool, &self.request.options.response_format) {
            let tool = json!({"toolSpec": {
                "name": name,
                "description": FORMAT_TOOL,
                "inputSchema": {"json": format.schema},
            }});
            push_separated(body, start, &tool.to_string());
        }
        if cached {
            body.push_str(CACHE_POINT);
        }
        body.push(']');
        if let Some(choice) = self.tool_choice(given) {
            push_field(body, "toolChoice", &choice);
        }
        body.push('}');
    }

    /// Returns the names of the tools that the conversation called. Empty if the request offers tools that the model
    /// may call.
    fn called_tools(&self) -> BTreeSet<String> {
        if !self.request.tools.is_empty() && self.request.options.tool_choice != ToolChoice::None {
            return BTreeSet::new();
        }
        let calls = self.request.messages.iter().flat_map(|message| message.content());
        let calls = calls.filter_map(Content::as_tool_call);
        calls.map(|call| tool_names::to_wire(&call.name).into_owned()).collect()
    }

    /// Returns the tool choice; `None` lets the model choose. `given` is true if the tools of the request are sent.
    fn tool_choice(&self, given: bool) -> Option<Json> {
        // With a budget for thinking, and on some models, no call can be forced.
        let can_force = self.family != ModelFamily::Anthropic
            || self.traits.forced_tools && !matches!(self.thinking, Thinking::Budget(_));
        let choice = &self.request.options.tool_choice;
        // A tool that must be called comes before the answer.
        let answers_now = !given || !matches!(choice, ToolChoice::Tool(_));
        if let Some(name) = self.answer_tool.as_ref().filter(|_| answers_now) {
            return match () {
                () if !can_force || !self.family.can_be_forced() => None,
                () if given && *choice != ToolChoice::None => Some(json!({"any": {}})),
                () => Some(json!({"tool": {"name": name}})),
            };
        }
        match choice {
            ToolChoice::Required if given && can_force => Some(json!({"any": {}})),
            ToolChoice::Tool(name) if given && can_force => {
                Some(json!({"tool": {"name": tool_names::wire_name(name, &self.request.tools)}}))
            }
            _ => None,
        }
    }

    fn additional_fields(&self, body: &mut String) {
        let (model, level) = (&self.request.model, self.request.options.thinking);
        let thinking = thinking_fields(self.family, model, level, self.thinking);
        let mut fields = serde_json::Map::new();
        for more in [thinking.as_ref(), self.options.additional_fields.as_ref()].into_iter().flatten() {
            if let Json::Object(more) = more {
                fields.extend(more.clone());
            }
        }
        if !fields.is_empty() {
            push_field(body, "additionalModelRequestFields", &fields);
        }
    }

    fn output_config(&self, body: &mut String) {
        if let (None, Some(format)) = (&self.answer_tool, &self.request.options.response_format) {
            let schema =
                json!({"schema": format.schema.to_string(), "name": tool_names::to_wire(&format.name)});
            let form = json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}});
            push_field(body, "outputConfig", &form);
        }
    }
}

fn tools(tools: &[ToolSpec]) -> String {
    tool_names::tool_list(tools, "{\"toolSpec\":{\"name\":", |tool, text| {
        // The service refuses an empty description.
        if !tool.description.trim().is_empty() {
            push_field(text, "description", &tool.description);
        }
        text.push_str(",\"inputSchema\":{\"json\":");
        push_object_schema(text, &tool.parameters);
        text.push_str("}}}");
    })
}
