//! OpenAI's Responses, streamed: `POST {base}/responses`.
//!
//! The service is asked to store nothing. The model's reasoning comes back encrypted, is kept in the
//! [`signature`](archon_types::Content::Thinking) of its thinking, and goes along with the next request to
//! the provider of the same id, so that a model goes on thinking where it stopped to call a tool. Providers
//! of different organisations or resources therefore need different ids.

mod decode;
mod encode;
mod wire;

use std::sync::Arc;

use archon_types::{
    BoxStream, CancellationToken, Clock, ModelEvent, Provider, ProviderError, Redactor, Request,
};

use crate::{
    blocks::Blocks,
    connect::{ConnectOptions, SentAs, Service, connect_choices},
    error::SetupError,
    http::events::Exchange,
};

pub(crate) use {decode::ResponsesDecoder, encode::body};

/// What a service that speaks Responses does differently. The defaults are OpenAI's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponsesCompat {
    /// Which of its models reason. These are asked for their encrypted reasoning, take an effort, and
    /// take no temperature.
    pub reasoning_models: ReasoningModels,
    /// The summary of its reasoning that a model is asked for when it is asked to think.
    pub reasoning_summary: ReasoningSummary,
    /// Requests that begin alike and share this key are likelier to find each other's cache. One key for
    /// each agent or user fits; unset leaves it to the service.
    pub prompt_cache_key: Option<String>,
}

/// Which models reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningModels {
    /// Those whose names are not of OpenAI's models that do not.
    #[default]
    ByName,
    /// All of them.
    All,
    /// None.
    None,
}

/// The summary of its reasoning that a model is asked for. OpenAI shows summaries of some models to
/// verified organisations only and refuses others; for them it is switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningSummary {
    /// None.
    Off,
    /// As detailed as the model can.
    #[default]
    Auto,
    /// Short.
    Concise,
    /// Long.
    Detailed,
}

/// The choices of an [`OpenAiResponses`], each with a default.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResponsesOptions {
    /// How the service is reached; its key is sent as a bearer token.
    pub connect: ConnectOptions,
    /// What the service does differently.
    pub compat: ResponsesCompat,
}

connect_choices!(ResponsesOptions with a key);

impl ResponsesOptions {
    /// The same with other differences.
    pub fn with_compat(mut self, compat: ResponsesCompat) -> Self {
        self.compat = compat;
        self
    }
}

/// A service that speaks Responses. Clones share one pool of connections.
#[derive(Clone, Debug)]
pub struct OpenAiResponses(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    compat: ResponsesCompat,
}

impl OpenAiResponses {
    /// A service at `base_url`, which ends before `/responses`: `https://api.openai.com/v1`.
    /// Nothing is sent, and no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] when the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: ResponsesOptions) -> Result<Self, SetupError> {
        let ResponsesOptions { connect, compat } = options;
        let service = connect.service("openai-responses", base_url, "/responses", SentAs::Bearer)?;
        Ok(Self(Arc::new(Inner { service, compat })))
    }
}

impl Provider for OpenAiResponses {
    fn id(&self) -> &str {
        &self.0.service.id
    }

    fn secrets(&self) -> Vec<Redactor> {
        vec![self.0.service.transport.redactor.clone()]
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let Inner { service, compat } = &*self.0;
        let transport = service.transport.clone();
        let sent = transport.post(body(&request, compat, &service.id));
        let decoder = decoder(&service.id, &request, service.clock.clone());
        Box::pin(Exchange::new(transport, sent, cancel, decoder))
    }

    fn capabilities(&self, model: &str) -> archon_types::Capabilities {
        crate::catalogue::capabilities(self.id(), model)
    }
}

/// The decoder of the answer to a request.
pub(crate) fn decoder(provider: &str, request: &Request, clock: Option<Arc<dyn Clock>>) -> ResponsesDecoder {
    ResponsesDecoder::new(Blocks::new(request, provider, clock))
}

#[cfg(test)]
#[path = "openai_responses/tests.rs"]
mod tests;
