//! What a run does about a model that gives no answer and about a tool that keeps failing.

use serde::{Deserialize, Serialize};

use crate::{ModelPrice, RetryConfig, ThinkingLevel};

/// What follows when retries do not help, as the log keeps it. Keys are counted, never named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FailurePolicy {
    /// API keys of the run's own model. Default 1, which also stands for a service without keys.
    #[serde(skip_serializing_if = "is_one")]
    pub keys: u32,
    /// Models that are asked when the run's own cannot answer, in this order. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<FallbackModel>,
    /// How often the same target is asked again after an answer that broke off: its tokens were paid for, and
    /// somebody watched them come. The retries of [`RetryConfig`] still bound it. Default 1.
    #[serde(skip_serializing_if = "is_one")]
    pub broken_retries: u32,
    /// How often, and after which delay, a call is tried again whose tool failed in a way that may pass: a
    /// time-out, once, or a failure of a tool that works over the [network](crate::ToolAnnotations::network).
    /// Only calls that may be repeated. Default 2 retries after 1 and 2 seconds.
    #[serde(skip_serializing_if = "is_tool_retry")]
    pub tool_retry: RetryConfig,
    /// When a tool that keeps failing is left alone; `None` never leaves one alone.
    pub breaker: Option<CircuitBreaker>,
}

impl Default for FailurePolicy {
    fn default() -> Self {
        Self {
            keys: 1,
            fallbacks: Vec::new(),
            broken_retries: 1,
            tool_retry: tool_retry(),
            breaker: Some(CircuitBreaker::default()),
        }
    }
}

/// A model that is asked when the one before it cannot answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FallbackModel {
    /// The provider's id.
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
    /// API keys, as [`FailurePolicy::keys`].
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub keys: u32,
    /// How its failed calls are retried.
    #[serde(default)]
    pub retry: RetryConfig,
    /// What its tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// Tokens of its context window, where its provider knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

impl FallbackModel {
    /// A model with one key, default retries and no known price.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            keys: 1,
            retry: RetryConfig::default(),
            price: None,
            context_window: None,
        }
    }
}

/// When a tool that keeps failing is left alone, and for how long.
///
/// After `max_failures` failures in a row its calls are answered without running it. After the
/// cool-down one call is let through: a success ends the pause, a failure begins another. Arguments
/// that make no sense, refusals and cancelled calls are no failures of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct CircuitBreaker {
    /// Failures in a row. Default 5; 0 counts as 1.
    pub max_failures: u32,
    /// How long the tool is left alone, milliseconds. Default 60,000.
    pub cool_down_ms: u64,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self { max_failures: 5, cool_down_ms: 60_000 }
    }
}

impl CircuitBreaker {
    /// A breaker of these numbers.
    pub fn new(max_failures: u32, cool_down: std::time::Duration) -> Self {
        Self { max_failures, cool_down_ms: u64::try_from(cool_down.as_millis()).unwrap_or(u64::MAX) }
    }
}

/// What happens to a run that cannot be kept because the storage fails when it begins.
///
/// Later there is no choice: a log that is half on the medium can be taken up from there, and what was
/// done after that would be done again, so the run ends with the error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStorageFailure {
    /// It does not begin.
    #[default]
    Refuse,
    /// It works without being kept, and says so with [`RecordBody::NotKept`](crate::RecordBody::NotKept):
    /// it cannot be resumed, continued or shown later.
    Ephemeral,
}

/// Whom a request goes to: the run's own model or one of its fallbacks, with which key, thinking how
/// much. The default is what the run was started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ModelTarget {
    /// 0 is the run's own model, n the n-th of [`FailurePolicy::fallbacks`].
    pub model: u32,
    /// Which of the model's keys, from 0.
    pub key: u32,
    /// How much it thinks; `None` is what the run asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
}

/// What a run does differently after a failure that another try would not mend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureStep {
    /// The same model with its next key.
    NextKey {
        /// Which key, from 0.
        key: u32,
    },
    /// The same model, thinking less.
    LessThinking {
        /// How much it thinks from here on.
        level: ThinkingLevel,
    },
    /// The next model.
    NextModel {
        /// Its place in [`FailurePolicy::fallbacks`], from 1.
        fallback: u32,
        /// Its provider's id.
        provider: String,
        /// The model.
        model: String,
    },
}

impl std::fmt::Display for FailureStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NextKey { key } => write!(f, "going on with key {}", key + 1),
            Self::LessThinking { level } => write!(f, "going on with thinking {level}"),
            Self::NextModel { provider, model, .. } => write!(f, "going on with {provider}:{model}"),
        }
    }
}

fn tool_retry() -> RetryConfig {
    RetryConfig { max_retries: 2, ..RetryConfig::default() }
}

fn is_tool_retry(retry: &RetryConfig) -> bool {
    *retry == tool_retry()
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_one(n: &u32) -> bool {
    *n == 1
}
