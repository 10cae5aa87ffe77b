//! Vectors for texts, from services: `/embeddings` as OpenAI has it, and Gemini's `batchEmbedContents`.

#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "openai-compatible")]
mod openai;

use std::fmt;

use archon_types::{BoxFuture, MemoryError};

#[cfg(feature = "gemini")]
pub use gemini::GeminiEmbedder;
#[cfg(feature = "openai-compatible")]
pub use openai::OpenAiEmbedder;

use crate::{
    classify::CUT,
    connect::{ConnectOptions, SentAs, Service, connect_choices},
    error::SetupError,
    http::{
        time_of,
        whole::{self, Whole},
    },
};

/// The choices of an embedder, each with a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmbedderOptions {
    /// How the service is reached. Its id is the first part of the embedder's.
    pub connect: ConnectOptions,
    /// Asks the service for vectors of the embedder's length, which not every model can shorten.
    pub ask_for_dimensions: bool,
    /// Most texts of one request; 100. More are sent one request after the other.
    pub batch: usize,
}

impl Default for EmbedderOptions {
    fn default() -> Self {
        Self { connect: ConnectOptions::default(), ask_for_dimensions: false, batch: 100 }
    }
}

connect_choices!(EmbedderOptions with a key);

impl EmbedderOptions {
    /// The same for a model whose vectors can be shortened.
    pub fn asking_for_dimensions(mut self) -> Self {
        self.ask_for_dimensions = true;
        self
    }
}

/// What the protocols share.
struct Remote {
    id: String,
    model: String,
    dimensions: usize,
    ask_for_dimensions: bool,
    batch: usize,
    service: Service,
}

/// How one protocol asks for vectors and says them.
trait Wire: Send + Sync {
    /// The request for a batch.
    fn request(&self, remote: &Remote, texts: &[String]) -> reqwest::Request;

    /// The vectors in an answer, in the order of the texts, or why there are none.
    fn vectors(&self, answer: &str) -> serde_json::Result<Vec<Vec<f32>>>;
}

impl Remote {
    /// An embedder at `address`: a base URL and what stands behind it.
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

    fn none_came(&self, error: &serde_json::Error, answer: &Whole) -> MemoryError {
        self.failed(format!("no list of vectors came: {error} ({})", answer.shown))
    }

    fn failed(&self, problem: String) -> MemoryError {
        MemoryError::Embedding {
            embedder: self.id.clone(),
            problem: self.service.transport.redactor.clean_cut(problem, CUT),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder")
            .field("id", &self.id)
            .field("service", &self.service)
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
