//! A provider for Anthropic's Messages API, streamed: `POST {base}/v1/messages`.
//!
//! Source of the format: <https://platform.claude.com/docs/en/api/messages> and the pages that it links to.

mod decode;
mod encode;
mod format;
mod messages;
mod traits;
mod wire;

use std::{mem, sync::Arc};

use archon_types::{CancellationToken, Provider, Request, Secret};

#[cfg(feature = "bedrock")]
pub(crate) use encode::Thinking;
pub use traits::{AnthropicTraits, ThinkingForm, ThinkingOff};

use crate::{
    Events,
    answer::Answer,
    connect::{ConnectOptions, SentAs, Service, connect_choices, service_methods},
    error::SetupError,
    http::{events::Exchange, sensitive},
};
use decode::MessagesDecoder;
use encode::Encoder;

/// The base URL of Anthropic's own service, for [`Anthropic::new`].
pub const ANTHROPIC_URL: &str = "https://api.anthropic.com";

/// The header that turns on beta features of the protocol.
const BETA: &str = "anthropic-beta";
/// The beta feature with which a request chooses the treatment of earlier thinking blocks after the conversation was
/// changed; see [`ChangedHistory`].
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// Options of [`Anthropic`].
///
/// ```
/// use archon_providers::{AnthropicOptions, AnthropicTraits};
///
/// // A service with the same protocol, a bearer token and models that are not Anthropic's.
/// let options = AnthropicOptions::default()
///     .with_bearer_token("token")
///     .with_traits(AnthropicTraits::OTHER);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnthropicOptions {
    /// The connection to the service; its key is sent as `x-api-key`. Headers may include `anthropic-beta`.
    pub connect: ConnectOptions,
    /// A bearer token, for services that accept a token instead of a key. Default: none.
    pub bearer_token: Option<Secret>,
    /// The value of `anthropic-version`. Default `2023-06-01`.
    pub version: String,
    /// The maximum number of output tokens for a request that sets no limit; the protocol requires one.
    /// Default 8,192.
    pub max_tokens: u32,
    /// The thinking budget in tokens for each thinking level, for models whose thinking is limited by a budget
    /// ([`ThinkingForm::Budget`](crate::ThinkingForm::Budget)).
    pub thinking_budgets: ThinkingBudgets,
    /// The abilities of all models. `None`, the default, derives the abilities of each model from its name.
    pub traits: Option<AnthropicTraits>,
    /// Decides what happens to earlier thinking blocks if the conversation before them was changed. Default
    /// [`ChangedHistory::DropThinking`].
    pub changed_history: ChangedHistory,
}

/// The thinking budget in tokens for each thinking level. A budget below 1,024, which the service refuses, is
/// raised to 1,024.
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

/// Decides what happens to earlier thinking blocks if the conversation before them was changed, for instance because
/// old messages were summarized. The newest models accept a thinking block only after the same messages as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangedHistory {
    /// The service leaves out the thinking blocks that no longer fit. To request this, the provider adds a beta header
    /// if the model is one of the newest and the request asks for thinking.
    #[default]
    DropThinking,
    /// The service refuses the request with an error.
    Refuse,
}

impl Default for AnthropicOptions {
    fn default() -> Self {
        Self {
            connect: ConnectOptions::default(),
            bearer_token: None,
            version: "2023-06-01".to_owned(),
            max_tokens: 8_192,
            thinking_budgets: ThinkingBudgets::default(),
            traits: None,
            changed_history: ChangedHistory::default(),
        }
    }
}

connect_choices!(AnthropicOptions with a key);

impl AnthropicOptions {
    /// Sets a bearer token, for services that accept a token instead of a key.
    pub fn with_bearer_token(mut self, token: impl Into<Secret>) -> Self {
        self.bearer_token = Some(token.into());
        self
    }

    /// Sets the abilities of all models. Without this, the abilities of each model are derived from its name.
    pub fn with_traits(mut self, traits: AnthropicTraits) -> Self {
        self.traits = Some(traits);
        self
    }
}

/// A provider for services with Anthropic's Messages API. Clones share one pool of connections.
///
/// ```no_run
/// use archon_providers::{ANTHROPIC_URL, Anthropic, AnthropicOptions};
///
/// let provider = Anthropic::new(ANTHROPIC_URL, AnthropicOptions::default().with_api_key("sk-secret"))?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Anthropic(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    /// The options; `connect` is empty here, because `service` was made from it.
    options: AnthropicOptions,
    /// The values of the caller's `anthropic-beta` headers.
    betas: Vec<Secret>,
}

impl Anthropic {
    /// Creates a provider for the service at `base_url`, such as [`ANTHROPIC_URL`]: the address without
    /// `/v1/messages`. Nothing is sent, and no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] if the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, mut options: AnthropicOptions) -> Result<Self, SetupError> {
        let versioned = base_url.trim().trim_end_matches('/').ends_with("/v1");
        let path = if versioned { "/messages" } else { "/v1/messages" };
        let connect = mem::take(&mut options.connect);
        let is_beta = |(name, _): &&(String, Secret)| name.eq_ignore_ascii_case(BETA);
        let betas = connect.headers.iter().filter(is_beta).map(|(_, value)| value.clone()).collect();
        let key = SentAs::Header("x-api-key");
        let service = connect.service_with("anthropic", base_url, path, key, |transport| {
            transport.set_open_header("anthropic-version", &options.version)?;
            options.bearer_token.iter().try_for_each(|token| transport.set_bearer(token))
        })?;
        Ok(Self(Arc::new(Inner { service, options, betas })))
    }
}

impl Provider for Anthropic {
    service_methods!(0.service);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let Inner { service, options, betas } = &*self.0;
        let transport = service.transport.clone();
        let traits = options.traits.unwrap_or_else(|| AnthropicTraits::of(&request.model));
        let encoder = Encoder::new(&request, traits, options);
        let answer = Answer::new(&request, &service.id, service.clock.clone());
        let decoder = MessagesDecoder::new(answer, encoder.format_tool().map(str::to_owned));
        if let Some(error) = encoder.refusal() {
            return Box::pin(Exchange::failed(transport, error, decoder));
        }
        let mut http = transport.post(encoder.body());
        if encoder.drops_changed_thinking() {
            http.headers_mut().remove(BETA);
            let all = betas.iter().map(|beta| beta.expose().as_str()).chain([BINDING_BETA]);
            let all = Secret::from(all.collect::<Vec<_>>().join(","));
            // The parts were checked when the provider was created.
            if let Some(value) = sensitive(&all) {
                http.headers_mut().insert(BETA, value);
            }
        }
        Box::pin(Exchange::new(transport, http, cancel, decoder))
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
