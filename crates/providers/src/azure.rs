//! OpenAI's models on Azure: both of OpenAI's protocols, with Azure's addresses and keys.

mod auth;

use std::{mem, sync::Arc};

use archon_types::{CancellationToken, Provider, ProviderError, Request};

pub use auth::AzureAuth;

use crate::{
    Events,
    connect::{ConnectOptions, Service, connect_choices, service_methods},
    error::SetupError,
    http::{
        events::{Decoder, Exchange},
        percent_encoded,
    },
    openai_compatible,
    openai_responses::{self, ResponsesCompat},
    profile::{Compat, OPENAI, SystemRole},
    token_source::with_token,
};

/// Options of [`AzureOpenAi`]. Name a deployment like its model, for instance `gpt-5-mini`: then the price
/// and the abilities of the model are found in the catalogue.
///
/// ```
/// use archon_providers::{AzureApi, AzureAuth, AzureOptions, Compat, ResponsesCompat};
///
/// let chat = AzureOptions::default()
///     .with_api_key("the-key-of-the-resource")
///     .with_auth(AzureAuth::Bearer)
///     .with_api(AzureApi::ChatCompletions)
///     .with_api_version("2024-10-21")
///     .with_chat(Compat::default());
/// let responses = AzureOptions::default().with_responses(ResponsesCompat::default());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AzureOptions {
    /// The connection to the service; [`auth`](Self::auth) sets the form in which its key is sent.
    pub connect: ConnectOptions,
    /// The protocol. Default [`AzureApi::Responses`].
    pub api: AzureApi,
    /// The form of Azure's addresses. Default [`AzureAddress::V1`].
    pub address: AzureAddress,
    /// The authorisation of requests. Default: the key, in the header `api-key`.
    pub auth: AzureAuth,
    /// The differences of the deployment's chat completions from OpenAI's protocol. Used only with
    /// [`AzureApi::ChatCompletions`].
    pub chat: Compat,
    /// The differences of the deployment's Responses API from OpenAI's protocol. Used only with
    /// [`AzureApi::Responses`]. If the deployment's name does not show whether its model reasons, set
    /// `reasoning_models`.
    pub responses: ResponsesCompat,
}

/// The protocol that requests use: one of OpenAI's two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AzureApi {
    /// OpenAI's Responses API.
    #[default]
    Responses,
    /// OpenAI's chat completions.
    ChatCompletions,
}

/// The form of Azure's addresses. In each form, the model of a request is the name of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AzureAddress {
    /// `{endpoint}/openai/v1/…`, which needs no version.
    #[default]
    V1,
    /// `{endpoint}/openai/deployments/{deployment}/chat/completions` and `{endpoint}/openai/responses`, with
    /// `?api-version=`. Responses need `2025-03-01-preview` or newer.
    Dated {
        /// The API version, for instance `2025-04-01-preview`.
        api_version: String,
    },
}

impl Default for AzureOptions {
    fn default() -> Self {
        Self {
            connect: ConnectOptions::default(),
            api: AzureApi::default(),
            address: AzureAddress::default(),
            auth: AzureAuth::default(),
            chat: Compat { system_role: SystemRole::System, ..OPENAI },
            responses: ResponsesCompat::default(),
        }
    }
}

connect_choices!(AzureOptions with a key);

impl AzureOptions {
    /// Sets the protocol. Default [`AzureApi::Responses`].
    pub fn with_api(mut self, api: AzureApi) -> Self {
        self.api = api;
        self
    }

    /// Uses addresses with `?api-version=` and this version, as [`AzureAddress::Dated`] describes.
    pub fn with_api_version(mut self, api_version: impl Into<String>) -> Self {
        self.address = AzureAddress::Dated { api_version: api_version.into() };
        self
    }

    /// Sets the authorisation of requests. Default: the key, in the header `api-key`.
    pub fn with_auth(mut self, auth: AzureAuth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets the differences of the deployment's chat completions from OpenAI's protocol.
    pub fn with_chat(mut self, compat: Compat) -> Self {
        self.chat = compat;
        self
    }

    /// Sets the differences of the deployment's Responses API from OpenAI's protocol.
    pub fn with_responses(mut self, compat: ResponsesCompat) -> Self {
        self.responses = compat;
        self
    }
}

/// A provider for OpenAI's models on Azure. Clones share one pool of connections.
///
/// ```no_run
/// use archon_providers::{AzureOpenAi, AzureOptions};
///
/// let options = AzureOptions::default().with_api_key("the-key-of-the-resource");
/// let provider = AzureOpenAi::new("https://my-resource.openai.azure.com", options)?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AzureOpenAi(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    /// The options; `connect` is empty here, because `service` was made from it.
    options: AzureOptions,
}

impl AzureOpenAi {
    /// Creates a provider for the resource at `endpoint`, as Azure's portal shows it:
    /// `https://NAME.openai.azure.com`. A request names the deployment as its model. Nothing is sent, and
    /// no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] if the address, the version, the key, a header or the proxy cannot be used.
    pub fn new(endpoint: &str, mut options: AzureOptions) -> Result<Self, SetupError> {
        let (base, path) = address(endpoint, &options)?;
        let connect = mem::take(&mut options.connect);
        let service = connect.service("azure", &base, path, options.auth.key())?;
        Ok(Self(Arc::new(Inner { service, options })))
    }

    /// Sends a body and decodes the answer.
    fn exchange(
        &self,
        body: Result<impl Into<reqwest::Body>, ProviderError>,
        model: &str,
        cancel: CancellationToken,
        decoder: impl Decoder,
    ) -> Events {
        let Inner { service, options } = &*self.0;
        let transport = service.transport.clone();
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
    service_methods!(0.service);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let Inner { service, options } = &*self.0;
        let model = request.model.clone();
        let clock = service.clock.clone();
        match options.api {
            AzureApi::Responses => {
                let body = openai_responses::body(&request, &options.responses, &service.id);
                let decoder = openai_responses::decoder(&service.id, &request, clock);
                self.exchange(Ok(body), &model, cancel, decoder)
            }
            AzureApi::ChatCompletions => {
                let body = openai_compatible::body(&request, &options.chat);
                let decoder = openai_compatible::decoder(&service.id, &request, &options.chat, clock);
                self.exchange(body, &model, cancel, decoder)
            }
        }
    }
}

/// Returns the base URL of all requests and the path after it.
fn address(endpoint: &str, options: &AzureOptions) -> Result<(String, &'static str), SetupError> {
    let base = endpoint.trim().trim_end_matches('/');
    if base.contains("/openai/deployments/") {
        let reason =
            "names a deployment; leave the deployment out of the URL, and give it as the model".to_owned();
        return Err(SetupError::BaseUrl { url: crate::http::without_secrets(base), reason });
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
        let reason = "is not a version such as 2025-04-01-preview".to_owned();
        return Err(SetupError::Setting { what, reason });
    }
    let path = match options.api {
        AzureApi::Responses => "/openai/responses",
        AzureApi::ChatCompletions => "/openai/deployments",
    };
    let separator = if base.contains('?') { '&' } else { '?' };
    Ok((format!("{base}{separator}api-version={api_version}"), path))
}

#[cfg(test)]
#[path = "azure/tests.rs"]
mod tests;
