//! OpenAI's protocol for embeddings, `POST {base}/embeddings`:
//! <https://platform.openai.com/docs/api-reference/embeddings/create>.

use serde::Deserialize;
use serde_json::json;

use super::{EmbedderOptions, Remote, Wire, embedder, non_empty};
use crate::{connect::SentAs, error::SetupError};

/// An embedder with a model of any service or server with OpenAI's protocol.
///
/// ```no_run
/// use archon_providers::{EmbedderOptions, OpenAiEmbedder};
///
/// let options = EmbedderOptions::default();
/// let embedder = OpenAiEmbedder::new("http://localhost:11434/v1", "nomic-embed-text", 768, options)?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
pub struct OpenAiEmbedder(Remote);

impl OpenAiEmbedder {
    /// Creates an embedder with a model at `base_url`, the address without `/embeddings`. `dimensions` is the
    /// number of dimensions of the model's vectors. Nothing is sent before the first text.
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

embedder!(OpenAiEmbedder speaks Embeddings);

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
        let texts: Vec<&str> = texts.iter().map(|text| non_empty(text)).collect();
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
