//! Defines the [`Provider`] trait: takes a request to a model and returns a stream of events.

use std::{fmt, sync::Arc, time::Duration};

use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    Json,
    messages::{AssistantMessage, Message, Redactor, Transcript},
    tools::ToolSpec,
    values::{ContentHash, Encoded},
};

use super::{failure_kind::ModelErrorCode, price::ModelPrice};

/// A service or an engine that runs models.
///
/// A wrapper (recorder, cache, limit) is itself a provider;
/// [`provider_methods_of`](crate::provider_methods_of) writes the methods that it does not change. The stream
/// is boxed because providers are passed as `Arc<dyn Provider>` everywhere.
pub trait Provider: Send + Sync {
    /// Returns a stable lower-case name, for instance `openai`.
    fn id(&self) -> &str;

    /// Sends a request to the model. The stream ends after [`ModelEvent::Done`] or an error.
    ///
    /// A cancel ends the call at once: the last event is then a [`ModelEvent::Done`] whose message has stop
    /// reason `Aborted` and the text so far. Dropping the stream ends the call too.
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>>;

    /// Returns the abilities of the model; default: native tools, and nothing known of window and price.
    fn capabilities(&self, _model: &str) -> Capabilities {
        Capabilities::default()
    }

    /// Returns the redactors that know the keys and tokens sent to the service, also future ones. A run
    /// removes them from everything that it keeps or shows, so a wrapper must return those of the provider
    /// that it wraps.
    fn secrets(&self) -> Vec<Redactor> {
        Vec::new()
    }
}

impl fmt::Debug for dyn Provider + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.id(), f)
    }
}

/// The abilities of a model behind a [`Provider`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// True if it takes tool specs and answers with tool calls. Otherwise the loop uses text mode.
    pub native_tools: bool,
    /// True if the provider retries by itself; the loop then refuses to add its own retries.
    pub retries: bool,
    /// Tokens of the model's context window, if known.
    pub context_window: Option<u64>,
    /// True if the model has so few parameters that it needs short instructions and cannot make a plan:
    /// planners then ask for one step at a time.
    pub is_small: bool,
    /// The price of its tokens, if known: millionths of a US dollar per million tokens.
    pub price: Option<ModelPrice>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { native_tools: true, retries: false, context_window: None, is_small: false, price: None }
    }
}

/// A request to a model. A clone is cheap: the large parts are shared.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// The model, as the provider names it.
    pub model: String,
    /// Standing instructions.
    pub system: Option<Arc<Encoded<String>>>,
    /// The conversation. Each tool call in it is followed by its result.
    pub messages: Arc<Transcript>,
    /// The tools that may be called.
    pub tools: Arc<Encoded<Vec<ToolSpec>>>,
    /// Options with defaults.
    pub options: Arc<RequestOptions>,
}

impl Request {
    /// Creates a request without tools.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self { model: model.into(), messages: Arc::new(messages.into_iter().collect()), ..Self::default() }
    }

    /// Returns a hash of all that the model is given, as 16 hexadecimal digits. Times and token counts are
    /// left out, since they are not sent. Only the part that is new since an earlier request of the
    /// conversation is hashed anew.
    pub fn content_hash(&self) -> String {
        let system = self.system.as_ref().map(|system| system.content_hash());
        let whole =
            (&self.model, system, self.tools.content_hash(), &self.options, self.messages.content_hash());
        format!("{:016x}", ContentHash::of(&whole))
    }
}

/// The parts of a [`Request`] that have defaults. Options that a service does not support are ignored, except
/// for `response_format`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// The most tokens of the answer; default: the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Sampling seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Stop sequences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The rule for tool calls.
    pub tool_choice: ToolChoice,
    /// The thinking level.
    pub thinking: ThinkingLevel,
    /// The format of a structured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// The parts of the prompt that the service should cache.
    #[serde(skip_serializing_if = "is_default")]
    pub cache: CacheConfig,
}

impl RequestOptions {
    /// Sets the most tokens of an answer.
    pub fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the temperature.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the seed.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the stop sequences.
    pub fn with_stop<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.stop = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the tool choice.
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Sets the thinking level.
    pub fn with_thinking(mut self, level: ThinkingLevel) -> Self {
        self.thinking = level;
        self
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Prompt cache hints for services that cache only on request. Services that cache by themselves get no
/// hints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// True if hints are sent. Default true.
    pub enabled: bool,
    /// The places of the hints.
    pub strategy: CacheStrategy,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self::new(CacheStrategy::Auto)
    }
}

impl CacheConfig {
    /// Creates enabled hints.
    pub fn new(strategy: CacheStrategy) -> Self {
        Self { enabled: true, strategy }
    }

    /// Disables hints.
    pub fn off() -> Self {
        Self { enabled: false, strategy: CacheStrategy::Disabled }
    }

    /// Returns the parts to cache.
    pub fn parts(&self) -> CachedParts {
        match self.strategy {
            _ if !self.enabled => CachedParts::default(),
            CacheStrategy::Auto => CachedParts { system: true, tools: true, messages: true },
            CacheStrategy::Disabled => CachedParts::default(),
            CacheStrategy::Manual(parts) => parts,
        }
    }
}

/// The places of the hints for a prompt cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheStrategy {
    /// The best places for the provider.
    #[default]
    Auto,
    /// No hints.
    Disabled,
    /// These parts.
    Manual(CachedParts),
}

/// The parts of a prompt to cache. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CachedParts {
    /// The standing instructions.
    #[serde(rename = "cache_system")]
    pub system: bool,
    /// The tools.
    #[serde(rename = "cache_tools")]
    pub tools: bool,
    /// The conversation up to its second-to-last message.
    #[serde(rename = "cache_messages")]
    pub messages: bool,
}

/// Structured output: an answer that must be JSON of a given schema.
///
/// The message's text is that JSON. The schema is sent to services that enforce it; for others the answer is
/// requested as a tool call, or in the instructions. Other tools stay usable. With a tool call, its JSON is
/// streamed as it comes. Text beside it is held back, because it may be the answer of a model that did not
/// call: it then comes in one piece, and is dropped if the call comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseFormat {
    /// The name of the schema, for the service.
    pub name: String,
    /// JSON Schema of the answer.
    pub schema: Json,
}

/// The rule for tool calls in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls.
    None,
    /// At least one call.
    Required,
    /// A call of this tool.
    Tool(String),
}

/// The amount of thinking before an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// None, or as little as the model can.
    #[default]
    Off,
    /// Very little.
    Minimal,
    /// A little.
    Low,
    /// A medium amount.
    Medium,
    /// A lot.
    High,
}

impl ThinkingLevel {
    /// Returns the next lower level that models distinguish: high, medium, low, off; `None` below off.
    pub fn lower(self) -> Option<Self> {
        match self {
            Self::High => Some(Self::Medium),
            Self::Medium => Some(Self::Low),
            Self::Low | Self::Minimal => Some(Self::Off),
            Self::Off => None,
        }
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// An event of a model's answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The model was reached and the answer begins.
    Start,
    /// A piece of text.
    TextDelta(String),
    /// A piece of reasoning.
    ThinkingDelta(String),
    /// A tool call begins.
    ToolCallStart {
        /// The index of the call in the answer, from 0.
        index: u32,
        /// The model's id for it.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A piece of a call's argument text.
    ToolCallDelta {
        /// The index of the call.
        index: u32,
        /// The piece of the text.
        arguments: String,
    },
    /// A call's arguments are complete.
    ToolCallEnd {
        /// The index of the call.
        index: u32,
    },
    /// The answer is complete.
    Done(Box<AssistantMessage>),
}

/// The text of an error, with the HTTP status if there was one. Create one from a text with `into()`.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorText {
    /// The HTTP status; none if no answer came.
    pub status: Option<u16>,
    /// The message of the service, or the problem.
    pub text: String,
}

impl ErrorText {
    fn map(self, change: impl FnOnce(String) -> String) -> Self {
        Self { text: change(self.text), ..self }
    }
}

impl From<&str> for ErrorText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for ErrorText {
    fn from(text: String) -> Self {
        Self { status: None, text }
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{:?}, {status}", self.text),
            None => write!(f, "{:?}", self.text),
        }
    }
}

/// The error of a model call.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Too many requests.
    #[error("rate limited by the service: {message}")]
    RateLimited {
        /// The wait that the service asks for.
        retry_after: Option<Duration>,
        /// The message of the service.
        message: ErrorText,
    },
    /// The service is too busy, or failed in a way that may pass (500, 502, 503, 504, 529).
    #[error("the service is overloaded or failed (status {status}): {message}")]
    Overloaded {
        /// HTTP status.
        status: u16,
        /// The wait that the service asks for.
        retry_after: Option<Duration>,
        /// The message of the service.
        message: String,
    },
    /// The service was not reached, or the connection broke.
    #[error("network: {0}")]
    Network(ErrorText),
    /// No server listens at an address of this machine, so waiting does not help.
    #[error("network: {0}")]
    Unreachable(ErrorText),
    /// No data came before the time-out.
    #[error("timed out: {0}")]
    Timeout(ErrorText),
    /// The key is missing or refused.
    #[error("not authorised: {0}")]
    Auth(ErrorText),
    /// The service refused the request.
    #[error("the service refused the request ({kind:?}, status {status}): {message}")]
    Api {
        /// The HTTP status; 0 if there was none.
        status: u16,
        /// The kind of the refusal.
        kind: ApiErrorKind,
        /// The message of the service.
        message: String,
    },
    /// The conversation does not fit into the model's window.
    #[error("the conversation does not fit into the model's context window: {0}")]
    ContextOverflow(ErrorText),
    /// The answer violates the protocol.
    #[error("protocol: {0}")]
    Protocol(ErrorText),
    /// The caller cancelled before an answer began.
    #[error("cancelled")]
    Cancelled,
    /// Any other error, for instance a scripted provider without answers left.
    #[error("{0}")]
    Other(ErrorText),
}

/// The kind of a service's refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// The service does not understand the request.
    InvalidRequest,
    /// The model or the path does not exist.
    NotFound,
    /// A content filter stopped the request or the answer.
    ContentFiltered,
    /// The model does not support this thinking level, or no thinking at all.
    Thinking,
    /// The spending limit of the key's account is reached; waiting does not help.
    Quota,
    /// Anything else.
    Other,
}

impl ProviderError {
    /// Returns true if the same request may succeed later: after rate limits, overload, network errors and
    /// time-outs.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Overloaded { .. } | Self::Network(_) | Self::Timeout(_)
        )
    }

    /// Returns the error with its text changed.
    pub fn with_text(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::RateLimited { retry_after, message } => {
                Self::RateLimited { retry_after, message: message.map(change) }
            }
            Self::Overloaded { status, retry_after, message } => {
                Self::Overloaded { status, retry_after, message: change(message) }
            }
            Self::Api { status, kind, message } => Self::Api { status, kind, message: change(message) },
            Self::Network(text) => Self::Network(text.map(change)),
            Self::Unreachable(text) => Self::Unreachable(text.map(change)),
            Self::Timeout(text) => Self::Timeout(text.map(change)),
            Self::Auth(text) => Self::Auth(text.map(change)),
            Self::ContextOverflow(text) => Self::ContextOverflow(text.map(change)),
            Self::Protocol(text) => Self::Protocol(text.map(change)),
            Self::Other(text) => Self::Other(text.map(change)),
            Self::Cancelled => Self::Cancelled,
        }
    }

    /// Returns the HTTP status of the error: of the response, or the one named in its body. `None` if no
    /// answer came.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Overloaded { status, .. } | Self::Api { status, .. } => (*status > 0).then_some(*status),
            Self::RateLimited { message, .. } => message.status,
            Self::Network(text)
            | Self::Unreachable(text)
            | Self::Timeout(text)
            | Self::Auth(text)
            | Self::ContextOverflow(text)
            | Self::Protocol(text)
            | Self::Other(text) => text.status,
            Self::Cancelled => None,
        }
    }

    /// Sets the HTTP status, unless the error has one.
    pub fn or_status(mut self, http: u16) -> Self {
        match &mut self {
            Self::Overloaded { status, .. } | Self::Api { status, .. } if *status == 0 => *status = http,
            Self::RateLimited { message: text, .. }
            | Self::Network(text)
            | Self::Unreachable(text)
            | Self::Timeout(text)
            | Self::Auth(text)
            | Self::ContextOverflow(text)
            | Self::Protocol(text)
            | Self::Other(text) => text.status = text.status.or(Some(http)),
            _ => {}
        }
        self
    }

    /// Returns the kind of the refusal, if the service refused the request.
    pub fn refusal(&self) -> Option<ApiErrorKind> {
        match self {
            Self::Api { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// Returns the wait that the service asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the kind of the error, as records name it.
    pub fn code(&self) -> ModelErrorCode {
        match self {
            Self::RateLimited { .. } => ModelErrorCode::RateLimited,
            Self::Overloaded { .. } => ModelErrorCode::Overloaded,
            Self::Network(_) => ModelErrorCode::Network,
            Self::Unreachable(_) => ModelErrorCode::Unreachable,
            Self::Timeout(_) => ModelErrorCode::Timeout,
            Self::Auth(_) => ModelErrorCode::Auth,
            Self::Api { .. } => ModelErrorCode::Api,
            Self::ContextOverflow(_) => ModelErrorCode::ContextOverflow,
            Self::Protocol(_) => ModelErrorCode::Protocol,
            Self::Cancelled => ModelErrorCode::Cancelled,
            Self::Other(_) => ModelErrorCode::Other,
        }
    }
}
