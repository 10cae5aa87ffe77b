//! Gemini's generateContent, streamed: `POST {base}/v1beta/models/{model}:streamGenerateContent?alt=sse`.
//!
//! Source of the format: <https://ai.google.dev/api/generate-content>.

mod decode;
mod encode;
mod schema;
mod traits;
mod wire;

use std::{fmt, sync::Arc};

use archon_types::{
    BoxStream, CancellationToken, Clock, ModelEvent, Provider, ProviderError, Request, Secret,
};

use crate::{
    answer::Answer,
    error::SetupError,
    http::{HttpOptions, Transport, events::Exchange},
};
use decode::ChunkDecoder;
use traits::Traits;

/// Where Google's own service is.
pub const GEMINI_URL: &str = "https://generativelanguage.googleapis.com";

/// The choices of a [`Gemini`], each with a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct GeminiOptions {
    /// The provider's id in messages and records; `google`.
    pub id: String,
    /// Sent as `x-goog-api-key`, never in the address.
    pub api_key: Option<Secret>,
    /// More headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// What the service blocks, where that is not its default.
    pub safety: Vec<SafetySetting>,
    /// How the service is reached.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

/// From what probability on a kind of harm is blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetySetting {
    /// For instance `HARM_CATEGORY_HARASSMENT`.
    pub category: String,
    /// For instance `BLOCK_ONLY_HIGH`.
    pub threshold: String,
}

impl Default for GeminiOptions {
    fn default() -> Self {
        Self {
            id: "google".to_owned(),
            api_key: None,
            headers: Vec::new(),
            safety: Vec::new(),
            http: HttpOptions::default(),
            clock: None,
        }
    }
}

impl GeminiOptions {
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

    /// The same with one more safety setting.
    pub fn with_safety(mut self, category: impl Into<String>, threshold: impl Into<String>) -> Self {
        self.safety.push(SafetySetting { category: category.into(), threshold: threshold.into() });
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

/// Gemini's models at Google. Clones share one pool of connections.
#[derive(Clone)]
pub struct Gemini(Arc<Contents>);

/// What the protocol needs, wherever it is spoken.
pub(crate) struct Contents {
    pub(crate) id: String,
    /// What ids begin with that are made up.
    pub(crate) id_prefix: &'static str,
    pub(crate) safety: Vec<SafetySetting>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    /// Its address ends before the model.
    pub(crate) transport: Arc<Transport>,
}

impl Gemini {
    /// A service at `base_url`, which ends before `/v1beta`, or with a version: [`GEMINI_URL`]. Nothing is
    /// sent, and no certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] when the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: GeminiOptions) -> Result<Self, SetupError> {
        let mut transport = Transport::new(base_url, &models_path(base_url), options.http)?;
        transport.send_json();
        if let Some(key) = &options.api_key {
            // Keys are often read from files, with their line ends.
            transport.set_header("x-goog-api-key", &Secret::from(key.expose().trim()))?;
        }
        for (name, value) in &options.headers {
            transport.set_header(name, value)?;
        }
        Ok(Self(Arc::new(Contents {
            id: options.id,
            id_prefix: "google-fc",
            safety: options.safety,
            clock: options.clock,
            transport: Arc::new(transport),
        })))
    }
}

/// What stands between a base URL and the model.
pub(crate) fn models_path(base_url: &str) -> String {
    let last = base_url.trim().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_version { "/models".to_owned() } else { "/v1beta/models".to_owned() }
}

/// The last part of an address: the model, which may be written as a resource, and what it is to do.
pub(crate) fn model_path(model: &str, method: &str) -> String {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let mut path = String::new();
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte))
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("/{path}:{method}")
}

impl Contents {
    /// The request, and what reads the answer to it.
    pub(crate) fn exchange(&self, request: &Request) -> (reqwest::Request, ChunkDecoder) {
        let traits = Traits::of(&request.model);
        let format_tool = encode::format_tool(request, traits);
        let body = encode::body(request, traits, &self.safety);
        let path = model_path(&request.model, "streamGenerateContent");
        let http = self.transport.post_below(&path, Some("alt=sse"), body);
        let answer = Answer::new(request, &self.id, self.clock.clone());
        (http, ChunkDecoder::new(answer, self.id_prefix, format_tool))
    }
}

impl Provider for Gemini {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let (http, decoder) = self.0.exchange(&request);
        Box::pin(Exchange::new(self.0.transport.clone(), http, cancel, decoder))
    }

    fn capabilities(&self, model: &str) -> archon_types::Capabilities {
        crate::catalogue::capabilities(self.id(), model)
    }
}

impl fmt::Debug for Gemini {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gemini")
            .field("id", &self.0.id)
            .field("transport", &self.0.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for GeminiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeminiOptions")
            .field("id", &self.id)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("safety", &self.safety)
            .field("http", &self.http)
            .finish_non_exhaustive()
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
