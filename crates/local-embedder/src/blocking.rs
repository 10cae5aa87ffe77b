//! Runs both embedders on a thread that may block, and makes their errors.

use archon_types::{BoxFuture, MemoryError};

/// Vectors, one for each text.
type Vectors = Result<Vec<Vec<f32>>, MemoryError>;

/// Runs the work of an embedder in a thread that may block.
pub(crate) fn embed_in_thread<'a>(
    embedder: &'static str,
    work: impl FnOnce() -> Vectors + Send + 'static,
) -> BoxFuture<'a, Vectors> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|e| Err(failed(embedder, e.to_string())))
    })
}

/// Returns the error of an embedder.
pub(crate) fn failed(embedder: &str, problem: String) -> MemoryError {
    MemoryError::Embedding { embedder: embedder.to_owned(), problem }
}
