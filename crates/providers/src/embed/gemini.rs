//! Gemini's protocol for embeddings, `POST {base}/v1beta/models/{model}:batchEmbedContents`:
//! <https://ai.google.dev/api/embeddings>.

use archon_types::Json;
use serde::Deserialize;
use serde_json::json;

use super::{EmbedderOptions, Remote, Wire, embedder, non_empty};
use crate::{
    error::SetupError,
    gemini::{GEMINI_KEY, model_path, models_path},
};

/// An embedder with one of Gemini's models.
///
/// ```no_run
/// use archon_providers::{EmbedderOptions, GEMINI_URL, GeminiEmbedder};
///
/// let options = EmbedderOptions::default().with_api_key("secret");
/// let embedder = GeminiEmbedder::new(GEMINI_URL, "gemini-embedding-001", 3_072, options)?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
pub struct GeminiEmbedder(Remote);

impl GeminiEmbedder {
    /// Creates an embedder with a model at `base_url`, as for [`Gemini::new`](crate::Gemini::new). `dimensions` is the
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
        let path = models_path(base_url);
        let address = (base_url, &*path);
        Remote::new("gemini", address, GEMINI_KEY, model.into(), dimensions, options).map(Self)
    }
}

embedder!(GeminiEmbedder speaks BatchEmbedContents);

struct BatchEmbedContents;

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    values: Vec<f32>,
}

impl Wire for BatchEmbedContents {
    fn request(&self, remote: &Remote, texts: &[String]) -> reqwest::Request {
        let model = remote.model.strip_prefix("models/").unwrap_or(&remote.model);
        let one = |text: &String| {
            let content = json!({"parts": [{"text": non_empty(text)}]});
            let mut one = json!({"model": format!("models/{model}"), "content": content});
            if remote.ask_for_dimensions {
                one["outputDimensionality"] = remote.dimensions.into();
            }
            one
        };
        let body = json!({"requests": texts.iter().map(one).collect::<Vec<Json>>()});
        let path = model_path(model, "batchEmbedContents");
        remote.service.transport.post_below(&path, None, body.to_string().into_bytes())
    }

    fn vectors(&self, answer: &str) -> serde_json::Result<Vec<Vec<f32>>> {
        let answer: Answer = serde_json::from_str(answer)?;
        Ok(answer.embeddings.into_iter().map(|embedding| embedding.values).collect())
    }
}
