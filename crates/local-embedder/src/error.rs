//! Why an embedder cannot be had.

use std::path::PathBuf;

/// Why an embedder cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalEmbedderError {
    /// A file of the model cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is there and is not what it should be.
    #[error("{path} is no file of all-MiniLM-L6-v2: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl LocalEmbedderError {
    /// What a person can do about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Read { .. } => "fetch the model with `archon model pull all-minilm-l6-v2`",
            Self::Content { .. } => {
                "delete the file and fetch the model again with `archon model pull all-minilm-l6-v2`"
            }
        }
    }
}
