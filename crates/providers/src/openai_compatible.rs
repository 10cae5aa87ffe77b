//! Services that speak OpenAI's chat completions, streamed: `POST {base}/chat/completions`.

mod decode;
mod encode;
mod head;
mod read_stream;
mod wire;

use std::{fmt, sync::Arc};

use archon_types::{
    ApiErrorKind, AssistantMessage, BoxStream, CancellationToken, Capabilities, Clock, ModelEvent, Provider,
    ProviderError, Request, Secret,
};

use crate::{
    catalogue,
    error::SetupError,
    http::{HttpOptions, Transport, events::Exchange},
    profile::{Compat, Profile, ResponseFormatSupport},
};
use decode::ChatDecoder;
#[doc(hidden)]
pub use read_stream::read_chat_stream;

/// The choices of an [`OpenAiCompatible`], each with a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenAiOptions {
    /// The provider's id in messages and records; `openai-compatible`.
    pub id: String,
    /// Sent as a bearer token; local servers need none.
    pub api_key: Option<Secret>,
    /// More headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// What the service does differently.
    pub compat: Compat,
    /// How it is reached.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for OpenAiOptions {
    fn default() -> Self {
        Self {
            id: "openai-compatible".to_owned(),
            api_key: None,
            headers: Vec::new(),
            compat: Compat::DEFAULT,
            http: HttpOptions::default(),
            clock: None,
        }
    }
}

impl OpenAiOptions {
    /// The options of a known service.
    pub fn of(profile: &Profile) -> Self {
        Self { id: profile.name.to_owned(), compat: profile.compat, ..Self::default() }
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
    pub fn with_compat(mut self, compat: Compat) -> Self {
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

/// A service that speaks chat completions. Clones share one pool of connections.
#[derive(Clone)]
pub struct OpenAiCompatible(Arc<Inner>);

struct Inner {
    id: String,
    compat: Compat,
    clock: Option<Arc<dyn Clock>>,
    transport: Arc<Transport>,
}

impl OpenAiCompatible {
    /// A service at `base_url`, which ends before `/chat/completions`: `https://api.openai.com/v1`.
    /// Nothing is sent, and no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] when the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: OpenAiOptions) -> Result<Self, SetupError> {
        let mut transport = Transport::new(base_url, "/chat/completions", options.http)?;
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

impl Provider for OpenAiCompatible {
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
        let body = body(&request, &inner.compat);
        let decoder = decoder(&inner.id, request, &inner.compat, inner.clock.clone());
        Box::pin(match body {
            Err(error) => Exchange::failed(transport, error, decoder),
            Ok(body) => {
                let request = transport.post(body);
                Exchange::new(transport, request, cancel, decoder)
            }
        })
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        catalogue::capabilities(self.id(), model)
    }
}

/// The body of a request, or why the service cannot be asked.
pub(crate) fn body(request: &Request, compat: &Compat) -> Result<Vec<u8>, ProviderError> {
    match refusal(request, compat) {
        Some(error) => Err(error),
        None => Ok(encode::body(request, compat)),
    }
}

/// The decoder of the answer to a request.
pub(crate) fn decoder(
    provider: &str,
    request: Request,
    compat: &Compat,
    clock: Option<Arc<dyn Clock>>,
) -> ChatDecoder {
    let (model, provider) = (request.model, provider.to_owned());
    let message = AssistantMessage { model, provider, ..AssistantMessage::default() };
    ChatDecoder::new(message, request.tools, clock, compat.think_tags)
}

/// What the service cannot do and must not silently leave out.
fn refusal(request: &Request, compat: &Compat) -> Option<ProviderError> {
    let asked = request.options.response_format.is_some();
    (asked && compat.response_format == ResponseFormatSupport::Unsupported).then(|| ProviderError::Api {
        status: 0,
        kind: ApiErrorKind::InvalidRequest,
        message: "this service takes no JSON Schema for its answers".to_owned(),
    })
}

impl fmt::Debug for OpenAiCompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiCompatible")
            .field("id", &self.0.id)
            .field("compat", &self.0.compat)
            .field("transport", &self.0.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenAiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiOptions")
            .field("id", &self.id)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("compat", &self.compat)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "openai_compatible/exchange_tests.rs"]
mod exchange_tests;
