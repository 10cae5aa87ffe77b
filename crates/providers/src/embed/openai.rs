//! OpenAI's protocol for embeddings, `POST {base}/embeddings`:
//! <https://platform.openai.com/docs/api-reference/embeddings/create>.

use std::fmt;

use archon_types::{BoxFuture, Embedder, MemoryError};
use serde::Deserialize;
use serde_json::json;

use super::{EmbedderOptions, Remote, Wire, sent};
use crate::{connect::SentAs, error::SetupError};

/// An embedder with a model of any service or server with OpenAI's protocol.
pub struct OpenAiEmbedder(Remote);

impl OpenAiEmbedder {
    /// Creates an embedder with a model at `base_url`, the address without `/embeddings`. `dimensions` is
    /// the number of dimensions of its vectors. Nothing is sent before the first text.
    ///
    /// # Errors
    /// [`SetupError`] if the address, the key, a header or the proxy cannot be used.
    pub fn new(
        base_url: &str,
        model: impl Into<String>,
        dimensions: usize,
        options: EmbedderOptions,
    ) -> Result<Self, SetupError> {
        let address = (base_url, "/embeddings");
        let model = model.into();
        Remote::new("openai-compatible", address, SentAs::Bearer, model, dimensions, options).map(Self)
    }
}

impl Embedder for OpenAiEmbedder {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        self.0.embed(&Embeddings, texts)
    }
}

impl fmt::Debug for OpenAiEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

struct Embeddings;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Wire for Embeddings {
    fn request(&self, remote: &Remote, texts: &[String]) -> reqwest::Request {
        let texts: Vec<&str> = texts.iter().map(|text| sent(text)).collect();
        let mut body = json!({"model": remote.model, "input": texts, "encoding_format": "float"});
        if remote.ask_for_dimensions {
            body["dimensions"] = remote.dimensions.into();
        }
        remote.service.transport.post(body.to_string().into_bytes())
    }

    fn vectors(&self, answer: &str) -> serde_json::Result<Vec<Vec<f32>>> {
        let answer: Answer = serde_json::from_str(answer)?;
        let mut items = answer.data;
        // Services may answer in another order.
        items.sort_by_key(|item| item.index);
        Ok(items.into_iter().map(|item| item.embedding).collect())
    }
}
