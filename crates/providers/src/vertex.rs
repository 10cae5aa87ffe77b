//! Gemini's models on Google Cloud: the same protocol at another address, with access tokens that expire.
//!
//! Source: <https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference>.

use std::sync::Arc;

use archon_types::{CancellationToken, Provider, Request};

use crate::{
    Events,
    connect::{ConnectOptions, SentAs, connect_choices, service_methods},
    error::SetupError,
    gemini::{Contents, SafetySetting},
    http::events::Exchange,
    token_source::{TokenSource, with_token},
};

/// The Google Cloud project and the region whose models are used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VertexPlace {
    /// The id of the Google Cloud project.
    pub project: String,
    /// The region, for instance `europe-west4`, or `global`.
    pub location: String,
}

impl VertexPlace {
    /// Creates the place from the id of a project and a region such as `europe-west4`, or `global`.
    pub fn new(project: impl Into<String>, location: impl Into<String>) -> Self {
        Self { project: project.into(), location: location.into() }
    }

    /// Returns the address of the service in the location.
    fn base_url(&self) -> String {
        match self.location.as_str() {
            "global" => "https://aiplatform.googleapis.com".to_owned(),
            // Groups of regions have addresses of their own.
            place @ ("us" | "eu") => format!("https://aiplatform.{place}.rep.googleapis.com"),
            region => format!("https://{region}-aiplatform.googleapis.com"),
        }
    }

    fn models_path(&self) -> Result<String, SetupError> {
        let is_name = |text: &str| {
            !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
        };
        for (what, text) in [("the project", &self.project), ("the location", &self.location)] {
            if !is_name(text) {
                let reason = format!("{text:?} is not a valid name");
                return Err(SetupError::Setting { what: what.to_owned(), reason });
            }
        }
        let Self { project, location } = self;
        Ok(format!("/v1/projects/{project}/locations/{location}/publishers/google/models"))
    }
}

/// Options of [`Vertex`].
///
/// ```
/// use archon_providers::VertexOptions;
///
/// let options = VertexOptions::default().with_base_url("https://gateway.example.com/vertex");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VertexOptions {
    /// The connection to the service. Its key is not used, because requests contain access tokens.
    pub connect: ConnectOptions,
    /// The address without `/v1`. Default: the address of Google's service in the location of the [`VertexPlace`].
    pub base_url: Option<String>,
    /// The safety settings that replace the service's defaults, one for each harm category. Default: none.
    pub safety: Vec<SafetySetting>,
}

connect_choices!(VertexOptions);

impl VertexOptions {
    /// Sets another address than that of Google's service, without `/v1`, for instance of a gateway.
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }
}

/// A provider for Gemini's models on Google Cloud. Clones share one pool of connections.
///
/// ```
/// use archon_providers::{SetupError, TokenSource, Vertex, VertexOptions, VertexPlace};
///
/// fn gemini(token: TokenSource) -> Result<Vertex, SetupError> {
///     Vertex::new(&VertexPlace::new("my-project", "europe-west4"), token, VertexOptions::default())
/// }
/// ```
#[derive(Clone)]
pub struct Vertex {
    contents: Arc<Contents>,
    token: TokenSource,
}

impl Vertex {
    /// Creates a provider for the models of this project and region. `token` is called for an access token
    /// before each request. Nothing is sent before the first request.
    ///
    /// # Errors
    /// [`SetupError`] if the place, the address, a header or the proxy cannot be used.
    pub fn new(place: &VertexPlace, token: TokenSource, options: VertexOptions) -> Result<Self, SetupError> {
        let VertexOptions { connect, base_url, safety } = options;
        let base_url = base_url.unwrap_or_else(|| place.base_url());
        let service = connect.service("vertex", &base_url, &place.models_path()?, SentAs::Later)?;
        let contents = Contents { service, id_prefix: "vertex-fc", own_ids: true, safety };
        Ok(Self { contents: Arc::new(contents), token })
    }
}

impl Provider for Vertex {
    service_methods!(contents.service);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let transport = self.contents.service.transport.clone();
        let (http, decoder) = self.contents.exchange(&request);
        let prepared = with_token(http, self.token.clone(), transport.clone());
        Box::pin(Exchange::prepared(transport, prepared, cancel, decoder))
    }
}

archon_types::debug_fields!(Vertex: contents);

#[cfg(test)]
#[path = "vertex_tests.rs"]
mod tests;
