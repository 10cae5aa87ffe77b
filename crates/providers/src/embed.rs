//! Embedders of services: `/embeddings` as in OpenAI's protocol, and Gemini's `batchEmbedContents`.

#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "openai-compatible")]
mod openai;

use archon_types::{BoxFuture, MemoryError};

#[cfg(feature = "gemini")]
pub use gemini::GeminiEmbedder;
#[cfg(feature = "openai-compatible")]
pub use openai::OpenAiEmbedder;

use crate::{
    answer::time_of,
    classify::CUT,
    connect::{ConnectOptions, SentAs, Service, connect_choices},
    error::SetupError,
    http::whole::{self, Whole},
};

/// Options of an embedder.
///
/// ```
/// use archon_providers::EmbedderOptions;
///
/// let options = EmbedderOptions::default().with_api_key("sk-secret").asking_for_dimensions();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmbedderOptions {
    /// The connection to the service. Its id is the first part of the embedder's id, which is `ID:MODEL:DIMENSIONS`.
    pub connect: ConnectOptions,
    /// True if requests ask the service for vectors with this number of dimensions; only for models whose
    /// vectors can be shortened. Default false.
    pub ask_for_dimensions: bool,
    /// The maximum number of texts in one request; more texts are sent in several requests. Default 100.
    pub batch: usize,
}

impl Default for EmbedderOptions {
    fn default() -> Self {
        Self { connect: ConnectOptions::default(), ask_for_dimensions: false, batch: 100 }
    }
}

connect_choices!(EmbedderOptions with a key);

impl EmbedderOptions {
    /// Makes requests ask the service for vectors with the embedder's number of dimensions; only for models
    /// whose vectors can be shortened.
    pub fn asking_for_dimensions(mut self) -> Self {
        self.ask_for_dimensions = true;
        self
    }
}

/// The part of an embedder that the protocols share.
struct Remote {
    id: String,
    model: String,
    dimensions: usize,
    ask_for_dimensions: bool,
    batch: usize,
    service: Service,
}

/// The request and response format of one protocol.
trait Wire: Send + Sync {
    /// Returns the request for a batch of texts.
    fn request(&self, remote: &Remote, texts: &[String]) -> reqwest::Request;

    /// Returns the vectors of an answer, in the order of the texts.
    fn vectors(&self, answer: &str) -> serde_json::Result<Vec<Vec<f32>>>;
}

impl Remote {
    /// Creates an embedder at `address`: a base URL and the path after it.
    fn new(
        protocol: &str,
        address: (&str, &str),
        key: SentAs,
        model: String,
        dimensions: usize,
        options: EmbedderOptions,
    ) -> Result<Self, SetupError> {
        let EmbedderOptions { connect, ask_for_dimensions, batch } = options;
        let service = connect.service(protocol, address.0, address.1, key)?;
        let id = format!("{}:{model}:{dimensions}", service.id);
        Ok(Self { id, model, dimensions, ask_for_dimensions, batch: batch.max(1), service })
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
                let answer =
                    whole::answer(&self.service.transport, request, time_of(self.service.clock.as_ref()));
                let answer = answer.await.map_err(|e| self.failed(e.to_string()))?;
                let vectors = wire.vectors(&answer.text).map_err(|e| self.none_came(&e, &answer))?;
                self.check(&vectors, batch.len())?;
                all.extend(vectors);
            }
            Ok(all)
        })
    }

    fn check(&self, vectors: &[Vec<f32>], texts: usize) -> Result<(), MemoryError> {
        if vectors.len() != texts {
            return Err(self.failed(format!("the service sent {} vectors for {texts} texts", vectors.len())));
        }
        let expected = self.dimensions;
        match vectors.iter().map(Vec::len).find(|came| *came != expected) {
            Some(came) => {
                Err(self
                    .failed(format!("the service sent a vector of {came} dimensions instead of {expected}")))
            }
            None => Ok(()),
        }
    }

    fn none_came(&self, error: &serde_json::Error, answer: &Whole) -> MemoryError {
        self.failed(format!("the service sent no list of vectors: {error} ({})", answer.shown))
    }

    fn failed(&self, problem: String) -> MemoryError {
        MemoryError::Embedding {
            embedder: self.id.clone(),
            problem: self.service.transport.redactor.clean_cut(problem, CUT),
        }
    }
}

/// Implements an embedder that is a [`Remote`] with this wire format.
macro_rules! embedder {
    ($embedder:ident speaks $wire:ident) => {
        impl archon_types::Embedder for $embedder {
            fn id(&self) -> &str {
                &self.0.id
            }

            fn dimensions(&self) -> usize {
                self.0.dimensions
            }

            fn embed<'a>(
                &'a self,
                texts: &'a [String],
            ) -> archon_types::BoxFuture<'a, Result<Vec<Vec<f32>>, archon_types::MemoryError>> {
                self.0.embed(&$wire, texts)
            }
        }

        archon_types::debug_fields!($embedder: id = 0.id, service = 0.service);
    };
}
use embedder;

/// Returns a text that services accept: a space instead of an empty text, which they refuse.
fn non_empty(text: &str) -> &str {
    if text.is_empty() { " " } else { text }
}

#[cfg(all(test, feature = "gemini", feature = "openai-compatible"))]
#[path = "embed_tests.rs"]
mod tests;
