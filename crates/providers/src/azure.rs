//! OpenAI's models at Azure: both of OpenAI's protocols, at Azure's addresses and with its keys.

mod auth;

use std::{fmt, sync::Arc};

use archon_types::{
    BoxStream, CancellationToken, Clock, ModelEvent, Provider, ProviderError, Request, Secret,
};

pub use auth::AzureAuth;

use crate::{
    error::SetupError,
    http::{
        HttpOptions, Transport,
        events::{Decoder, Exchange},
        percent_encoded,
    },
    openai_compatible,
    openai_responses::{self, ResponsesCompat},
    profile::{Compat, MaxTokensField, ThinkingParameter},
    token_source::with_token,
};

/// The choices of an [`AzureOpenAi`], each with a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct AzureOptions {
    /// The provider's id in messages and records; `azure`.
    pub id: String,
    /// Which protocol is spoken; Responses.
    pub api: AzureApi,
    /// Which of Azure's addresses are used; those of its version 1.
    pub address: AzureAddress,
    /// How requests are authorised; by their headers only.
    pub auth: AzureAuth,
    /// More headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// What chat completions do differently.
    pub chat: Compat,
    /// What Responses do differently. A deployment's name need not say whether its model reasons.
    pub responses: ResponsesCompat,
    /// How the service is reached.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

/// Which of OpenAI's protocols is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AzureApi {
    /// Responses.
    #[default]
    Responses,
    /// Chat completions.
    ChatCompletions,
}

/// Which of Azure's addresses are used. In all of them the request's model is the name of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AzureAddress {
    /// `{endpoint}/openai/v1/…`, which needs no version.
    #[default]
    V1,
    /// `{endpoint}/openai/deployments/{deployment}/chat/completions` and `{endpoint}/openai/responses`, with
    /// `?api-version=`. Responses need `2025-03-01-preview` or newer.
    Dated {
        /// For instance `2025-04-01-preview`.
        api_version: String,
    },
}

impl Default for AzureOptions {
    fn default() -> Self {
        Self {
            id: "azure".to_owned(),
            api: AzureApi::default(),
            address: AzureAddress::default(),
            auth: AzureAuth::default(),
            headers: Vec::new(),
            chat: Compat {
                max_tokens_field: MaxTokensField::MaxCompletionTokens,
                thinking: ThinkingParameter::Effort,
                think_tags: false,
                ..Compat::DEFAULT
            },
            responses: ResponsesCompat::default(),
            http: HttpOptions::default(),
            clock: None,
        }
    }
}

impl AzureOptions {
    /// The same with this protocol.
    pub fn with_api(mut self, api: AzureApi) -> Self {
        self.api = api;
        self
    }

    /// The same at the addresses of a dated version.
    pub fn with_api_version(mut self, api_version: impl Into<String>) -> Self {
        self.address = AzureAddress::Dated { api_version: api_version.into() };
        self
    }

    /// The same, authorised by this key.
    pub fn with_api_key(self, key: impl Into<Secret>) -> Self {
        self.with_auth(AzureAuth::ApiKey(key.into()))
    }

    /// The same, authorised so.
    pub fn with_auth(mut self, auth: AzureAuth) -> Self {
        self.auth = auth;
        self
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with other differences of chat completions.
    pub fn with_chat(mut self, compat: Compat) -> Self {
        self.chat = compat;
        self
    }

    /// The same with other differences of Responses.
    pub fn with_responses(mut self, compat: ResponsesCompat) -> Self {
        self.responses = compat;
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

/// OpenAI's models at Azure. Clones share one pool of connections.
#[derive(Clone)]
pub struct AzureOpenAi(Arc<Inner>);

struct Inner {
    options: AzureOptions,
    transport: Arc<Transport>,
}

impl AzureOpenAi {
    /// The resource at `endpoint`, as Azure's portal shows it: `https://NAME.openai.azure.com`. The
    /// deployment is the request's model. Nothing is sent, and no certificate is read, before the first
    /// request.
    ///
    /// # Errors
    /// [`SetupError`] when the address, the version, the key, a header or the proxy cannot be used.
    pub fn new(endpoint: &str, options: AzureOptions) -> Result<Self, SetupError> {
        let (base, path) = address(endpoint, &options)?;
        let mut transport = Transport::new(&base, path, options.http.clone())?;
        transport.send_json();
        options.auth.prepare(&mut transport)?;
        for (name, value) in &options.headers {
            transport.set_header(name, value)?;
        }
        Ok(Self(Arc::new(Inner { options, transport: Arc::new(transport) })))
    }

    /// Sends a body and reads its answer.
    fn exchange(
        &self,
        body: Result<Vec<u8>, ProviderError>,
        model: &str,
        cancel: CancellationToken,
        decoder: impl Decoder,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let Inner { options, transport } = &*self.0;
        let transport = transport.clone();
        let body = match body {
            Ok(body) => body,
            Err(error) => return Box::pin(Exchange::failed(transport, error, decoder)),
        };
        let request = match (&options.address, options.api) {
            (AzureAddress::Dated { .. }, AzureApi::ChatCompletions) => {
                let path = format!("/{}/chat/completions", percent_encoded(model));
                transport.post_below(&path, None, body)
            }
            _ => transport.post(body),
        };
        Box::pin(match &options.auth {
            AzureAuth::BearerFrom(source) => {
                let authorized = with_token(request, source.clone(), transport.clone());
                Exchange::prepared(transport, authorized, cancel, decoder)
            }
            _ => Exchange::new(transport, request, cancel, decoder),
        })
    }
}

impl Provider for AzureOpenAi {
    fn id(&self) -> &str {
        &self.0.options.id
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let options = &self.0.options;
        let model = request.model.clone();
        match options.api {
            AzureApi::Responses => {
                let body = openai_responses::body(&request, &options.responses);
                let decoder = openai_responses::decoder(&options.id, &request, options.clock.clone());
                self.exchange(Ok(body), &model, cancel, decoder)
            }
            AzureApi::ChatCompletions => {
                let body = openai_compatible::body(&request, &options.chat);
                let clock = options.clock.clone();
                let decoder = openai_compatible::decoder(&options.id, request, &options.chat, clock);
                self.exchange(body, &model, cancel, decoder)
            }
        }
    }

    fn capabilities(&self, model: &str) -> archon_types::Capabilities {
        crate::catalogue::capabilities(self.id(), model)
    }
}

/// The base of all requests and the path behind it.
fn address(endpoint: &str, options: &AzureOptions) -> Result<(String, &'static str), SetupError> {
    let base = endpoint.trim().trim_end_matches('/');
    if base.contains("/openai/deployments/") {
        let reason = "names a deployment; leave it out, and ask for it as the model".to_owned();
        return Err(SetupError::BaseUrl { url: base.to_owned(), reason });
    }
    let base = base.strip_suffix("/v1").unwrap_or(base);
    let base = base.strip_suffix("/openai").unwrap_or(base);
    let AzureAddress::Dated { api_version } = &options.address else {
        let path = match options.api {
            AzureApi::Responses => "/openai/v1/responses",
            AzureApi::ChatCompletions => "/openai/v1/chat/completions",
        };
        return Ok((base.to_owned(), path));
    };
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if api_version.is_empty() || !api_version.chars().all(known) {
        let what = format!("api version {api_version:?}");
        let reason = "is no version, as 2025-04-01-preview is".to_owned();
        return Err(SetupError::Setting { what, reason });
    }
    let path = match options.api {
        AzureApi::Responses => "/openai/responses",
        AzureApi::ChatCompletions => "/openai/deployments",
    };
    let separator = if base.contains('?') { '&' } else { '?' };
    Ok((format!("{base}{separator}api-version={api_version}"), path))
}

impl fmt::Debug for AzureOpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureOpenAi")
            .field("options", &self.0.options)
            .field("transport", &self.0.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AzureOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureOptions")
            .field("id", &self.id)
            .field("api", &self.api)
            .field("address", &self.address)
            .field("auth", &self.auth)
            .field("headers", &self.headers)
            .field("chat", &self.chat)
            .field("responses", &self.responses)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "azure/tests.rs"]
mod tests;
