//! Models: one request in, a stream of events out.

use std::{fmt, sync::Arc, time::Duration};

use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    AssistantMessage, Encoded, Json, Message, ModelErrorCode, ModelPrice, Redactor, ToolSpec, Transcript,
    content_hash::ContentHash,
};

/// A service or an engine that runs models.
///
/// A wrapper (recorder, cache, limit) is a provider around a provider. It is passed as `Arc<dyn Provider>` everywhere, and
/// gives a boxed stream: a native method would save one `Box::pin`.
pub trait Provider: Send + Sync {
    /// A stable lower-case name, for instance `openai`.
    fn id(&self) -> &str;

    /// Asks the model. The stream ends after [`ModelEvent::Done`] or an error.
    ///
    /// Cancelling ends the call at once: the last event is then a [`ModelEvent::Done`] whose message
    /// has stop reason `Aborted` and what was said so far. Dropping the stream ends the call too.
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>>;

    /// What the model can do; the default is everything that a loop needs.
    fn capabilities(&self, _model: &str) -> Capabilities {
        Capabilities::default()
    }

    /// Who knows the keys and tokens that are sent to the service, also those that come later. A run takes them out of
    /// what it keeps and shows, so a wrapper has to say those of the providers that it wraps.
    fn secrets(&self) -> Vec<Redactor> {
        Vec::new()
    }
}

/// What a model behind a [`Provider`] can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Takes tool specs and answers with tool calls. Without it the loop speaks text.
    pub native_tools: bool,
    /// The provider retries by itself; the loop refuses to stack its own retries on that.
    pub retries: bool,
    /// Tokens of the model's context window, where the provider knows.
    pub context_window: Option<u64>,
    /// The model has so few parameters that it needs short instructions and cannot shape a plan: planners ask it for one
    /// step at a time.
    pub is_small: bool,
    /// What its tokens cost, where the provider knows: millionths of a US dollar for a million tokens.
    pub price: Option<ModelPrice>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { native_tools: true, retries: false, context_window: None, is_small: false, price: None }
    }
}

/// All that a model is told. Cloning one is cheap: the large parts are shared.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// The model, as the provider names it.
    pub model: String,
    /// Standing instructions.
    pub system: Option<Arc<Encoded<String>>>,
    /// The conversation. Every tool call in it has its result, right after the message that holds it.
    pub messages: Arc<Transcript>,
    /// The tools that may be called.
    pub tools: Arc<Encoded<Vec<ToolSpec>>>,
    /// Everything with a default.
    pub options: Arc<RequestOptions>,
}

impl Request {
    /// A request without tools.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self { model: model.into(), messages: Arc::new(messages.into_iter().collect()), ..Self::default() }
    }

    /// A hash of everything that the model is told, 16 hexadecimal digits. Times and tokens do not count:
    /// they are not sent. Costs no more than what is new since an earlier request of the conversation.
    pub fn content_hash(&self) -> String {
        let system = self.system.as_ref().map(|system| system.content_hash());
        let whole =
            (&self.model, system, self.tools.content_hash(), &self.options, self.messages.content_hash());
        format!("{:016x}", ContentHash::of(&whole))
    }
}

/// The parts of a [`Request`] that have defaults. What a service does not support is left out, not
/// refused, except for `response_format`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Most tokens of the answer; the provider's default if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Sampling seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Whether tools may, must or must not be called.
    pub tool_choice: ToolChoice,
    /// How much the model thinks first.
    pub thinking: ThinkingLevel,
    /// The form of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// What of the prompt the service is told to cache.
    #[serde(skip_serializing_if = "is_default")]
    pub cache: CacheConfig,
}

impl RequestOptions {
    /// The same options with a largest answer, in tokens.
    pub fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// The same options with a temperature.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// The same options with a seed.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The same options with texts that end an answer.
    pub fn with_stop<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.stop = texts.into_iter().map(Into::into).collect();
        self
    }

    /// The same options with another choice of tools.
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// The same options, thinking so much.
    pub fn with_thinking(mut self, level: ThinkingLevel) -> Self {
        self.thinking = level;
        self
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Hints for services that cache the beginning of a prompt only where they are told to. Others cache by
/// themselves and are told nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// Whether any hint is given. Default true.
    pub enabled: bool,
    /// Where the hints are put.
    pub strategy: CacheStrategy,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self::new(CacheStrategy::Auto)
    }
}

impl CacheConfig {
    /// Hints put so.
    pub fn new(strategy: CacheStrategy) -> Self {
        Self { enabled: true, strategy }
    }

    /// No hints.
    pub fn off() -> Self {
        Self { enabled: false, strategy: CacheStrategy::Disabled }
    }

    /// What is cached: system, tools and messages, as [`CacheStrategy::Manual`] has them.
    pub fn parts(&self) -> CachedParts {
        match self.strategy {
            _ if !self.enabled => CachedParts::default(),
            CacheStrategy::Auto => CachedParts { system: true, tools: true, messages: true },
            CacheStrategy::Disabled => CachedParts::default(),
            CacheStrategy::Manual(parts) => parts,
        }
    }
}

/// Where the hints for a prompt cache are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheStrategy {
    /// Where the provider finds them best.
    #[default]
    Auto,
    /// Nowhere.
    Disabled,
    /// On these parts.
    Manual(CachedParts),
}

/// The parts of a prompt that end in a hint for the cache. By default none.
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

/// An answer that must be JSON of a given schema.
///
/// The message's text is that JSON. Services that enforce a schema are sent it; from others the answer is
/// asked for as a call of a tool that stands for it, or in the instructions. Other tools stay usable. Where
/// it is asked for as a call, the JSON is streamed as it comes, but text beside it is not: nobody can tell yet
/// whether it is the answer of a model that did not call. It comes in one piece as soon as that is known, and is
/// left out if the call comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseFormat {
    /// Names the schema for the service.
    pub name: String,
    /// JSON Schema of the answer.
    pub schema: Json,
}

/// Whether tools may, must or must not be called.
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

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// Not at all, or as little as the model can.
    #[default]
    Off,
    /// A glance.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// A lot.
    High,
}

impl ThinkingLevel {
    /// The next level below that models tell apart: high, medium, low, off; `None` below off.
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

/// What a model says while it answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The model was reached and begins.
    Start,
    /// A piece of text.
    TextDelta(String),
    /// A piece of reasoning.
    ThinkingDelta(String),
    /// A tool call begins.
    ToolCallStart {
        /// The call's place in the answer, from 0.
        index: u32,
        /// The model's id for it.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A piece of a call's argument text.
    ToolCallDelta {
        /// Which call.
        index: u32,
        /// Argument text as it came.
        arguments: String,
    },
    /// A call's arguments are complete.
    ToolCallEnd {
        /// Which call.
        index: u32,
    },
    /// The answer is complete.
    Done(Box<AssistantMessage>),
}

/// The words of an error, and the HTTP status that they came with. Made from a text by `into()`.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorText {
    /// HTTP status; none where no answer came.
    pub status: Option<u16>,
    /// What was said, or what is wrong.
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

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Too many requests.
    #[error("rate limited by the service: {message}")]
    RateLimited {
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
        /// What it said.
        message: ErrorText,
    },
    /// The service is up and too busy, or failed in a way that passes (500, 502, 503, 504, 529).
    #[error("the service is overloaded or failed (status {status}): {message}")]
    Overloaded {
        /// HTTP status.
        status: u16,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
        /// What it said.
        message: String,
    },
    /// The service was not reached, or the connection broke.
    #[error("network: {0}")]
    Network(ErrorText),
    /// Nobody listens at an address of this machine: waiting does not help.
    #[error("network: {0}")]
    Unreachable(ErrorText),
    /// Nothing came for too long.
    #[error("timed out: {0}")]
    Timeout(ErrorText),
    /// The key is missing or refused.
    #[error("not authorised: {0}")]
    Auth(ErrorText),
    /// The service refused the request.
    #[error("the service refused the request ({kind:?}, status {status}): {message}")]
    Api {
        /// HTTP status; 0 when there was none.
        status: u16,
        /// What kind of refusal.
        kind: ApiErrorKind,
        /// What it said.
        message: String,
    },
    /// The conversation does not fit into the model's window.
    #[error("the conversation does not fit into the model's context window: {0}")]
    ContextOverflow(ErrorText),
    /// The answer was not what the protocol says.
    #[error("protocol: {0}")]
    Protocol(ErrorText),
    /// The caller cancelled before anything came.
    #[error("cancelled")]
    Cancelled,
    /// Anything else, for instance a script that ran out.
    #[error("{0}")]
    Other(ErrorText),
}

/// What kind of refusal a service gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// The request makes no sense to the service.
    InvalidRequest,
    /// The model or the path does not exist.
    NotFound,
    /// A filter stopped the request or the answer.
    ContentFiltered,
    /// The model does not think that much, or not at all.
    Thinking,
    /// What the key's account may spend is spent; no wait helps.
    Quota,
    /// Anything else.
    Other,
}

impl ProviderError {
    /// Whether the same request may succeed later: rate limits, overload, network and time-outs.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Overloaded { .. } | Self::Network(_) | Self::Timeout(_)
        )
    }

    /// The same error with its text changed.
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

    /// The HTTP status that the error came with: of the answer, or the one that the service names in it. `None` where no
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

    /// The same error with this HTTP status, unless it has one.
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

    /// What kind of refusal it was, if the service refused the request.
    pub fn refusal(&self) -> Option<ApiErrorKind> {
        match self {
            Self::Api { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// How long the service asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The kind, as records name it.
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
