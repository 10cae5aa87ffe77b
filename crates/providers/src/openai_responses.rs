//! OpenAI's Responses API, streamed: `POST {base}/responses`.
//!
//! Requests ask the service to store nothing. The model's reasoning comes back encrypted, and is kept as the
//! [`signature`](archon_types::Content::Thinking) of a thinking block. The next request to a provider with the same id
//! sends the reasoning back, so that the model continues its thinking after a tool call. OpenAI and Azure accept the
//! reasoning only from the organisation or resource that got it. Therefore give providers of different organisations or
//! resources different ids.

mod decode;
mod encode;
mod wire;

use std::sync::Arc;

use archon_types::{CancellationToken, Clock, Provider, Request};

use crate::{
    Events,
    blocks::Blocks,
    connect::{ConnectOptions, SentAs, Service, connect_choices, service_methods},
    error::SetupError,
    http::events::Exchange,
};

pub(crate) use {decode::ResponsesDecoder, encode::body};

/// The differences of a service from OpenAI's Responses API; the defaults suit OpenAI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponsesCompat {
    /// The models that reason (think before they answer). Their requests ask for encrypted reasoning, set an
    /// effort, and set no temperature. Default [`ReasoningModels::ByName`].
    pub reasoning_models: ReasoningModels,
    /// The summary of its reasoning that the model is asked for, unless the thinking level is off. Default
    /// [`ReasoningSummary::Auto`].
    pub reasoning_summary: ReasoningSummary,
    /// A key that makes hits of the service's prompt cache more likely: requests with the same beginning and
    /// the same key share the cache. Use one key for each agent or user; with `None` the service chooses.
    pub prompt_cache_key: Option<String>,
}

/// The models that reason: those that think before they answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningModels {
    /// Every model, except those of OpenAI that are known by name not to reason.
    #[default]
    ByName,
    /// All models.
    All,
    /// No model.
    None,
}

/// The summary of its reasoning that a model is asked for. For some models OpenAI gives summaries only to verified
/// organisations. Other organisations must set [`Off`](Self::Off), because OpenAI refuses their requests otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningSummary {
    /// No summary.
    Off,
    /// A summary with as much detail as the model supports.
    #[default]
    Auto,
    /// A short summary.
    Concise,
    /// A long summary.
    Detailed,
}

/// Options of [`OpenAiResponses`].
///
/// ```
/// use archon_providers::{ReasoningSummary, ResponsesCompat, ResponsesOptions};
///
/// let mut compat = ResponsesCompat::default();
/// compat.reasoning_summary = ReasoningSummary::Concise;
/// let options = ResponsesOptions::default().with_api_key("sk-secret").with_compat(compat);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResponsesOptions {
    /// The connection to the service; its key is sent as a bearer token.
    pub connect: ConnectOptions,
    /// The differences of the service from OpenAI's Responses API.
    pub compat: ResponsesCompat,
}

connect_choices!(ResponsesOptions with a key);

impl ResponsesOptions {
    /// Sets the differences of the service from OpenAI's Responses API.
    pub fn with_compat(mut self, compat: ResponsesCompat) -> Self {
        self.compat = compat;
        self
    }
}

/// A provider for a service with the Responses API. Clones share one pool of connections.
///
/// ```no_run
/// use archon_providers::{OpenAiResponses, ResponsesOptions};
///
/// let options = ResponsesOptions::default().with_api_key("sk-secret");
/// let provider = OpenAiResponses::new("https://api.openai.com/v1", options)?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenAiResponses(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    compat: ResponsesCompat,
}

impl OpenAiResponses {
    /// Creates a provider for the service at `base_url`, which ends before `/responses`:
    /// `https://api.openai.com/v1`. Nothing is sent, and no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] if the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: ResponsesOptions) -> Result<Self, SetupError> {
        let ResponsesOptions { connect, compat } = options;
        let service = connect.service("openai-responses", base_url, "/responses", SentAs::Bearer)?;
        Ok(Self(Arc::new(Inner { service, compat })))
    }
}

impl Provider for OpenAiResponses {
    service_methods!(0.service);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let Inner { service, compat } = &*self.0;
        let transport = service.transport.clone();
        let sent = transport.post(body(&request, compat, &service.id));
        let decoder = decoder(&service.id, &request, service.clock.clone());
        Box::pin(Exchange::new(transport, sent, cancel, decoder))
    }
}

/// Returns the decoder of the answer to a request.
pub(crate) fn decoder(provider: &str, request: &Request, clock: Option<Arc<dyn Clock>>) -> ResponsesDecoder {
    ResponsesDecoder::new(Blocks::new(request, provider, clock))
}

#[cfg(test)]
#[path = "openai_responses/tests.rs"]
mod tests;
