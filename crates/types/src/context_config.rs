//! How a run keeps its conversation within the model's context window: every number in one place.

use serde::{Deserialize, Serialize};

use crate::Tokenizer;

/// The size of the context window and what happens as it fills up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ContextConfig {
    /// Tokens of the window, the system prompt included. Default 100,000.
    pub max_context_tokens: u64,
    /// Tokens set aside for the system prompt and the tools; more if they take more. Default 4,000.
    pub system_prompt_tokens: u64,
    /// Messages at the end that stay whole as long as anything else can give way. Default 10.
    pub keep_recent: u32,
    /// Messages at the beginning that stay whole. Default 2.
    pub keep_first: u32,
    /// Lines that a shortened tool result keeps. Default 50.
    pub tool_output_max_lines: u32,
    /// Share of the budget above which the conversation is compacted. Default 0.8.
    pub trigger: f64,
    /// Milliseconds between two compactions, unless the window is nearly full. Default 180,000.
    pub min_interval_ms: u64,
    /// How the conversation is compacted.
    pub policy: CompactionPolicy,
    /// Most tokens of a summary of old turns that the model is asked for, once cutting tool results is
    /// no longer enough. Without it old turns are digested without a model, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_tokens: Option<u32>,
    /// Messages that trimming keeps. Default 40.
    pub max_history_messages: u32,
    /// Messages that are kept when nothing else helped after an overflow. Default 5.
    pub force_trim_messages: u32,
    /// How often one request is made smaller and sent again after an overflow. Default 3.
    pub max_overflow_recoveries: u32,
    /// Share of the window that one tool result may take, in windows of 64,000 tokens and more.
    /// Default 0.3.
    pub max_tool_result_share: f64,
    /// Characters that no tool result exceeds. Default 400,000.
    pub max_tool_result_chars: u64,
    /// Tokens that one tool result may take in a smaller window.
    pub tool_result_max_tokens: ResultTokens,
    /// Who counts tokens.
    pub tokenizer: Tokenizer,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            max_context_tokens: 100_000,
            system_prompt_tokens: 4_000,
            keep_recent: 10,
            keep_first: 2,
            tool_output_max_lines: 50,
            trigger: 0.8,
            min_interval_ms: 180_000,
            policy: CompactionPolicy::default(),
            summary_tokens: None,
            max_history_messages: 40,
            force_trim_messages: 5,
            max_overflow_recoveries: 3,
            max_tool_result_share: 0.3,
            max_tool_result_chars: 400_000,
            tool_result_max_tokens: ResultTokens::default(),
            tokenizer: Tokenizer::default(),
        }
    }
}

impl ContextConfig {
    /// Defaults for a window of `max_context_tokens`.
    pub fn new(max_context_tokens: u64) -> Self {
        Self { max_context_tokens, ..Self::default() }
    }

    /// Tokens that the messages may take.
    pub fn budget(&self) -> u64 {
        self.max_context_tokens.saturating_sub(self.system_prompt_tokens)
    }
}

/// Which built-in [`CompactionStrategy`](crate::CompactionStrategy) a run uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionPolicy {
    /// Shorten tool results, then digest old turns, then drop the middle; stop as soon as it fits.
    #[default]
    Tiered,
    /// Keep the last [`max_history_messages`](ContextConfig::max_history_messages).
    Trim,
    /// From 20 messages on keep the last 5 and a summary of what was done before.
    Summarize,
}

/// Tokens that one tool result may take, by how full the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResultTokens {
    /// Below 70 %. Default 1,000.
    pub normal: u64,
    /// From 70 %. Default 750.
    pub moderate: u64,
    /// From 85 %. Default 500.
    pub aggressive: u64,
    /// From 95 %. Default 200.
    pub critical: u64,
}

impl Default for ResultTokens {
    fn default() -> Self {
        Self { normal: 1_000, moderate: 750, aggressive: 500, critical: 200 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: C-01
    #[test]
    fn the_defaults_and_the_budget() {
        let config = ContextConfig::default();
        assert_eq!((config.max_context_tokens, config.system_prompt_tokens), (100_000, 4_000));
        assert_eq!((config.keep_recent, config.keep_first, config.tool_output_max_lines), (10, 2, 50));
        assert_eq!((config.trigger, config.min_interval_ms), (0.8, 180_000));
        assert_eq!(config.budget(), 96_000);
        assert_eq!(ContextConfig::new(1_000).budget(), 0);
        assert_eq!(serde_json::from_str::<ContextConfig>("{}").unwrap(), config);
        assert_eq!(
            serde_json::from_str::<ContextConfig>(&serde_json::to_string(&config).unwrap()).unwrap(),
            config
        );
        assert_eq!(crate::RunConfig::default().context, None, "a log without the field has no window");
    }
}
