//! The abilities of models by vendor, for parameters that the common protocol leaves to each vendor.
//!
//! <https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html>

use archon_types::{Json, ThinkingLevel};
use serde_json::json;

use crate::{anthropic::Thinking, request::effort};

/// The vendor of a model, which decides about the parameters that requests use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelFamily {
    /// Derived from the model's name, for instance `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
    #[default]
    ByName,
    /// Anthropic's Claude.
    Anthropic,
    /// Amazon's Nova.
    Nova,
    /// OpenAI's models with open weights, such as `openai.gpt-oss-120b-1:0`.
    OpenAi,
    /// Any other vendor's models: they get only the parameters that all models know.
    Other,
}

impl ModelFamily {
    /// Returns the family of a model, never [`ModelFamily::ByName`].
    pub(super) fn of(self, model: &str) -> Self {
        if self != Self::ByName {
            return self;
        }
        let model = model.to_lowercase();
        let has = |word: &str| model.contains(word);
        match () {
            () if has("claude") || has("anthropic.") => Self::Anthropic,
            () if has("amazon.nova") => Self::Nova,
            () if has("openai.") => Self::OpenAi,
            () => Self::Other,
        }
    }

    /// Returns true if the model accepts the status of a tool's result.
    pub(super) fn takes_status(self) -> bool {
        matches!(self, Self::Anthropic | Self::Nova)
    }

    /// Returns true if the model requires its earlier reasoning in the request.
    pub(super) fn takes_reasoning(self) -> bool {
        self == Self::Anthropic
    }

    /// Returns true if the model accepts cache points in instructions and messages; the oldest models refuse
    /// them.
    pub(super) fn caches(self, model: &str) -> bool {
        matches!(self, Self::Anthropic | Self::Nova) && !CACHES_NOTHING.iter().any(|old| model.contains(old))
    }

    /// Returns true if the model accepts cache points in the list of tools.
    pub(super) fn caches_tools(self, model: &str) -> bool {
        self == Self::Anthropic && self.caches(model)
    }

    /// Returns true if models of the family can be forced to call a tool. Some models of Anthropic are exceptions.
    pub(super) fn can_be_forced(self) -> bool {
        matches!(self, Self::Anthropic | Self::Nova)
    }
}

/// Parts of the names of models that refuse a request with a cache point:
/// <https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>.
const CACHES_NOTHING: [&str; 6] = [
    "claude-instant",
    "claude-v",
    "claude-3-opus",
    "claude-3-sonnet",
    "claude-3-haiku",
    "claude-3-5-sonnet-20240620",
];

/// Returns the request fields that set this level of thinking for the model; `None` if the model decides by itself.
/// `thinking` is used only for Anthropic's models.
pub(super) fn thinking_fields(
    family: ModelFamily,
    model: &str,
    level: ThinkingLevel,
    thinking: Thinking,
) -> Option<Json> {
    let effort = effort(level);
    match family {
        ModelFamily::Anthropic => {
            let mut fields = json!({"thinking": thinking.to_json()?});
            if let Thinking::Adaptive(effort) = thinking {
                fields["output_config"] = json!({"effort": effort});
            }
            Some(fields)
        }
        ModelFamily::Nova if model.contains("nova-2") => {
            effort.map(|effort| json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}))
        }
        ModelFamily::OpenAi => effort.map(|effort| json!({"reasoning_effort": effort})),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-12, P-26
    #[test]
    fn families_are_known_from_names_and_asked_in_their_own_words() {
        let ask = |model: &str, level| {
            let family = ModelFamily::ByName.of(model);
            let fields = thinking_fields(family, model, level, Thinking::Budget(2_048));
            format!("{family:?} {}", fields.map_or_else(|| "nothing".to_owned(), |f| f.to_string()))
        };
        let (off, medium) = (ThinkingLevel::Off, ThinkingLevel::Medium);
        for (model, level, expected) in [
            (
                "eu.anthropic.claude-sonnet-4-20250514-v1:0",
                medium,
                r#"Anthropic {"thinking":{"type":"enabled","budget_tokens":2048}}"#,
            ),
            (
                "us.amazon.nova-2-lite-v1:0",
                medium,
                r#"Nova {"reasoningConfig":{"type":"enabled","maxReasoningEffort":"medium"}}"#,
            ),
            ("us.amazon.nova-2-lite-v1:0", off, "Nova nothing"),
            ("amazon.nova-pro-v1:0", medium, "Nova nothing"),
            ("openai.gpt-oss-120b-1:0", medium, r#"OpenAi {"reasoning_effort":"medium"}"#),
            ("meta.llama3-3-70b-instruct-v1:0", medium, "Other nothing"),
            ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", medium, "Other nothing"),
        ] {
            assert_eq!(ask(model, level), expected, "{model}");
        }
        assert_eq!(ModelFamily::Anthropic.of("x"), ModelFamily::Anthropic);
    }

    // spec: P-26
    #[test]
    fn bedrock_family_without_caching_gets_no_cache_points() {
        for (model, all, tools) in [
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", true, true),
            ("anthropic.claude-3-5-haiku-20241022-v1:0", true, true),
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", true, true),
            ("anthropic.claude-3-5-sonnet-20240620-v1:0", false, false),
            ("anthropic.claude-3-haiku-20240307-v1:0", false, false),
            ("anthropic.claude-v2:1", false, false),
            ("anthropic.claude-instant-v1", false, false),
            ("amazon.nova-pro-v1:0", true, false),
            ("meta.llama3-3-70b-instruct-v1:0", false, false),
        ] {
            let family = ModelFamily::ByName.of(model);
            assert_eq!((family.caches(model), family.caches_tools(model)), (all, tools), "{model}");
        }
    }
}
