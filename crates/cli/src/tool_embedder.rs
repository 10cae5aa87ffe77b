//! The embedder of the tool search: with `embedder = "local"` in the settings, deferred tools are also found by
//! meaning.

use std::{path::PathBuf, sync::Arc};

use archon::{
    ArchonBuilder,
    types::{BoxFuture, Embedder, MemoryError},
};
use archon_local_embedder::{MINI_LM, MiniLm};
use tokio::sync::OnceCell;

use crate::{app::App, config::EmbedderChoice, local};

/// Adds the embedder to the tool search, if the setting `embedder` is `local`.
pub(crate) fn add(app: &App, builder: ArchonBuilder) -> ArchonBuilder {
    match app.config.settings.embedder {
        Some(EmbedderChoice::Local) => {
            let embedder = WhenUsed { folder: local::directory(app), model: Arc::default() };
            builder.tool_embedder(Arc::new(embedder))
        }
        _ => builder,
    }
}

/// Loads the model when a text is embedded for the first time: most runs do not search for tools, and the model
/// takes 0.1 s and 90 MB.
struct WhenUsed {
    folder: PathBuf,
    model: Arc<OnceCell<MiniLm>>,
}

impl Embedder for WhenUsed {
    fn id(&self) -> &str {
        MINI_LM
    }

    fn dimensions(&self) -> usize {
        MiniLm::DIMENSIONS
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move {
            let load = || async {
                let folder = self.folder.clone();
                let loaded = tokio::task::spawn_blocking(move || MiniLm::in_folder(&folder)).await;
                let failed =
                    |problem: String| MemoryError::Embedding { embedder: MINI_LM.to_owned(), problem };
                loaded.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(format!("{e}; {}", e.advice())))
            };
            self.model.get_or_try_init(load).await?.embed(texts).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn embedder_without_a_model_fails_at_its_first_text_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let embedder = WhenUsed { folder: folder.path().to_owned(), model: Arc::default() };
        let failed = embedder.embed(&["a".to_owned()]).await.unwrap_err().to_string();
        assert!(failed.contains("fetch the model with `archon model pull"), "{failed}");
    }
}
