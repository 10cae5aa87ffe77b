//! Errors of loading an embedder.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// An error while an embedder is loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalEmbedderError {
    /// A file of the model is missing or cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The name of the model, as in `archon model pull`.
        model: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// A file was read, but it is not the expected file of the model.
    #[error("{path} is not a file of {model}: {problem}")]
    Content {
        /// The name of the model, as in `archon model pull`.
        model: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason as one line, for instance `it has no table`.
        problem: String,
    },
}

impl LocalEmbedderError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> String {
        match self {
            Self::Read { model, .. } => format!("fetch the model with `archon model pull {model}`"),
            Self::Content { model, .. } => {
                format!("delete the file and fetch the model again with `archon model pull {model}`")
            }
        }
    }
}

/// Reads a file of a model.
pub(crate) fn read(model: &'static str, path: &Path) -> Result<Vec<u8>, LocalEmbedderError> {
    fs::read(path).map_err(|source| LocalEmbedderError::Read { model, path: path.to_owned(), source })
}

pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
