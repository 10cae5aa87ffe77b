//! Profiles of the services with chat completions: the address of each service, the environment variable of its key,
//! and its differences from OpenAI's protocol.
//!
//! The facts about DeepSeek, Mistral, Groq, xAI, OpenRouter, Moonshot, Z.ai and Cerebras come from stored
//! copies of the services' documentation and from reports of refused requests, read in November 2026; no
//! request was sent to a service to check them. A comment explains only what the name of a field does not
//! show.

/// The differences of a service from OpenAI's chat completions. The defaults ([`DEFAULT`](Self::DEFAULT))
/// suit most servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compat {
    /// The name of the field that limits the answer's tokens. Default `max_tokens`.
    pub max_tokens_field: MaxTokensField,
    /// The role of the message with the instructions. Default `system`.
    pub system_role: SystemRole,
    /// The parameter that sets how much a model thinks. Default: none.
    pub thinking: ThinkingParameter,
    /// The models that get the parameter in `thinking`; other models refuse it, or always think. Default: all.
    pub thinking_models: Models,
    /// The field in which requests send back the earlier reasoning of an assistant message. Default: not sent.
    pub reasoning_in_history: ReasoningField,
    /// The text that is sent for an assistant message without reasoning, if the model thinks: some services
    /// refuse such a message, for instance one from another model. Default none.
    pub missing_reasoning: Option<&'static str>,
    /// The models that think even if the request does not ask for it. Default: none.
    pub thinks_unasked: Models,
    /// True (the default) if the service accepts `stream_options.include_usage`; some servers refuse unknown fields.
    pub usage_in_stream: bool,
    /// True (the default) if the service accepts `seed`.
    pub seed: bool,
    /// The beginnings of the names of models that refuse a temperature; their requests contain none.
    pub without_temperature: &'static [&'static str],
    /// The beginnings of the names of models that refuse `stop`; their requests contain no stop sequences.
    pub without_stop: &'static [&'static str],
    /// The values of `tool_choice` that the service accepts. Default: all.
    pub tool_choice: ToolChoiceSupport,
    /// The form of tool-call ids that the service accepts. Default: any.
    pub tool_call_ids: ToolCallIds,
    /// The way in which a request asks for structured output. Default `json_schema`.
    pub response_format: ResponseFormatSupport,
    /// The form in which a user's message contains a PDF file. Default: a note in place of the file.
    pub documents: DocumentPart,
    /// The place of images and PDF files that a tool returned. Default: a note in place of the file.
    pub result_media: ResultMedia,
    /// True (the default) if thinking in the text between tags such as `<think>` is split off.
    pub think_tags: bool,
}

impl Compat {
    /// The options that suit most servers.
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
        documents: DocumentPart::Unsupported,
        result_media: ResultMedia::Note,
        think_tags: true,
    };
}

impl Default for Compat {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The name of the field that limits the answer's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// The role of the message with the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer`.
    Developer,
}

/// The parameter that sets how much a model thinks. For the level `Off` nothing is sent, so each service's
/// default applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingParameter {
    /// The service has no such parameter.
    Unsupported,
    /// `"reasoning_effort": "low"`, `"medium"` or `"high"`.
    Effort,
    /// `"reasoning": {"effort": "low"}`.
    ReasoningObject,
    /// `"thinking": {"type": "enabled"}`: on or off, no levels.
    ThinkingObject,
    /// `"chat_template_kwargs": {"enable_thinking": true}`, for the templates of open models.
    ChatTemplate,
}

/// A set of a service's models, by the beginnings of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Models {
    /// All models.
    All,
    /// Models whose names begin with one of these.
    Only(&'static [&'static str]),
    /// Models whose names begin with none of these.
    Except(&'static [&'static str]),
}

impl Models {
    /// Returns true if the set contains this model.
    pub fn includes(&self, model: &str) -> bool {
        let begins = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
        match self {
            Self::All => true,
            Self::Only(starts) => begins(starts),
            Self::Except(starts) => !begins(starts),
        }
    }
}

/// The field in which requests send back the earlier reasoning of an assistant message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningField {
    /// Earlier reasoning is not sent.
    None,
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// `reasoning_details` as they were received, or `reasoning` if none were received.
    ReasoningDetails,
}

/// The values of `tool_choice` that a service accepts. Any other value is left out of the request, so the
/// model decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoiceSupport {
    /// All values.
    Any,
    /// `none`, `auto` and `required`. For a named tool, `required` is sent.
    Words,
    /// `none` and `auto`.
    AutoOrNone,
    /// `auto`.
    Auto,
}

/// The form of tool-call ids that a service accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCallIds {
    /// The ids of any service.
    Any,
    /// Nine letters or digits. Another id is replaced; equal ids get equal replacements.
    NineLetters,
}

/// The way in which a request asks for structured output: an answer that fits a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseFormatSupport {
    /// As `json_schema`.
    JsonSchema,
    /// As `json_object`, with the schema in the instructions: the service enforces JSON but not the schema.
    JsonObject,
    /// Only with the schema in the instructions; the service enforces nothing.
    Instructions,
    /// Structured output is not supported: such a request fails before it is sent.
    Unsupported,
}

/// The form in which a user's message contains a PDF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentPart {
    /// The service accepts no PDF files: the message has a note with the name and the type of the file. If
    /// [`Reads`](archon_types::Reads) says that the model reads PDF files, the form is [`File`](Self::File).
    Unsupported,
    /// `{"type": "file", "file": {"filename": …, "file_data": "data:application/pdf;base64,…"}}`.
    File,
    /// `{"type": "document_url", "document_url": "data:application/pdf;base64,…", "document_name": …}`.
    DocumentUrl,
}

/// The place of images and PDF files that a tool returned. A tool result itself can contain only text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultMedia {
    /// The result has a note with the names and types of the files; the model does not see the files.
    Note,
    /// A user's message after all results of the turn has the files, each after the name of the tool that returned it.
    UserMessage,
}

/// A service or server with chat completions that a model string can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The name before a model: `openai` in `openai:gpt-5-mini`.
    pub name: &'static str,
    /// The base URL, which is used unless the model string contains another.
    pub base_url: &'static str,
    /// The environment variable of the key; `None` for a server that needs no key.
    pub key_variable: Option<&'static str>,
    /// The differences of the service from OpenAI's chat completions.
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
    // Models that think accept only the default.
    without_temperature: &["o1", "o3", "o4", "gpt-5"],
    without_stop: &["o3", "o4", "gpt-5"],
    // https://developers.openai.com/api/docs/guides/file-inputs
    documents: DocumentPart::File,
    result_media: ResultMedia::UserMessage,
    think_tags: false,
    ..Compat::DEFAULT
};

const OLLAMA: Compat = Compat {
    thinking: ThinkingParameter::Effort,
    // Ollama has no such field, and ignores unknown ones.
    tool_choice: ToolChoiceSupport::Auto,
    ..Compat::DEFAULT
};

const LMSTUDIO: Compat = Compat { tool_choice: ToolChoiceSupport::Words, ..Compat::DEFAULT };

const LLAMACPP: Compat = Compat {
    thinking: ThinkingParameter::ChatTemplate,
    // Refuses a tool choice that is an object.
    tool_choice: ToolChoiceSupport::Words,
    reasoning_in_history: ReasoningField::ReasoningContent,
    ..Compat::DEFAULT
};

const VLLM: Compat = Compat { thinking: ThinkingParameter::ChatTemplate, ..Compat::DEFAULT };

const GROQ: Compat = Compat {
    max_tokens_field: MaxTokensField::MaxCompletionTokens,
    thinking: ThinkingParameter::Effort,
    // Other models accept other words, or none.
    thinking_models: Models::Only(&["openai/gpt-oss"]),
    reasoning_in_history: ReasoningField::Reasoning,
    ..Compat::DEFAULT
};

const OPENROUTER: Compat = Compat {
    thinking: ThinkingParameter::ReasoningObject,
    reasoning_in_history: ReasoningField::ReasoningDetails,
    // https://openrouter.ai/docs/guides/overview/multimodal/pdfs
    documents: DocumentPart::File,
    result_media: ResultMedia::UserMessage,
    ..Compat::DEFAULT
};

const DEEPSEEK: Compat = Compat {
    thinking: ThinkingParameter::ThinkingObject,
    // Models think unasked, and then refuse a forced call.
    tool_choice: ToolChoiceSupport::AutoOrNone,
    // Refuses a turn of tool calls without reasoning; an empty text is enough.
    reasoning_in_history: ReasoningField::ReasoningContent,
    missing_reasoning: Some(""),
    thinks_unasked: Models::Except(&["deepseek-chat"]),
    seed: false,
    response_format: ResponseFormatSupport::JsonObject,
    ..Compat::DEFAULT
};

const EFFORT: Compat = Compat { thinking: ThinkingParameter::Effort, ..Compat::DEFAULT };

const XAI: Compat = Compat {
    // Other models always decide themselves, and refuse the parameter.
    thinking_models: Models::Only(&["grok-3-mini", "grok-4.20-multi-agent", "grok-4.3"]),
    ..EFFORT
};

const MISTRAL: Compat = Compat {
    // Reports usage unasked and refuses unknown fields, such as `stream_options`. Its name for the seed is
    // `random_seed`.
    usage_in_stream: false,
    seed: false,
    tool_call_ids: ToolCallIds::NineLetters,
    // Refuses OpenAI's form, and a user's message right after results:
    // https://docs.mistral.ai/capabilities/document_ai/document_qna
    documents: DocumentPart::DocumentUrl,
    ..Compat::DEFAULT
};

const CEREBRAS: Compat = Compat {
    // Accepts reasoning only within the text, in each model's own notation; so it is not sent back.
    max_tokens_field: MaxTokensField::MaxCompletionTokens,
    thinking: ThinkingParameter::Effort,
    ..Compat::DEFAULT
};

const MOONSHOT: Compat = Compat {
    thinking: ThinkingParameter::ThinkingObject,
    // Always thinks, and has no such field.
    thinking_models: Models::Except(&["kimi-k3"]),
    // Refuses a turn of tool calls without reasoning; an empty text counts as missing.
    reasoning_in_history: ReasoningField::ReasoningContent,
    missing_reasoning: Some(" "),
    thinks_unasked: Models::Except(&["moonshot-v1", "kimi-latest", "kimi-k2-0", "kimi-k2-turbo"]),
    seed: false,
    // Most models think unasked, and then refuse a forced call.
    tool_choice: ToolChoiceSupport::AutoOrNone,
    response_format: ResponseFormatSupport::JsonObject,
    ..Compat::DEFAULT
};

const ZAI: Compat = Compat {
    thinking: ThinkingParameter::ThinkingObject,
    reasoning_in_history: ReasoningField::ReasoningContent,
    seed: false,
    // Refuses all other choices.
    tool_choice: ToolChoiceSupport::Auto,
    response_format: ResponseFormatSupport::JsonObject,
    ..Compat::DEFAULT
};

/// The profiles of all known services and servers.
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
    /// Returns the profile with this name, for instance `openai`.
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
