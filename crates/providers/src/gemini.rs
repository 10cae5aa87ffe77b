//! Gemini's generateContent, streamed: `POST {base}/v1beta/models/{model}:streamGenerateContent?alt=sse`.
//!
//! Source of the format: <https://ai.google.dev/api/generate-content>.

mod decode;
mod encode;
mod schema;
mod traits;
mod wire;

use std::sync::Arc;

use archon_types::{CancellationToken, Provider, Request};

use crate::{
    Events,
    answer::Answer,
    connect::{ConnectOptions, SentAs, Service, connect_choices, service_methods},
    error::SetupError,
    http::{events::Exchange, percent_encoded},
};
use decode::ChunkDecoder;
use encode::CallIds;
use traits::Traits;

/// The base URL of Google's own service, for [`Gemini::new`].
pub const GEMINI_URL: &str = "https://generativelanguage.googleapis.com";

/// The header in which a key is sent; the address never contains the key.
pub(crate) const GEMINI_KEY: SentAs = SentAs::Header("x-goog-api-key");

/// Options of [`Gemini`].
///
/// ```
/// use archon_providers::GeminiOptions;
///
/// let options = GeminiOptions::default()
///     .with_api_key("secret")
///     .with_safety("HARM_CATEGORY_HARASSMENT", "BLOCK_ONLY_HIGH");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GeminiOptions {
    /// The connection to the service; its key is sent as `x-goog-api-key`, never in the address.
    pub connect: ConnectOptions,
    /// The safety settings that replace the service's defaults, one for each harm category. Default: none.
    pub safety: Vec<SafetySetting>,
}

/// Tells the service which content of one harm category it must block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetySetting {
    /// The category, for instance `HARM_CATEGORY_HARASSMENT`.
    pub category: String,
    /// The threshold, for instance `BLOCK_ONLY_HIGH`.
    pub threshold: String,
}

connect_choices!(GeminiOptions with a key);

impl GeminiOptions {
    /// Adds a safety setting: a harm category and the threshold from which the service blocks content.
    pub fn with_safety(mut self, category: impl Into<String>, threshold: impl Into<String>) -> Self {
        self.safety.push(SafetySetting { category: category.into(), threshold: threshold.into() });
        self
    }
}

/// A provider for Gemini's models at Google. Clones share one pool of connections.
///
/// ```no_run
/// use archon_providers::{GEMINI_URL, Gemini, GeminiOptions};
///
/// let provider = Gemini::new(GEMINI_URL, GeminiOptions::default().with_api_key("secret"))?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gemini(Arc<Contents>);

/// The state of a provider with Gemini's protocol. [`Gemini`] and the provider for Vertex AI use this type.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The service, with an address that ends before the model.
    pub(crate) service: Service,
    /// The prefix of ids that the decoder generates.
    pub(crate) id_prefix: &'static str,
    /// True if the service accepts only tool-call ids that it generated itself; its models before Gemini 3
    /// accept no ids.
    pub(crate) own_ids: bool,
    pub(crate) safety: Vec<SafetySetting>,
}

impl Gemini {
    /// Creates a provider for the service at `base_url`, such as [`GEMINI_URL`]: the address without
    /// `/v1beta`, or with a version at its end. Nothing is sent, and no certificate is read, before the
    /// first request.
    ///
    /// # Errors
    /// [`SetupError`] if the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: GeminiOptions) -> Result<Self, SetupError> {
        let GeminiOptions { connect, safety } = options;
        let service = connect.service("google", base_url, &models_path(base_url), GEMINI_KEY)?;
        Ok(Self(Arc::new(Contents { service, id_prefix: "google-fc", own_ids: false, safety })))
    }
}

/// Returns the path between a base URL and the model.
pub(crate) fn models_path(base_url: &str) -> String {
    let last = base_url.trim().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_version { "/models".to_owned() } else { "/v1beta/models".to_owned() }
}

/// Returns the last part of the path: the model, which may be a resource name, and the method.
pub(crate) fn model_path(model: &str, method: &str) -> String {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let path = percent_encoded(model);
    format!("/{path}:{method}")
}

impl Contents {
    /// Returns the request, and the decoder of its answer.
    pub(crate) fn exchange(&self, request: &Request) -> (reqwest::Request, ChunkDecoder) {
        let traits = Traits::of(&request.model);
        let format_tool = encode::format_tool(request, traits);
        let ids = if self.own_ids { CallIds::Own(&self.service.id) } else { CallIds::All };
        let body = encode::body(request, traits, &self.safety, ids);
        let path = model_path(&request.model, "streamGenerateContent");
        let http = self.service.transport.post_below(&path, Some("alt=sse"), body);
        let answer = Answer::new(request, &self.service.id, self.service.clock.clone());
        (http, ChunkDecoder::new(answer, self.id_prefix, format_tool))
    }
}

impl Provider for Gemini {
    service_methods!(0.service);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let (http, decoder) = self.0.exchange(&request);
        Box::pin(Exchange::new(self.0.service.transport.clone(), http, cancel, decoder))
    }
}

#[cfg(test)]
#[path = "gemini/error_tests.rs"]
mod error_tests;
#[cfg(test)]
#[path = "gemini/request_tests.rs"]
mod request_tests;
#[cfg(test)]
#[path = "gemini/stream_tests.rs"]
mod stream_tests;
