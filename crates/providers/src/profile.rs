//! The services that speak chat completions, as data: where they are, which variable holds their key,
//! and what they do differently.
//!
//! Stored copies of the services' documentation and reports of what they refuse, looked through in
//! November 2026, say what stands here of DeepSeek, Mistral, Groq, xAI, OpenRouter, Moonshot, Z.ai and
//! Cerebras; no request was sent to a service to check it. A comment says what is not obvious from a field's name.

/// What a service does differently. The defaults suit most servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compat {
    /// What the field is called that limits the answer.
    pub max_tokens_field: MaxTokensField,
    /// The role of standing instructions.
    pub system_role: SystemRole,
    /// How a model is told how much to think.
    pub thinking: ThinkingParameter,
    /// Which models are told; the others refuse it, or always think.
    pub thinking_models: Models,
    /// Under which name the service wants the model's reasoning back, with the message that it led to.
    pub reasoning_in_history: ReasoningField,
    /// What goes back as the reasoning of a message that has none, while the model thinks: some services
    /// refuse a message without, for instance one of another model's. Nothing by default.
    pub missing_reasoning: Option<&'static str>,
    /// Which models think without being asked.
    pub thinks_unasked: Models,
    /// Takes `stream_options.include_usage`; some servers refuse what they do not know.
    pub usage_in_stream: bool,
    /// Takes `seed`.
    pub seed: bool,
    /// Models, by the beginnings of their names, that refuse a temperature.
    pub without_temperature: &'static [&'static str],
    /// Models, by the beginnings of their names, that refuse `stop`. Nothing stops them there.
    pub without_stop: &'static [&'static str],
    /// Which choices among tools it takes.
    pub tool_choice: ToolChoiceSupport,
    /// How ids of tool calls may look.
    pub tool_call_ids: ToolCallIds,
    /// How an answer of a given form is asked for.
    pub response_format: ResponseFormatSupport,
    /// Models write their thinking into the text, between tags.
    pub think_tags: bool,
}

impl Compat {
    /// What suits most servers.
    pub const DEFAULT: Self = Self {
        max_tokens_field: MaxTokensField::MaxTokens,
        system_role: SystemRole::System,
        thinking: ThinkingParameter::Unsupported,
        thinking_models: Models::All,
        reasoning_in_history: ReasoningField::None,
        missing_reasoning: None,
        thinks_unasked: Models::Only(&[]),
        usage_in_stream: true,
        seed: true,
        without_temperature: &[],
        without_stop: &[],
        tool_choice: ToolChoiceSupport::Any,
        tool_call_ids: ToolCallIds::Any,
        response_format: ResponseFormatSupport::JsonSchema,
        think_tags: true,
    };
}

impl Default for Compat {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What the field is called that limits the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// The role of standing instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer`.
    Developer,
}

/// How a model is told how much to think. Nothing is sent for a level of `Off`: that is each service's
/// own default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingParameter {
    /// It cannot be told.
    Unsupported,
    /// `"reasoning_effort": "low"`, `"medium"` or `"high"`.
    Effort,
    /// `"reasoning": {"effort": "low"}`.
    ReasoningObject,
    /// `"thinking": {"type": "enabled"}`: on or off, no levels.
    ThinkingObject,
    /// `"chat_template_kwargs": {"enable_thinking": true}`: what the template of an open model knows.
    ChatTemplate,
}

/// Some of a service's models, by the beginnings of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Models {
    /// All of them.
    All,
    /// Those that begin with one of these.
    Only(&'static [&'static str]),
    /// Those that begin with none of these.
    Except(&'static [&'static str]),
}

impl Models {
    /// Whether this model is one of them.
    pub fn includes(&self, model: &str) -> bool {
        let begins = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
        match self {
            Self::All => true,
            Self::Only(starts) => begins(starts),
            Self::Except(starts) => !begins(starts),
        }
    }
}

/// The field of an assistant message in which its reasoning goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningField {
    /// It does not go back.
    None,
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// `reasoning_details` as they came, and `reasoning` where none did.
    ReasoningDetails,
}

/// Which choices among tools a service takes. What it does not take is left out, so the model decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoiceSupport {
    /// All of them.
    Any,
    /// Words only: a tool that is named becomes `required`.
    Words,
    /// `none` and `auto`.
    AutoOrNone,
    /// `auto`.
    Auto,
}

/// How ids of tool calls may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCallIds {
    /// As any service made them.
    Any,
    /// Nine letters or digits. An id that another service made is replaced, the same one always by the
    /// same.
    NineLetters,
}

/// How an answer of a given form is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseFormatSupport {
    /// As `json_schema`.
    JsonSchema,
    /// As `json_object`, with the schema in the instructions: the service holds the model to JSON, and
    /// only the model itself to the schema.
    JsonObject,
    /// With the schema in the instructions; nothing holds the model to it.
    Instructions,
    /// Not at all: such a request is refused before it is sent.
    Unsupported,
}

/// A service or server that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// As it stands in front of a model: `openai` in `openai:gpt-5-mini`.
    pub name: &'static str,
    /// Where it is unless a model string says otherwise.
    pub base_url: &'static str,
    /// The environment variable that holds its key; none for a server that needs no key.
    pub key_variable: Option<&'static str>,
    /// What it does differently.
    pub compat: Compat,
}

const fn service(name: &'static str, base_url: &'static str, key: &'static str, compat: Compat) -> Profile {
    Profile { name, base_url, key_variable: Some(key), compat }
}

const fn server(name: &'static str, base_url: &'static str, compat: Compat) -> Profile {
    Profile { name, base_url, key_variable: None, compat }
}

pub(crate) const OPENAI: Compat = Compat {
    max_tokens_field: MaxTokensField::MaxCompletionTokens,
    system_role: SystemRole::Developer,
    thinking: ThinkingParameter::Effort,
    // Models that think take only the default.
    without_temperature: &["o1", "o3", "o4", "gpt-5"],
    without_stop: &["o3", "o4", "gpt-5"],
    think_tags: false,
    ..Compat::DEFAULT
};

const OLLAMA: Compat = Compat {
    thinking: ThinkingParameter::Effort,
    // It knows no field of that name, and ignores what it does not know.
    tool_choice: ToolChoiceSupport::Auto,
    ..Compat::DEFAULT
};

const LMSTUDIO: Compat = Compat { tool_choice: ToolChoiceSupport::Words, ..Compat::DEFAULT };

const LLAMACPP: Compat = Compat {
    thinking: ThinkingParameter::ChatTemplate,
    // Refuses a choice that is an object.
    tool_choice: ToolChoiceSupport::Words,
    reasoning_in_history: ReasoningField::ReasoningContent,
    ..Compat::DEFAULT
};

const VLLM: Compat = Compat { thinking: ThinkingParameter::ChatTemplate, ..Compat::DEFAULT };

const GROQ: Compat = Compat {
    max_tokens_field: MaxTokensField::MaxCompletionTokens,
    thinking: ThinkingParameter::Effort,
    // Others take other words than these, or none.
    thinking_models: Models::Only(&["openai/gpt-oss"]),
    reasoning_in_history: ReasoningField::Reasoning,
    ..Compat::DEFAULT
};

const OPENROUTER: Compat = Compat {
    thinking: ThinkingParameter::ReasoningObject,
    reasoning_in_history: ReasoningField::ReasoningDetails,
    ..Compat::DEFAULT
};

const DEEPSEEK: Compat = Compat {
    thinking: ThinkingParameter::ThinkingObject,
    // Models think unasked, and then refuse a call that is forced.
    tool_choice: ToolChoiceSupport::AutoOrNone,
    // Refuses a turn of tool calls whose reasoning is missing; an empty text is enough.
    reasoning_in_history: ReasoningField::ReasoningContent,
    missing_reasoning: Some(""),
    thinks_unasked: Models::Except(&["deepseek-chat"]),
    seed: false,
    response_format: ResponseFormatSupport::JsonObject,
    ..Compat::DEFAULT
};

const EFFORT: Compat = Compat { thinking: ThinkingParameter::Effort, ..Compat::DEFAULT };

const XAI: Compat = Compat {
    // The others think as they like, and refuse the parameter.
    thinking_models: Models::Only(&["grok-3-mini", "grok-4.20-multi-agent", "grok-4.3"]),
    ..EFFORT
};

const MISTRAL: Compat = Compat {
    // Reports usage unasked and refuses unknown fields, `stream_options` among them. The seed is called `random_seed` there.
    usage_in_stream: false,
    seed: false,
    tool_call_ids: ToolCallIds::NineLetters,
    ..Compat::DEFAULT
};

const CEREBRAS: Compat = Compat {
    // Takes reasoning back as a part of the text only, in each model's own notation; it is left out.
    max_tokens_field: MaxTokensField::MaxCompletionTokens,
    thinking: ThinkingParameter::Effort,
    ..Compat::DEFAULT
};

const MOONSHOT: Compat = Compat {
    thinking: ThinkingParameter::ThinkingObject,
    // Always thinks, and knows no such field.
    thinking_models: Models::Except(&["kimi-k3"]),
    // Refuses a turn of tool calls whose reasoning is missing; an empty text is as good as none.
    reasoning_in_history: ReasoningField::ReasoningContent,
    missing_reasoning: Some(" "),
    thinks_unasked: Models::Except(&["moonshot-v1", "kimi-latest", "kimi-k2-0", "kimi-k2-turbo"]),
    seed: false,
    // Most models think unasked, and then refuse a call that is forced.
    tool_choice: ToolChoiceSupport::AutoOrNone,
    response_format: ResponseFormatSupport::JsonObject,
    ..Compat::DEFAULT
};

const ZAI: Compat = Compat {
    thinking: ThinkingParameter::ThinkingObject,
    reasoning_in_history: ReasoningField::ReasoningContent,
    seed: false,
    // Refuses all others.
    tool_choice: ToolChoiceSupport::Auto,
    response_format: ResponseFormatSupport::JsonObject,
    ..Compat::DEFAULT
};

/// Every profile. A new service is one more line.
pub const PROFILES: &[Profile] = &[
    service("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", OPENAI),
    server("ollama", "http://127.0.0.1:11434/v1", OLLAMA),
    server("lmstudio", "http://127.0.0.1:1234/v1", LMSTUDIO),
    server("llamacpp", "http://127.0.0.1:8080/v1", LLAMACPP),
    server("vllm", "http://127.0.0.1:8000/v1", VLLM),
    service("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", GROQ),
    service("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", OPENROUTER),
    service("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", DEEPSEEK),
    service("xai", "https://api.x.ai/v1", "XAI_API_KEY", XAI),
    service("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", MISTRAL),
    service("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", Compat::DEFAULT),
    service("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", EFFORT),
    service("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", CEREBRAS),
    service("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", MOONSHOT),
    service("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", ZAI),
    service("nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY", Compat::DEFAULT),
    service("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN", Compat::DEFAULT),
];

impl Profile {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|p| p.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-15
    #[test]
    fn profiles_have_one_name_each_and_an_address_that_fits() {
        assert!(PROFILES.len() >= 15);
        for profile in PROFILES {
            assert_eq!(Profile::named(profile.name), Some(profile));
            let local = profile.base_url.starts_with("http://127.0.0.1:");
            assert_eq!(local, profile.key_variable.is_none(), "{}", profile.name);
            assert!(local || profile.base_url.starts_with("https://"), "{}", profile.name);
        }
    }
}
