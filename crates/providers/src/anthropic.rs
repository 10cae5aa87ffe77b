//! Anthropic's Messages, streamed: `POST {base}/v1/messages`.
//!
//! Source of the format: <https://platform.claude.com/docs/en/api/messages> and the pages it links.

mod decode;
mod encode;
mod format;
mod messages;
mod traits;
mod wire;

use std::{fmt, sync::Arc};

use archon_types::{
    ApiErrorKind, BoxStream, CancellationToken, Clock, ModelEvent, Provider, ProviderError, Request, Secret,
};

#[cfg(feature = "bedrock")]
pub(crate) use encode::{Thinking, thinking};
pub use traits::{AnthropicTraits, ThinkingForm, ThinkingOff};

use crate::{
    answer::Answer,
    error::SetupError,
    http::{HttpOptions, Transport, events::Exchange, sensitive},
};
use decode::MessagesDecoder;
use encode::Encoder;

/// Where Anthropic's own service is.
pub const ANTHROPIC_URL: &str = "https://api.anthropic.com";

/// The header that turns on what is not in the protocol yet.
const BETA: &str = "anthropic-beta";
/// Lets a request say what is to be done with thinking whose conversation was changed.
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// The choices of an [`Anthropic`], each with a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct AnthropicOptions {
    /// The provider's id in messages and records; `anthropic`.
    pub id: String,
    /// Sent as `x-api-key`.
    pub api_key: Option<Secret>,
    /// Sent as a bearer token, for access that is not by key. May be combined with headers that turn on
    /// a beta.
    pub bearer_token: Option<Secret>,
    /// More headers for every request, for instance `anthropic-beta`. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// Sent as `anthropic-version`; `2023-06-01`.
    pub version: String,
    /// Most tokens of an answer whose request does not say it: the protocol demands a limit. 8,192.
    pub max_tokens: u32,
    /// How many tokens each level of thinking may take, on models that take a number.
    pub thinking_budgets: ThinkingBudgets,
    /// What the models can do; by default known from their names.
    pub traits: Option<AnthropicTraits>,
    /// What becomes of earlier thinking after the conversation before it was changed.
    pub changed_history: ChangedHistory,
    /// How the service is reached.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

/// Tokens that a model may think, by level. What the service does not take is raised to 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the levels of thinking")]
pub struct ThinkingBudgets {
    pub minimal: u32,
    pub low: u32,
    pub medium: u32,
    pub high: u32,
}

impl Default for ThinkingBudgets {
    fn default() -> Self {
        Self { minimal: 128, low: 512, medium: 2_048, high: 8_192 }
    }
}

/// What becomes of earlier thinking after the conversation before it was changed, for instance
/// compacted: the newest models tie their thinking to what led to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangedHistory {
    /// The service leaves it out. Takes a beta header, which is sent to models that need it.
    #[default]
    DropThinking,
    /// The service refuses the request.
    Refuse,
}

impl Default for AnthropicOptions {
    fn default() -> Self {
        Self {
            id: "anthropic".to_owned(),
            api_key: None,
            bearer_token: None,
            headers: Vec::new(),
            version: "2023-06-01".to_owned(),
            max_tokens: 8_192,
            thinking_budgets: ThinkingBudgets::default(),
            traits: None,
            changed_history: ChangedHistory::default(),
            http: HttpOptions::default(),
            clock: None,
        }
    }
}

impl AnthropicOptions {
    /// The same with this key.
    pub fn with_api_key(mut self, key: impl Into<Secret>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The same with this bearer token.
    pub fn with_bearer_token(mut self, token: impl Into<Secret>) -> Self {
        self.bearer_token = Some(token.into());
        self
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same for models that can do this, whatever their names.
    pub fn with_traits(mut self, traits: AnthropicTraits) -> Self {
        self.traits = Some(traits);
        self
    }

    /// The same with other ways to reach the service.
    pub fn with_http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }

    /// The same with this clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}

/// A service that speaks Anthropic's Messages. Clones share one pool of connections.
#[derive(Clone)]
pub struct Anthropic(Arc<Inner>);

struct Inner {
    id: String,
    max_tokens: u32,
    budgets: ThinkingBudgets,
    traits: Option<AnthropicTraits>,
    changed_history: ChangedHistory,
    /// The betas that the caller asks for.
    betas: Vec<Secret>,
    clock: Option<Arc<dyn Clock>>,
    transport: Arc<Transport>,
}

impl Anthropic {
    /// A service at `base_url`, which ends before `/v1/messages`: [`ANTHROPIC_URL`]. Nothing is sent, and
    /// no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] when the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: AnthropicOptions) -> Result<Self, SetupError> {
        let versioned = base_url.trim().trim_end_matches('/').ends_with("/v1");
        let path = if versioned { "/messages" } else { "/v1/messages" };
        let mut transport = Transport::new(base_url, path, options.http)?;
        transport.send_json();
        transport.set_open_header("anthropic-version", &options.version)?;
        if let Some(key) = &options.api_key {
            // Keys are often read from files, with their line ends.
            transport.set_header("x-api-key", &Secret::from(key.expose().trim()))?;
        }
        if let Some(token) = &options.bearer_token {
            transport.set_bearer(token)?;
        }
        let mut betas = Vec::new();
        for (name, value) in &options.headers {
            transport.set_header(name, value)?;
            if name.eq_ignore_ascii_case(BETA) {
                betas.push(value.clone());
            }
        }
        Ok(Self(Arc::new(Inner {
            id: options.id,
            max_tokens: options.max_tokens,
            budgets: options.thinking_budgets,
            traits: options.traits,
            changed_history: options.changed_history,
            betas,
            clock: options.clock,
            transport: Arc::new(transport),
        })))
    }
}

impl Provider for Anthropic {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let inner = &*self.0;
        let transport = inner.transport.clone();
        let traits = inner.traits.unwrap_or_else(|| AnthropicTraits::of(&request.model));
        let encoder = Encoder::new(&request, traits, inner);
        let answer = Answer::new(&request, &inner.id, inner.clock.clone());
        let decoder = MessagesDecoder::new(answer, encoder.format_tool().map(str::to_owned));
        if let Some(error) = encoder.refusal() {
            return Box::pin(Exchange::failed(transport, error, decoder));
        }
        let mut http = transport.post(encoder.body());
        if encoder.drops_changed_thinking() {
            http.headers_mut().remove(BETA);
            let all = inner.betas.iter().map(|beta| beta.expose().as_str()).chain([BINDING_BETA]);
            let all = Secret::from(all.collect::<Vec<_>>().join(","));
            // The parts were checked when the provider was built.
            if let Some(value) = sensitive(&all) {
                http.headers_mut().insert(BETA, value);
            }
        }
        Box::pin(Exchange::new(transport, http, cancel, decoder))
    }

    fn capabilities(&self, model: &str) -> archon_types::Capabilities {
        crate::catalogue::capabilities(self.id(), model)
    }
}

/// What cannot be asked and must not silently be left out.
fn refused(message: &str) -> ProviderError {
    ProviderError::Api { status: 0, kind: ApiErrorKind::InvalidRequest, message: message.to_owned() }
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anthropic")
            .field("id", &self.0.id)
            .field("transport", &self.0.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AnthropicOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicOptions")
            .field("id", &self.id)
            .field("api_key", &self.api_key)
            .field("bearer_token", &self.bearer_token)
            .field("headers", &self.headers)
            .field("version", &self.version)
            .field("max_tokens", &self.max_tokens)
            .field("thinking_budgets", &self.thinking_budgets)
            .field("traits", &self.traits)
            .field("changed_history", &self.changed_history)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "anthropic/error_tests.rs"]
mod error_tests;
#[cfg(test)]
#[path = "anthropic/request_tests.rs"]
mod request_tests;
#[cfg(test)]
#[path = "anthropic/stream_tests.rs"]
mod stream_tests;
