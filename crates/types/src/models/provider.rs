//! The [`Provider`] trait, which takes a request to a model and returns a stream of events.

use std::{fmt, sync::Arc, time::Duration};

use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    Json,
    messages::{AssistantMessage, Content, Message, Redactor, StopReason, Transcript},
    tools::ToolSpec,
    values::{ContentHash, Encoded},
};

use super::{failure_kind::ModelErrorCode, price::ModelPrice, reads::Reads};

/// A service or an engine that runs models.
///
/// A wrapper (recorder, cache, limit) is itself a provider; the macro
/// [`provider_methods_of`](crate::provider_methods_of) writes the methods that the wrapper does not change.
/// The stream is boxed because providers are passed as `Arc<dyn Provider>` everywhere.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{
///     BoxStream, CancellationToken, ModelEvent, Provider, ProviderError, Request, provider_methods_of,
/// };
///
/// /// Prints the number of messages of each request to another provider.
/// struct Printed {
///     inner: Arc<dyn Provider>,
/// }
///
/// impl Provider for Printed {
///     provider_methods_of!(inner: id, secrets, capabilities);
///
///     fn stream(
///         &self,
///         request: Request,
///         cancel: CancellationToken,
///     ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
///         println!("{}: {} messages", request.model, request.messages.len());
///         self.inner.stream(request, cancel)
///     }
/// }
/// ```
pub trait Provider: Send + Sync {
    /// Returns the stable lower-case name of the provider, for instance `openai`.
    fn id(&self) -> &str;

    /// Sends a request to the model. The stream ends after [`ModelEvent::Done`] or an error.
    ///
    /// A cancel ends the call at once. The last event is then a [`ModelEvent::Done`] whose message has the
    /// stop reason `Aborted` and the text so far; before the answer begins, it may be
    /// [`ProviderError::Cancelled`] instead. Dropping the stream ends the call too.
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>>;

    /// Returns the abilities of the model. Default: native tools; context window and price unknown.
    fn capabilities(&self, _model: &str) -> Capabilities {
        Capabilities::default()
    }

    /// Returns the redactors of the keys and tokens that the provider sends to the service, now or later. A
    /// run removes these secrets from everything that it keeps or shows, so a wrapper must return the
    /// redactors of the wrapped provider.
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
    /// True if the model takes tool specs and answers with tool calls. For other models, the prompt describes
    /// the tools, and the model writes its calls as text (text mode).
    pub native_tools: bool,
    /// True if the provider itself retries failed model calls. A run then makes no retries of its own.
    pub retries: bool,
    /// The model's context window in tokens; `None` if unknown.
    pub context_window: Option<u64>,
    /// True if the model has so few parameters that it needs short instructions and cannot make a plan.
    /// Planners then ask for one step at a time.
    pub is_small: bool,
    /// The price of the model's tokens, in millionths of a US dollar per million tokens; `None` if unknown.
    pub price: Option<ModelPrice>,
    /// The files that the model can read, as far as known: images and PDF files.
    pub reads: Reads,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            native_tools: true,
            retries: false,
            context_window: None,
            is_small: false,
            price: None,
            reads: Reads::default(),
        }
    }
}

/// A request to a model. A clone is cheap: the large parts are shared.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// The model, as the provider names it.
    pub model: String,
    /// The standing instructions (the system prompt).
    pub system: Option<Arc<Encoded<String>>>,
    /// The conversation. Each tool call in it is followed by its result.
    pub messages: Arc<Transcript>,
    /// The tools that the model may call.
    pub tools: Arc<Encoded<Vec<ToolSpec>>>,
    /// The options of the request. Each option has a default.
    pub options: Arc<RequestOptions>,
    /// The files that the model can read, as far as known. In place of other files, a provider sends a short
    /// text.
    pub reads: Reads,
}

impl Request {
    /// Creates a request without instructions and without tools.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self { model: model.into(), messages: Arc::new(messages.into_iter().collect()), ..Self::default() }
    }

    /// Returns a hash of everything that the model receives, as 16 hexadecimal digits. Times and token counts
    /// are not sent, so they are left out. Only the part of the conversation that is new since an earlier
    /// request is hashed again.
    pub fn content_hash(&self) -> String {
        let system = self.system.as_ref().map(|system| system.content_hash());
        let whole =
            (&self.model, system, self.tools.content_hash(), &self.options, self.messages.content_hash());
        format!("{:016x}", ContentHash::of(&whole))
    }
}

/// The options of a [`Request`]. Each option has a default. A service ignores options that it does not
/// support, except for `response_format`.
///
/// ```
/// use archon_types::{RequestOptions, ThinkingLevel, ToolChoice};
///
/// let options = RequestOptions::default()
///     .with_max_tokens(2_000)
///     .with_temperature(0.2)
///     .with_seed(7)
///     .with_stop(["END"])
///     .with_tool_choice(ToolChoice::Required)
///     .with_thinking(ThinkingLevel::Low);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// The maximum number of tokens of the answer; `None` for the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// The sampling seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The stop sequences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The rule whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// The thinking level.
    pub thinking: ThinkingLevel,
    /// The format of a structured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// The parts of the prompt that the service should cache.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub cache: CacheConfig,
}

crate::setters! {
impl RequestOptions {
    /// Sets the maximum number of tokens of an answer. Without it, the provider's default applies.
    pub fn with_max_tokens(self, tokens: u32) -> Self { self.max_tokens = Some(tokens) }

    /// Sets the sampling temperature: higher values make answers more varied. Default: that of the service.
    pub fn with_temperature(self, temperature: f32) -> Self { self.temperature = Some(temperature) }

    /// Sets the sampling seed: with the same seed, a service that supports seeds gives more similar answers.
    pub fn with_seed(self, seed: u64) -> Self { self.seed = Some(seed) }

    /// Sets the stop sequences: the model stops when it writes one of them. Default none.
    pub fn with_stop(self, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.stop = texts.into_iter().map(Into::into).collect()
    }

    /// Sets the rule whether the model may, must or must not call tools. Default [`ToolChoice::Auto`].
    pub fn with_tool_choice(self, choice: ToolChoice) -> Self { self.tool_choice = choice }

    /// Sets the amount of thinking before an answer. Default [`ThinkingLevel::Off`].
    pub fn with_thinking(self, level: ThinkingLevel) -> Self { self.thinking = level }
}
}

/// The hints that tell a service which parts of the prompt to cache. Only services that cache on request get
/// hints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// True if hints are sent. Default true.
    pub enabled: bool,
    /// The parts of the prompt that get hints.
    pub strategy: CacheStrategy,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self::new(CacheStrategy::Auto)
    }
}

impl CacheConfig {
    /// Creates a configuration that sends hints for the parts of the prompt that `strategy` selects.
    pub fn new(strategy: CacheStrategy) -> Self {
        Self { enabled: true, strategy }
    }

    /// Creates a configuration that sends no hints.
    pub fn off() -> Self {
        Self { enabled: false, strategy: CacheStrategy::Disabled }
    }

    /// Returns the parts of the prompt to cache: those of the strategy, or none if hints are disabled.
    pub fn parts(&self) -> CachedParts {
        match self.strategy {
            _ if !self.enabled => CachedParts::default(),
            CacheStrategy::Auto => CachedParts { system: true, tools: true, messages: true },
            CacheStrategy::Disabled => CachedParts::default(),
            CacheStrategy::Manual(parts) => parts,
        }
    }
}

/// The strategy that chooses the parts of a prompt to cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheStrategy {
    /// All parts: the instructions, the tools and the conversation.
    #[default]
    Auto,
    /// No parts.
    Disabled,
    /// The given parts.
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
/// The text of the answer message is that JSON. The schema is sent to services that enforce it; other
/// services get the request for JSON as a tool call, or in the instructions. Other tools stay usable. If the
/// JSON comes as a tool call, it is streamed as it arrives. Other text is kept back until the answer is
/// complete: if the model did not call the tool, this text is the answer and is sent in one piece; otherwise
/// it is dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseFormat {
    /// The name of the schema, which the service gets.
    pub name: String,
    /// The JSON Schema of the answer.
    pub schema: Json,
}

/// The rule for tool calls in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides if it calls tools.
    #[default]
    Auto,
    /// The model must not call tools.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call this tool.
    Tool(String),
}

/// The amount of thinking before an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No thinking, or as little as the model allows.
    #[default]
    Off,
    /// Very little thinking.
    Minimal,
    /// Little thinking.
    Low,
    /// A medium amount of thinking.
    Medium,
    /// Much thinking.
    High,
}

impl ThinkingLevel {
    /// Returns the next lower level, in the order high, medium, low, off. Minimal counts as low. `None` for
    /// off.
    pub fn lower(self) -> Option<Self> {
        match self {
            Self::High => Some(Self::Medium),
            Self::Medium => Some(Self::Low),
            Self::Low | Self::Minimal => Some(Self::Off),
            Self::Off => None,
        }
    }
}

crate::values::named! { ThinkingLevel:
    Off = "off",
    Minimal = "minimal",
    Low = "low",
    Medium = "medium",
    High = "high",
}

/// An event of a model's answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The model was reached and the answer begins.
    Start,
    /// A piece of text.
    TextDelta(String),
    /// A piece of the model's thinking.
    ThinkingDelta(String),
    /// The start of a tool call.
    ToolCallStart {
        /// The index of the call among the tool calls of the answer, from 0.
        index: u32,
        /// The model's id for the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// A piece of the argument text of a tool call.
    ToolCallDelta {
        /// The index of the call among the tool calls of the answer, from 0.
        index: u32,
        /// The piece of the argument text.
        arguments: String,
    },
    /// The arguments of a tool call are complete.
    ToolCallEnd {
        /// The index of the call among the tool calls of the answer, from 0.
        index: u32,
    },
    /// The complete answer, as the last event.
    Done(Box<AssistantMessage>),
}

impl ModelEvent {
    /// Returns the events of an answer with one block, a text or a tool call, for a provider that asks no model.
    /// `provider` is the id of the provider, and `model` the model of the request.
    pub fn answer(provider: &str, model: String, block: Content) -> [Result<Self, ProviderError>; 2] {
        let stop_reason = match block.as_tool_call() {
            Some(_) => StopReason::ToolUse,
            None => StopReason::Stop,
        };
        let answer = AssistantMessage {
            content: vec![block],
            stop_reason,
            model,
            provider: provider.to_owned(),
            ..AssistantMessage::default()
        };
        [Ok(Self::Start), Ok(Self::Done(Box::new(answer)))]
    }
}

/// The text of an error, with the HTTP status if there is one. A string converts into it with `into()`.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorText {
    /// The HTTP status; `None` if no response came.
    pub status: Option<u16>,
    /// The message of the service, or a description of the problem.
    pub text: String,
}

crate::values::from_text!(ErrorText = |text| ErrorText { status: None, text });

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
    /// The service received too many requests.
    #[error("rate limited by the service: {message}")]
    RateLimited {
        /// The delay that the service asks for before the next request; `None` if it names none.
        retry_after: Option<Duration>,
        /// The message of the service.
        message: ErrorText,
    },
    /// The service is too busy, or failed temporarily (500, 502, 503, 504, 529).
    #[error("the service is overloaded or failed (status {status}): {message}")]
    Overloaded {
        /// The HTTP status.
        status: u16,
        /// The delay that the service asks for before the next request; `None` if it names none.
        retry_after: Option<Duration>,
        /// The message of the service.
        message: String,
    },
    /// The service was not reached, or the connection broke.
    #[error("network: {0}")]
    Network(ErrorText),
    /// No server at the address can be used: nothing listens there (on this machine), or the server does not
    /// use TLS. A retry does not help.
    #[error("network: {0}")]
    Unreachable(ErrorText),
    /// The request timed out: no data came, or the answer was not complete in time.
    #[error("the request to the model timed out: {0}")]
    Timeout(ErrorText),
    /// The API key is missing, or the service refuses it.
    #[error("not authorised: {0}")]
    Auth(ErrorText),
    /// The service refused the request.
    #[error("the service refused the request ({kind:?}, status {status}): {message}")]
    Api {
        /// The HTTP status; 0 if the error has no status.
        status: u16,
        /// The kind of the refusal.
        kind: ApiErrorKind,
        /// The message of the service.
        message: String,
    },
    /// The conversation does not fit into the model's context window.
    #[error("the conversation does not fit into the model's context window: {0}")]
    ContextOverflow(ErrorText),
    /// The answer of the service violates the protocol.
    #[error("the answer violates the protocol: {0}")]
    Protocol(ErrorText),
    /// The caller cancelled the request before the answer began.
    #[error("the request to the model was cancelled")]
    Cancelled,
    /// Any other error, for instance because a scripted provider (for tests) has no more answers.
    #[error("{0}")]
    Other(ErrorText),
}

/// The kind of a refusal by the service.
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
    /// Any other refusal.
    Other,
}

/// Expands to a pattern that matches the variants whose text is an [`ErrorText`].
macro_rules! with_error_text {
    ($error:ident) => {
        Self::RateLimited { message: $error, .. }
            | Self::Network($error)
            | Self::Unreachable($error)
            | Self::Timeout($error)
            | Self::Auth($error)
            | Self::ContextOverflow($error)
            | Self::Protocol($error)
            | Self::Other($error)
    };
}

impl ProviderError {
    /// Returns true after a rate limit, overload, network error or timeout: the same request may succeed
    /// later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Overloaded { .. } | Self::Network(_) | Self::Timeout(_)
        )
    }

    /// Returns the text of the error, without the words that `Display` adds. `None` if the error has no text
    /// of its own.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Overloaded { message, .. } | Self::Api { message, .. } => Some(message),
            with_error_text!(error) => Some(&error.text),
            Self::Cancelled => None,
        }
    }

    /// Returns the error with its text replaced by the result of `change`.
    ///
    /// ```
    /// use archon_types::{ApiErrorKind, ProviderError};
    ///
    /// let message = "no such model".to_owned();
    /// let error = ProviderError::Api { status: 404, kind: ApiErrorKind::NotFound, message };
    /// let error = error.with_text(|text| format!("{text}: qwen33"));
    /// assert_eq!(error.text(), Some("no such model: qwen33"));
    /// ```
    pub fn with_text(mut self, change: impl FnOnce(String) -> String) -> Self {
        match &mut self {
            Self::Overloaded { message, .. } | Self::Api { message, .. } => {
                *message = change(std::mem::take(message));
            }
            with_error_text!(error) => error.text = change(std::mem::take(&mut error.text)),
            Self::Cancelled => {}
        }
        self
    }

    /// Returns the HTTP status of the response, or the status that the response body names. `None` if no
    /// response came.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Overloaded { status, .. } | Self::Api { status, .. } => (*status > 0).then_some(*status),
            with_error_text!(error) => error.status,
            Self::Cancelled => None,
        }
    }

    /// Sets the HTTP status, unless the error already has one.
    ///
    /// ```
    /// use archon_types::{ApiErrorKind, ProviderError};
    ///
    /// let message = "no such model".to_owned();
    /// let error = ProviderError::Api { status: 0, kind: ApiErrorKind::NotFound, message };
    /// assert_eq!(error.or_status(404).status(), Some(404));
    /// ```
    pub fn or_status(mut self, http: u16) -> Self {
        match &mut self {
            Self::Overloaded { status, .. } | Self::Api { status, .. } if *status == 0 => *status = http,
            with_error_text!(error) => error.status = error.status.or(Some(http)),
            _ => {}
        }
        self
    }

    /// Returns the kind of the refusal for [`Api`](Self::Api); `None` for any other error.
    pub fn refusal(&self) -> Option<ApiErrorKind> {
        match self {
            Self::Api { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// Returns the delay that the service asked for before the next request; `None` if it named none.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the kind of the error, as records store it.
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
