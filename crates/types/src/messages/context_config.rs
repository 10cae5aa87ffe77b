//! All settings that keep the conversation of a run within the model's context window.

use serde::{Deserialize, Serialize};

use super::tokens::Tokenizer;

/// The size of the context window and the behaviour as the window fills up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ContextConfig {
    /// The size of the context window in tokens, including the system prompt. Default 100,000.
    pub max_context_tokens: u64,
    /// The minimum number of tokens reserved for the system prompt and the tools. Default 4,000.
    pub system_prompt_tokens: u64,
    /// The number of messages at the end that stay unchanged as long as possible. Default 10.
    pub keep_recent: u32,
    /// The number of messages at the beginning that stay unchanged. Default 2.
    pub keep_first: u32,
    /// The number of lines that a shortened tool result has. Default 50.
    pub tool_output_max_lines: u32,
    /// The conversation is compacted when it fills more than this share of its [`budget`](Self::budget).
    /// Default 0.8.
    pub trigger: f64,
    /// The minimum milliseconds between compactions, unless the window is nearly full or the policy is
    /// [`CompactionPolicy::Trim`]. Default 180,000.
    pub min_interval_ms: u64,
    /// The built-in compaction strategy. Default [`CompactionPolicy::Tiered`].
    pub policy: CompactionPolicy,
    /// The maximum number of tokens of a model's summary of old turns. The summary is made when shortening
    /// tool results is no longer enough, and always for a policy that shortens no results. Default none: old
    /// turns are then shortened without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_tokens: Option<u32>,
    /// The number of messages that [`CompactionPolicy::Trim`] keeps. Default 40.
    pub max_history_messages: u32,
    /// The number of messages that stay if no other compaction helped after an overflow. Default 5.
    pub force_trim_messages: u32,
    /// The maximum number of times that one request is shortened and sent again after an overflow. Default 3.
    pub max_overflow_recoveries: u32,
    /// The maximum share of the window that one tool result takes. Default 0.3.
    pub max_tool_result_share: f64,
    /// The maximum number of characters of a tool result in a window of at least 64,000 tokens. Default
    /// 400,000.
    pub max_tool_result_chars: u64,
    /// The maximum number of tokens of a tool result in a window of less than 64,000 tokens.
    pub tool_result_max_tokens: ResultTokens,
    /// The token counter. Default [`Tokenizer::Estimate`].
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
    /// Creates the default configuration for a window of `max_context_tokens` tokens.
    pub fn new(max_context_tokens: u64) -> Self {
        Self { max_context_tokens, ..Self::default() }
    }

    /// Returns the maximum number of tokens of all messages together: the window without
    /// `system_prompt_tokens`.
    pub fn budget(&self) -> u64 {
        self.max_context_tokens.saturating_sub(self.system_prompt_tokens)
    }
}

/// The built-in [`CompactionStrategy`](crate::CompactionStrategy) of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionPolicy {
    /// Until the conversation fits: shortens tool results, then old turns, then drops the middle of the
    /// conversation.
    #[default]
    Tiered,
    /// Keeps the last [`max_history_messages`](ContextConfig::max_history_messages) messages and a summary of
    /// the earlier ones. Compacts before a request if the conversation has grown and is above the
    /// [`trigger`](ContextConfig::trigger).
    Trim,
    /// In a conversation of at least 20 messages, keeps the last 5 messages and a summary of the earlier
    /// ones.
    Summarize,
}

/// The maximum number of tokens of one tool result, by the fill level of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResultTokens {
    /// The maximum number of tokens of a result below a fill level of 70 %. Default 1,000.
    pub normal: u64,
    /// The maximum number of tokens of a result from 70 % on. Default 750.
    pub moderate: u64,
    /// The maximum number of tokens of a result from 85 % on. Default 500.
    pub aggressive: u64,
    /// The maximum number of tokens of a result from 95 % on. Default 200.
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
