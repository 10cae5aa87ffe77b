//! Errors of loading the embedder.

use std::path::PathBuf;

/// An error while the embedder is loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalEmbedderError {
    /// A file of the model cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The content of a file does not fit the model.
    #[error("{path} is not a file of all-MiniLM-L6-v2: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

impl LocalEmbedderError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Read { .. } => "fetch the model with `archon model pull all-minilm-l6-v2`",
            Self::Content { .. } => {
                "delete the file and fetch the model again with `archon model pull all-minilm-l6-v2`"
            }
        }
    }
}
