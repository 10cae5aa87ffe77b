//! Computes vectors with an embedder, and checks them.

use archon_types::{Embedder, MemoryError};

/// Embeds texts. Checks that the embedder returned one vector for each text, and that each vector has the
/// embedder's number of dimensions and only finite values.
pub(crate) async fn vectors(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>, MemoryError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |problem: String| MemoryError::Embedding { embedder: embedder.id().to_owned(), problem };
    let vectors = embedder.embed(texts).await?;
    if vectors.len() != texts.len() {
        return Err(failed(format!("it returned {} vectors for {} texts", vectors.len(), texts.len())));
    }
    let expected = embedder.dimensions();
    for vector in &vectors {
        if vector.len() != expected {
            return Err(failed(format!(
                "it returned a vector of {} dimensions instead of {expected}",
                vector.len()
            )));
        }
        if vector.iter().any(|x| !x.is_finite()) {
            return Err(failed("a vector has a value that is not a finite number".to_owned()));
        }
    }
    Ok(vectors)
}

/// Returns a vector or an error for each text. If the embedder refuses the batch, each text is embedded
/// separately.
///
/// # Errors
/// The embedder's error, if it cannot embed even a single plain word.
pub(crate) async fn vector_of_each(
    embedder: &dyn Embedder,
    texts: &[String],
) -> Result<Vec<Result<Vec<f32>, MemoryError>>, MemoryError> {
    let error = match vectors(embedder, texts).await {
        Ok(made) => return Ok(made.into_iter().map(Ok).collect()),
        Err(error) => error,
    };
    // An embedder that cannot embed a plain word is down, so the other texts are not tried.
    vectors(embedder, &[PLAIN.to_owned()]).await.map_err(|_| error)?;
    let mut each = Vec::new();
    for text in texts {
        let made = vectors(embedder, std::slice::from_ref(text)).await;
        each.push(made.map(|mut made| made.pop().unwrap_or_default()));
    }
    Ok(each)
}

/// A harmless text: an embedder that cannot embed this text is down.
const PLAIN: &str = "word";
