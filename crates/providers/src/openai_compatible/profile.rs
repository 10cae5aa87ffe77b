//! The services that speak chat completions, as data: where they are, which variable holds their key,
//! and what they do differently.

/// What a service does differently. The defaults suit most servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compat {
    /// What the field is called that limits the answer.
    pub max_tokens_field: MaxTokensField,
    /// The role of standing instructions.
    pub system_role: SystemRole,
    /// Takes `reasoning_effort`.
    pub reasoning_effort: bool,
    /// Wants the model's reasoning back, as `reasoning_content`, with the message that it led to.
    pub reasoning_in_history: bool,
    /// Takes `stream_options.include_usage`; some servers refuse what they do not know.
    pub usage_in_stream: bool,
    /// Takes `seed`.
    pub seed: bool,
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
        reasoning_effort: false,
        reasoning_in_history: false,
        usage_in_stream: true,
        seed: true,
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

/// How an answer of a given form is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseFormatSupport {
    /// As `json_schema`.
    JsonSchema,
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

const fn service(name: &'static str, base_url: &'static str, key: &'static str) -> Profile {
    Profile { name, base_url, key_variable: Some(key), compat: Compat::DEFAULT }
}

const fn server(name: &'static str, base_url: &'static str) -> Profile {
    Profile { name, base_url, key_variable: None, compat: Compat::DEFAULT }
}

const fn with(profile: Profile, compat: Compat) -> Profile {
    Profile { compat, ..profile }
}

/// Every profile. A new service is one more line.
pub const PROFILES: &[Profile] = &[
    with(
        service("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        Compat {
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            system_role: SystemRole::Developer,
            reasoning_effort: true,
            think_tags: false,
            ..Compat::DEFAULT
        },
    ),
    server("ollama", "http://127.0.0.1:11434/v1"),
    server("lmstudio", "http://127.0.0.1:1234/v1"),
    server("llamacpp", "http://127.0.0.1:8080/v1"),
    server("vllm", "http://127.0.0.1:8000/v1"),
    with(
        service("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        Compat {
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            reasoning_effort: true,
            ..Compat::DEFAULT
        },
    ),
    with(
        service("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Compat { reasoning_effort: true, ..Compat::DEFAULT },
    ),
    with(
        service("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        Compat {
            reasoning_in_history: true,
            seed: false,
            response_format: ResponseFormatSupport::Unsupported,
            ..Compat::DEFAULT
        },
    ),
    with(
        service("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
        Compat { reasoning_effort: true, ..Compat::DEFAULT },
    ),
    with(
        service("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        // Reports usage unasked; unknown fields are refused.
        Compat { usage_in_stream: false, seed: false, ..Compat::DEFAULT },
    ),
    service("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    service("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    with(
        service("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
        Compat { max_tokens_field: MaxTokensField::MaxCompletionTokens, ..Compat::DEFAULT },
    ),
    service("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    service("nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    service("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN"),
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
