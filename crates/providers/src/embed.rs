//! Vectors for texts, from services: `/embeddings` as OpenAI has it, and Gemini's `batchEmbedContents`.

#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "openai-compatible")]
mod openai;

use std::{fmt, sync::Arc};

use archon_types::{BoxFuture, Clock, MemoryError, Secret};

#[cfg(feature = "gemini")]
pub use gemini::GeminiEmbedder;
#[cfg(feature = "openai-compatible")]
pub use openai::OpenAiEmbedder;

use crate::http::{HttpOptions, Transport, time_of, whole};

/// The choices of an embedder, each with a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct EmbedderOptions {
    /// Sent as the protocol sends it; local servers need none.
    pub api_key: Option<Secret>,
    /// More headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// Asks the service for vectors of the embedder's length, which not every model can shorten.
    pub ask_for_dimensions: bool,
    /// Most texts of one request; 100. More are sent one request after the other.
    pub batch: usize,
    /// How the service is reached.
    pub http: HttpOptions,
    /// What time it is, for the dates in errors; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for EmbedderOptions {
    fn default() -> Self {
        Self {
            api_key: None,
            headers: Vec::new(),
            ask_for_dimensions: false,
            batch: 100,
            http: HttpOptions::default(),
            clock: None,
        }
    }
}

impl EmbedderOptions {
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

    /// The same for a model whose vectors can be shortened.
    pub fn asking_for_dimensions(mut self) -> Self {
        self.ask_for_dimensions = true;
        self
    }

    /// The same with other ways to reach the service.
    pub fn with_http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }
}

impl fmt::Debug for EmbedderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbedderOptions")
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("ask_for_dimensions", &self.ask_for_dimensions)
            .field("batch", &self.batch)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// What the protocols share.
struct Remote {
    id: String,
    model: String,
    dimensions: usize,
    ask_for_dimensions: bool,
    batch: usize,
    clock: Option<Arc<dyn Clock>>,
    transport: Transport,
}

/// How one protocol asks for vectors and says them.
trait Wire: Send + Sync {
    /// The request for a batch.
    fn request(&self, remote: &Remote, texts: &[String]) -> reqwest::Request;

    /// The vectors in an answer, in the order of the texts, or what is wrong with it.
    fn vectors(&self, answer: &str) -> Result<Vec<Vec<f32>>, String>;
}

impl Remote {
    fn new(
        protocol: &str,
        model: String,
        dimensions: usize,
        transport: Transport,
        o: EmbedderOptions,
    ) -> Self {
        Self {
            id: format!("{protocol}:{model}:{dimensions}"),
            model,
            dimensions,
            ask_for_dimensions: o.ask_for_dimensions,
            batch: o.batch.max(1),
            clock: o.clock,
            transport,
        }
    }

    fn embed<'a>(
        &'a self,
        wire: &'a dyn Wire,
        texts: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move {
            let mut all = Vec::with_capacity(texts.len());
            for batch in texts.chunks(self.batch) {
                let request = wire.request(self, batch);
                let answer = whole::answer(&self.transport, request, time_of(self.clock.as_ref()));
                let answer = answer.await.map_err(|e| self.failed(e.to_string()))?;
                let vectors = wire.vectors(&answer).map_err(|problem| self.failed(problem))?;
                self.check(&vectors, batch.len())?;
                all.extend(vectors);
            }
            Ok(all)
        })
    }

    fn check(&self, vectors: &[Vec<f32>], texts: usize) -> Result<(), MemoryError> {
        if vectors.len() != texts {
            return Err(self.failed(format!("{} vectors came for {texts} texts", vectors.len())));
        }
        match vectors.iter().find(|vector| vector.len() != self.dimensions) {
            Some(odd) => {
                let (came, expected) = (odd.len(), self.dimensions);
                Err(self.failed(format!("a vector of {came} numbers came, {expected} were expected")))
            }
            None => Ok(()),
        }
    }

    fn failed(&self, problem: String) -> MemoryError {
        MemoryError::Embedding { embedder: self.id.clone(), problem: self.transport.redactor.clean(problem) }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder")
            .field("id", &self.id)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// A text as services take it: none takes an empty one.
fn sent(text: &str) -> &str {
    if text.is_empty() { " " } else { text }
}

#[cfg(all(test, feature = "gemini", feature = "openai-compatible"))]
#[path = "embed_tests.rs"]
mod tests;
