//! OpenAI's Responses, streamed: `POST {base}/responses`.
//!
//! The service is asked to store nothing. The model's reasoning comes back encrypted, is kept in the
//! [`signature`](archon_types::Content::Thinking) of its thinking, and goes along with the next request,
//! so that a model goes on thinking where it stopped to call a tool.

mod decode;
mod encode;
mod wire;

use std::{fmt, sync::Arc};

use archon_types::{
    BoxStream, CancellationToken, Clock, ModelEvent, Provider, ProviderError, Request, Secret,
};

use crate::{
    blocks::Blocks,
    error::SetupError,
    http::{HttpOptions, Transport, events::Exchange},
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
#[derive(Clone)]
#[non_exhaustive]
pub struct ResponsesOptions {
    /// The provider's id in messages and records; `openai-responses`.
    pub id: String,
    /// Sent as a bearer token; local servers need none.
    pub api_key: Option<Secret>,
    /// More headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// What the service does differently.
    pub compat: ResponsesCompat,
    /// How it is reached.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for ResponsesOptions {
    fn default() -> Self {
        Self {
            id: "openai-responses".to_owned(),
            api_key: None,
            headers: Vec::new(),
            compat: ResponsesCompat::default(),
            http: HttpOptions::default(),
            clock: None,
        }
    }
}

impl ResponsesOptions {
    /// The same with this id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// The same with this key.
    pub fn with_api_key(mut self, key: impl Into<Secret>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with other differences.
    pub fn with_compat(mut self, compat: ResponsesCompat) -> Self {
        self.compat = compat;
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

/// A service that speaks Responses. Clones share one pool of connections.
#[derive(Clone)]
pub struct OpenAiResponses(Arc<Inner>);

struct Inner {
    id: String,
    compat: ResponsesCompat,
    clock: Option<Arc<dyn Clock>>,
    transport: Arc<Transport>,
}

impl OpenAiResponses {
    /// A service at `base_url`, which ends before `/responses`: `https://api.openai.com/v1`.
    /// Nothing is sent, and no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] when the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: ResponsesOptions) -> Result<Self, SetupError> {
        let mut transport = Transport::new(base_url, "/responses", options.http)?;
        transport.send_json();
        if let Some(key) = &options.api_key {
            transport.set_bearer(key)?;
        }
        for (name, value) in &options.headers {
            transport.set_header(name, value)?;
        }
        let (id, compat, clock) = (options.id, options.compat, options.clock);
        Ok(Self(Arc::new(Inner { id, compat, clock, transport: Arc::new(transport) })))
    }
}

impl Provider for OpenAiResponses {
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
        let sent = transport.post(body(&request, &inner.compat));
        let decoder = decoder(&inner.id, &request, inner.clock.clone());
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

impl fmt::Debug for OpenAiResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiResponses")
            .field("id", &self.0.id)
            .field("compat", &self.0.compat)
            .field("transport", &self.0.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ResponsesOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponsesOptions")
            .field("id", &self.id)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("compat", &self.compat)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "openai_responses/tests.rs"]
mod tests;
