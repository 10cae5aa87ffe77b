//! Settings for failures of models, tools and storage: keys, fallbacks, retries and the circuit breaker.

use serde::{Deserialize, Serialize};

use crate::models::{ModelPrice, Reads, ThinkingLevel};

use super::retry::RetryConfig;

/// The handling of failures beyond the retries of model calls: API keys, fallback models, answers that end
/// early, retries of tool calls, and the circuit breaker. The log stores this policy, with the number of API
/// keys but never the keys themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FailurePolicy {
    /// The number of API keys of the run's own model. Default 1, also for a service without keys.
    #[serde(skip_serializing_if = "is_one")]
    pub key_count: u32,
    /// The fallback models, in order of use, for a run whose own model cannot answer. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<FallbackModel>,
    /// The maximum number of retries of a request whose answer ended after its first part had arrived. The
    /// retries use the same model and key. The number is low, because the first part was already paid for and
    /// shown to watchers. If [`RetryConfig::max_retries`] is lower, it applies instead. Default 1.
    #[serde(skip_serializing_if = "is_one")]
    pub broken_stream_retries: u32,
    /// The retries of a tool call after a temporary failure. Temporary failures are a timeout (retried at
    /// most once) and a failure of a tool that works over the [network](crate::ToolAnnotations::network).
    /// Only calls that may be repeated are retried. Default 2 retries, after about 1 s and 2 s.
    #[serde(skip_serializing_if = "is_tool_retry")]
    pub tool_retry: RetryConfig,
    /// The circuit breaker for tools that keep failing; `None` for no breaker.
    pub circuit_breaker: Option<CircuitBreaker>,
}

impl Default for FailurePolicy {
    fn default() -> Self {
        Self {
            key_count: 1,
            fallbacks: Vec::new(),
            broken_stream_retries: 1,
            tool_retry: tool_retry(),
            circuit_breaker: Some(CircuitBreaker::default()),
        }
    }
}

/// A fallback model: a run uses it when the run's own model and the fallback models before this one cannot
/// answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FallbackModel {
    /// The id of the provider.
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
    /// The number of API keys, as [`FailurePolicy::key_count`].
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub key_count: u32,
    /// The retries of failed calls of this model.
    #[serde(default)]
    pub retry: RetryConfig,
    /// The price of the model's tokens; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// The model's context window in tokens; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The media that the model reads.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub reads: Reads,
}

impl FallbackModel {
    /// Creates a fallback model with one API key and the default retries. Its price and its context window
    /// are unknown.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            key_count: 1,
            retry: RetryConfig::default(),
            price: None,
            context_window: None,
            reads: Reads::default(),
        }
    }
}

/// A circuit breaker: a tool that fails several times in a row is not run for some time.
///
/// After `max_failures` failures in a row, each call of the tool gets a refusal as its result, and the tool
/// does not run. After the cool-down the next call runs the tool: a success closes the breaker, a failure
/// starts another cool-down. Invalid arguments, refusals and cancelled calls do not count as failures of the
/// tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct CircuitBreaker {
    /// The number of failures in a row that open the breaker. Default 5; 0 counts as 1.
    pub max_failures: u32,
    /// The time for which the tool is not run, in milliseconds. Default 60,000.
    pub cool_down_ms: u64,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self { max_failures: 5, cool_down_ms: 60_000 }
    }
}

impl CircuitBreaker {
    /// Creates a breaker that opens after `max_failures` failures in a row and blocks the tool for
    /// `cool_down`.
    pub fn new(max_failures: u32, cool_down: std::time::Duration) -> Self {
        Self { max_failures, cool_down_ms: u64::try_from(cool_down.as_millis()).unwrap_or(u64::MAX) }
    }
}

/// The behaviour when a run begins and the storage fails, so that the run's log cannot be written.
///
/// A storage failure after the start always ends the run with an error: a run that is resumed from an
/// incomplete log could repeat calls that already took effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStorageFailure {
    /// The run does not begin.
    #[default]
    Refuse,
    /// The run works without a log, and reports this with
    /// [`RecordBody::LogUnavailable`](crate::RecordBody::LogUnavailable). Such a run cannot be resumed,
    /// continued or shown later.
    Ephemeral,
}

/// The target of a request: the run's own model or one of its fallbacks, the API key, and the thinking level.
/// The default value is the target with which the run was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ModelTarget {
    /// The model: 0 for the run's own, n for the n-th of [`FailurePolicy::fallbacks`].
    pub model: u32,
    /// The index of the model's API key, from 0.
    pub key: u32,
    /// The thinking level; `None` for the level that the run was configured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
}

/// The fallback that a run uses after a failure that a retry does not fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FallbackStep {
    /// The same model with its next API key.
    NextKey {
        /// The index of the API key, from 0.
        key: u32,
    },
    /// The same model with less thinking.
    LowerThinking {
        /// The thinking level of all later requests.
        level: ThinkingLevel,
    },
    /// The next fallback model.
    NextModel {
        /// The number of the model in [`FailurePolicy::fallbacks`], from 1.
        fallback: u32,
        /// The id of the model's provider.
        provider: String,
        /// The name of the model.
        model: String,
    },
}

impl std::fmt::Display for FallbackStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NextKey { key } => write!(f, "going on with key {}", key + 1),
            Self::LowerThinking { level } => write!(f, "going on with thinking {level}"),
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
