//! Services with OpenAI's chat completions, streamed: `POST {base}/chat/completions`.

mod decode;
mod details;
mod encode;
mod head;
mod read_stream;
mod wire;

use std::sync::Arc;

use archon_types::{CancellationToken, Capabilities, Clock, Provider, ProviderError, Redactor, Request};
use bytes::Bytes;

use crate::{
    Events,
    answer::Answer,
    catalogue,
    connect::{ConnectOptions, SentAs, Service, connect_choices},
    error::SetupError,
    http::{SharedText, events::Exchange},
    profile::{Compat, DocumentPart, Profile, ResponseFormatSupport},
    request::invalid_request,
};
use decode::ChatDecoder;
#[doc(hidden)]
pub use read_stream::read_chat_stream;

/// Options of [`OpenAiCompatible`].
///
/// ```
/// use archon_providers::{Compat, OpenAiOptions, SystemRole};
///
/// let mut compat = Compat::default();
/// compat.system_role = SystemRole::System;
/// let options = OpenAiOptions::default().with_api_key("sk-secret").with_compat(compat);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenAiOptions {
    /// The connection to the service; its key is sent as a bearer token.
    pub connect: ConnectOptions,
    /// The differences of the service from OpenAI's protocol.
    pub compat: Compat,
}

connect_choices!(OpenAiOptions with a key);

impl OpenAiOptions {
    /// Returns options with the name of a known service as the provider's id, and with the differences of the service;
    /// all other options have their defaults.
    pub fn of(profile: &Profile) -> Self {
        Self::default().with_id(profile.name).with_compat(profile.compat)
    }

    /// Sets the differences of the service from OpenAI's protocol.
    pub fn with_compat(mut self, compat: Compat) -> Self {
        self.compat = compat;
        self
    }
}

/// A provider for a service with chat completions. Clones share one pool of connections.
///
/// ```no_run
/// use archon_providers::{OpenAiCompatible, OpenAiOptions};
///
/// let provider = OpenAiCompatible::new("http://localhost:11434/v1", OpenAiOptions::default())?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenAiCompatible(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    compat: Compat,
}

impl OpenAiCompatible {
    /// Creates a provider for the service at `base_url`, which ends before `/chat/completions`:
    /// `https://api.openai.com/v1`. Nothing is sent, and no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] if the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: OpenAiOptions) -> Result<Self, SetupError> {
        let OpenAiOptions { connect, compat } = options;
        let service = connect.service("openai-compatible", base_url, "/chat/completions", SentAs::Bearer)?;
        Ok(Self(Arc::new(Inner { service, compat })))
    }
}

impl Provider for OpenAiCompatible {
    fn id(&self) -> &str {
        &self.0.service.id
    }

    fn secrets(&self) -> Vec<Redactor> {
        vec![self.0.service.transport.redactor.clone()]
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let mut known = catalogue::capabilities(self.id(), model);
        if self.0.compat.documents == DocumentPart::Unsupported {
            known.reads.pdfs = Some(false);
        }
        known
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let Inner { service, compat } = &*self.0;
        let transport = service.transport.clone();
        let body = body(&request, compat);
        let decoder = decoder(&service.id, &request, compat, service.clock.clone());
        Box::pin(match body {
            Err(error) => Exchange::failed(transport, error, decoder),
            Ok(body) => {
                let request = transport.post(body);
                Exchange::new(transport, request, cancel, decoder)
            }
        })
    }
}

/// Returns the body of a request, or the error if the service does not support the request.
pub(crate) fn body(request: &Request, compat: &Compat) -> Result<Bytes, ProviderError> {
    let asked = request.options.response_format.is_some();
    if asked && compat.response_format == ResponseFormatSupport::Unsupported {
        return Err(invalid_request("this service does not support structured output"));
    }
    Ok(Bytes::from_owner(SharedText(encode::body(request, compat))))
}

/// Returns the decoder of the answer to a request.
pub(crate) fn decoder(
    provider: &str,
    request: &Request,
    compat: &Compat,
    clock: Option<Arc<dyn Clock>>,
) -> ChatDecoder {
    ChatDecoder::new(Answer::new(request, provider, clock), compat.think_tags)
}

#[cfg(test)]
#[path = "openai_compatible/exchange_tests.rs"]
mod exchange_tests;
